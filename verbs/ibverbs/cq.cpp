// SPDX-License-Identifier: Apache-2.0
// Completion queues: creation, resizing, destruction, notification.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <utility>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

// A smaller ring would look full at every second completion, and the device would read the consumer index each time
// before it continues.
constexpr std::uint32_t kLeastEntries = 4;

std::uint32_t entries_for(std::uint32_t asked) { return std::max(std::bit_ceil(asked), kLeastEntries); }

// Without tag matching, which the device does not support.
constexpr std::uint64_t kReadableFields = std::uint64_t(IBV_WC_STANDARD_FLAGS) | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                          IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
constexpr std::uint64_t kFieldsOfFrames = IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG;
constexpr std::uint32_t kKnownCqFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

// A CQ takes a parent domain; a plain PD has no meaning for it.
int check_domain(const Context& context, ibv_pd* domain) {
  if (domain == nullptr || domain->context != &context.context) return EINVAL;
  if (!context.pds.holds(domain->handle, &Pd::of(domain))) return ENOENT;
  return Pd::of(domain).parent ? 0 : EINVAL;
}

bool holds(const Context& context, ibv_comp_channel& channel) {
  return channel.context == &context.context &&
         context.channels.holds(Channel::of(&channel).pipe.number(), &Channel::of(&channel));
}

int check(const Context& context, const ibv_cq_init_attr_ex& attributes) {
  if (attributes.cqe == 0 || attributes.cqe > context.capabilities.max_cqe) return EINVAL;
  if (attributes.comp_vector >= unsigned(context.context.num_comp_vectors)) return EINVAL;
  if (attributes.comp_mask & ~std::uint32_t(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) return EINVAL;
  if ((attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attributes.flags & ~kKnownCqFlags)) return EINVAL;
  const bool has_frames = context.has_feature(abi::feature::kRaw);
  if (attributes.wc_flags & ~(kReadableFields | (has_frames ? kFieldsOfFrames : 0))) return EOPNOTSUPP;
  if (attributes.channel != nullptr && !holds(context, *attributes.channel)) return EINVAL;
  return attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? check_domain(context, attributes.parent_domain) : 0;
}

bool allocate(Context& context, Cq& cq, std::uint32_t entries) {
  cq.memory = allocate_for(context, cq.parent_domain, MemoryUse::completion_ring, entries * sizeof(abi::Cqe), 4096);
  cq.record = allocate_for(context, cq.parent_domain, MemoryUse::doorbell_record, 64, 64);
  if (!cq.memory || !cq.record) return false;
  const auto log_entries = std::uint8_t(std::bit_width(entries) - 1);
  cq.ring = provider::CompletionRing(log_entries, cq.memory.buffer(), cq.record.as<abi::CqDoorbellRecord>());
  cq.cqe = int(entries);
  return true;
}

abi::Cqc context_of(const Context& context, const Cq& cq, const ibv_cq_init_attr_ex& attributes) {
  abi::Cqc cqc;
  cqc.log_entries = std::uint8_t(std::bit_width(unsigned(cq.cqe)) - 1);
  const bool has_flags = attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;
  if (has_flags && (attributes.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)) cqc.flags = abi::Cqc::kIgnoreOverrun;
  cqc.uar_page = std::uint16_t(context.pages.first().uar.page());
  cqc.ring = cq.memory.bus_address();
  cqc.doorbell_record = cq.record.bus_address();
  cqc.eqn = attributes.comp_vector;  // the kernel replaces the vector with its event queue's number
  return cqc;
}

int create_on_device(Context& context, Cq& cq, const ibv_cq_init_attr_ex& attributes) {
  abi::CommandResult result;
  const int error = context.execute(provider::create_cq(0, context_of(context, cq, attributes)), result);
  if (error != 0) return error;
  cq.handle = result.object;
  if (cq.channel == nullptr) return 0;
  const int unbound = context.port.bind_completions(cq.handle, Channel::of(cq.channel).pipe.number());
  if (unbound != 0) release_cq(cq);
  return unbound;
}

// CQEs that the device wrote to the old ring may arrive after the command's completion.
void wait_for_entries(const Cq& cq, std::uint32_t producer) {
  constexpr int kLooks = 1000;  // polls; a broken device writes no more
  for (int look = 0; look < kLooks && !cq.ring.sees_all_before(producer); ++look) cq.owner().port.wait_visible();
}

int resize_cq(Cq& cq, int wanted) {
  Context& context = cq.owner();
  if (!context.cqs.holds(cq.handle, &cq)) return ENOENT;
  if (wanted <= 0 || unsigned(wanted) > context.capabilities.max_cqe) return EINVAL;
  const std::uint32_t entries = entries_for(unsigned(wanted));
  const auto log_entries = std::uint8_t(std::bit_width(entries) - 1);
  QueueGuard guard(cq.lock, context.port);
  if (cq.ring.unconsumed() > unsigned(wanted)) return EINVAL;
  if (entries == cq.ring.entries()) return 0;
  DmaMemory memory =
      allocate_for(context, cq.parent_domain, MemoryUse::completion_ring, entries * sizeof(abi::Cqe), 4096);
  if (!memory) return ENOMEM;
  provider::CompletionRing::hand_over(log_entries, memory.buffer());
  abi::ResizedCq resized;
  const auto command = provider::resize_cq(cq.handle, memory.bus_address(), log_entries);
  if (const int error = context.execute(command, resized)) return error;
  wait_for_entries(cq, resized.producer);
  cq.ring.move_to(log_entries, memory.buffer(), resized.producer);
  std::swap(cq.memory, memory);
  cq.cqe = int(entries);
  return 0;
}

void count_channel_user(Cq& cq, int change) {
  if (cq.channel == nullptr) return;
  pthread_mutex_lock(&cq.context->mutex);
  cq.channel->refcnt += change;
  pthread_mutex_unlock(&cq.context->mutex);
}

bool has_users(Cq& cq) {
  QueueGuard guard(cq.lock, cq.owner().port);
  return !cq.users.empty() || !cq.shared.empty();
}

int destroy_cq(Cq& cq) {
  Context& context = cq.owner();
  if (!context.cqs.holds(cq.handle, &cq)) return ENOENT;
  if (has_users(cq)) return EBUSY;
  if (const int error = release_cq(cq)) return error;
  const std::unique_ptr<Cq> last = context.cqs.take(cq.handle);
  const auto names_cq = [&](const abi::EventRecord& record) { return record.number == last->handle; };
  if (last->channel != nullptr) Channel::of(last->channel).pipe.purge(names_cq);
  context.events.purge([&](const abi::EventRecord& record) {
    return record.type == std::uint32_t(abi::EventType::cq_error) && names_cq(record);
  });
  wait_acknowledged(context.port, last->mutex, last->comp_events_completed, last->completions_delivered,
                    "ibv_destroy_cq");
  wait_acknowledged(context.port, last->mutex, last->async_events_completed, last->events_delivered, "ibv_destroy_cq");
  count_channel_user(*last, -1);
  pthread_cond_destroy(&last->cond);
  pthread_mutex_destroy(&last->mutex);
  return 0;
}

}  // namespace

int create_cq(Context& context, const ibv_cq_init_attr_ex& attributes, Cq*& created) {
  if (const int error = check(context, attributes)) return error;
  auto cq = std::make_unique<Cq>();
  cq->context = &context.context;
  cq->channel = attributes.channel;
  cq->cq_context = attributes.cq_context;
  if (attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) cq->parent_domain = attributes.parent_domain;
  const bool asked =
      (attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attributes.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  cq->single_threaded = asked || is_of_one_thread(cq->parent_domain);
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  fill_extended_poll(*cq, attributes.wc_flags);
  if (!allocate(context, *cq, entries_for(attributes.cqe))) return ENOMEM;
  if (const int error = create_on_device(context, *cq, attributes)) return error;
  count_channel_user(*cq, 1);
  created = cq.get();
  context.cqs.add(cq->handle, std::move(cq));
  return 0;
}

int release_cq(Cq& cq) { return cq.owner().execute(provider::header(abi::CommandOpcode::destroy_cq, cq.handle)); }

int request_notification(ibv_cq* handle, int solicited_only) {
  Cq& cq = Cq::of(handle);
  if (cq.channel == nullptr) return 0;
  Context& context = cq.owner();
  if (context.port.inherited()) return errno = ENODEV;
  QueueGuard guard(cq.lock, context.port);
  const auto wanted = solicited_only != 0 ? Cq::Notification::solicited : Cq::Notification::any;
  const auto asked_for = cq.asked_for.load(std::memory_order_relaxed);
  cq.asked_for.store(std::max(asked_for, wanted), std::memory_order_relaxed);
  // The device compares its producer index with the index in the arm doorbell: CQEs behind that index raise an event
  // at once. One event is enough for the CQEs in the CQ. Therefore the index is behind all CQEs in two cases: the
  // program has not taken the event of an earlier request; or the last event covered all these CQEs, and the program
  // has taken none of them.
  const std::uint32_t consumer = cq.ring.consumer(), seen = cq.ring.seen();
  const bool all_are_newer = cq.ring.is_behind(consumer, std::exchange(cq.seen_when_asked, seen));
  const bool told = all_are_newer && cq.told_at.load(std::memory_order_relaxed) == consumer;
  const std::uint32_t from = told || asked_for >= wanted ? seen : consumer;
  context.pages.first().uar.arm_cq(cq.handle, solicited_only != 0, from);
  context.port.charge(abi::CpuCost::mmio_write);
  return 0;
}

int modify_cq(ibv_cq* handle, ibv_modify_cq_attr* attributes) {
  return guarded([&] {
    Cq& cq = Cq::of(handle);
    Context& context = cq.owner();
    if (!context.cqs.holds(cq.handle, &cq)) return ENOENT;
    if (attributes->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
    const auto& [count, period] = attributes->moderate;
    return context.execute(provider::modify_cq(cq.handle, count, period));
  });
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  return guarded_object<ibv_cq_ex>([&](ibv_cq_ex*& made) {
    Cq* cq = nullptr;
    const int error = create_cq(Context::of(context), *attributes, cq);
    made = cq;
    return error;
  });
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  return guarded_object<ibv_cq>([&](ibv_cq*& made) {
    if (cqe <= 0 || comp_vector < 0) return EINVAL;
    const ibv_cq_init_attr_ex attributes{.cqe = unsigned(cqe),
                                         .cq_context = cq_context,
                                         .channel = channel,
                                         .comp_vector = unsigned(comp_vector),
                                         .wc_flags = IBV_WC_STANDARD_FLAGS};
    Cq* cq = nullptr;
    const int error = create_cq(Context::of(context), attributes, cq);
    if (error == 0) made = cq->handle_of();
    return error;
  });
}

int ibv_resize_cq(ibv_cq* cq, int entries) {
  return guarded([&] { return resize_cq(Cq::of(cq), entries); });
}

int ibv_destroy_cq(ibv_cq* cq) {
  return guarded([&] { return destroy_cq(Cq::of(cq)); });
}

}  // extern "C"
