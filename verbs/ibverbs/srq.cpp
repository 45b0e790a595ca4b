// SPDX-License-Identifier: Apache-2.0
// Shared receive queues.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr int kKnownAttributes = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
constexpr std::uint32_t kKnownMask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
constexpr std::uint32_t kBasicMask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
constexpr std::uint32_t kXrcMask = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

bool resolves(const Srq& srq) { return srq.owner().srqs.holds(srq.handle, &srq); }

// The ring has one entry more than can be posted.
std::uint8_t log_entries_for(std::uint32_t max_wr) { return std::uint8_t(std::bit_width(max_wr)); }

ibv_srq_type type_of(const ibv_srq_init_attr_ex& attributes) {
  return attributes.comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attributes.srq_type : IBV_SRQT_BASIC;
}

int check_mask(const Context& context, const ibv_srq_init_attr_ex& attributes) {
  if (attributes.comp_mask & ~kKnownMask) return EINVAL;
  const auto type = type_of(attributes);
  if (type == IBV_SRQT_TM) return EOPNOTSUPP;
  if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) return EINVAL;
  const bool extended = type == IBV_SRQT_XRC;
  if (extended && !context.has_feature(abi::feature::kXrc)) return EOPNOTSUPP;
  if (attributes.comp_mask & ~(kBasicMask | (extended ? kXrcMask : 0))) return EINVAL;
  if (extended && (attributes.comp_mask & kXrcMask) != kXrcMask) return EINVAL;
  return attributes.comp_mask & IBV_SRQ_INIT_ATTR_PD && attributes.pd != nullptr ? 0 : EINVAL;
}

int check_domain(const Context& context, const ibv_srq_init_attr_ex& attributes) {
  if (!resolves(context, attributes.xrcd)) return EINVAL;
  if (attributes.cq == nullptr || attributes.cq->context != &context.context) return EINVAL;
  return context.cqs.holds(attributes.cq->handle, &Cq::of(attributes.cq)) ? 0 : ENOENT;
}

int check(Context& context, const ibv_srq_init_attr_ex& attributes) {
  if (const int error = check_mask(context, attributes)) return error;
  if (!context.has_feature(abi::feature::kSrq)) return EOPNOTSUPP;
  if (attributes.pd->context != &context.context) return EINVAL;
  if (!context.pds.holds(attributes.pd->handle, &Pd::of(attributes.pd))) return ENOENT;
  if (type_of(attributes) == IBV_SRQT_XRC)
    if (const int error = check_domain(context, attributes)) return error;
  const auto& asked = attributes.attr;
  const abi::DeviceCapabilities& limits = context.capabilities;
  return asked.max_wr == 0 || asked.max_wr > limits.max_srq_wr || asked.max_sge > limits.max_srq_sge ? EINVAL : 0;
}

DmaMemory allocate_ring(Context& context, const Srq& srq, int log_bytes) {
  return allocate_for(context, srq.pd, MemoryUse::shared_receive_ring, std::size_t(1) << log_bytes, 4096);
}

bool allocate(Context& context, Srq& srq, const provider::SharedReceiveRing::Layout& layout) {
  srq.record = allocate_for(context, srq.pd, MemoryUse::doorbell_record, 64, 64);
  srq.memory = allocate_ring(context, srq, layout.log_entries + layout.log_stride);
  if (!srq.memory || !srq.record) return false;
  srq.ring = provider::SharedReceiveRing(layout, srq.memory.buffer(), srq.record.as<abi::QpDoorbellRecord>());
  return true;
}

std::uint32_t capacity_of(const Srq& srq) {
  return std::min<std::uint32_t>(srq.ring.capacity(), srq.owner().capabilities.max_srq_wr);
}

void grant(Srq& srq) {
  srq.max_wr = capacity_of(srq);
  srq.max_sge = std::min<std::uint32_t>(srq.ring.max_segments(), srq.owner().capabilities.max_srq_sge);
}

abi::Srqc context_of(const Srq& srq) {
  abi::Srqc srqc;
  srqc.log_entries = srq.ring.layout().log_entries;
  srqc.log_stride = srq.ring.layout().log_stride;
  srqc.pd = srq.pd->handle;
  srqc.ring = srq.memory.bus_address();
  srqc.doorbell_record = srq.record.bus_address();
  if (srq.xrcd != nullptr) {
    srqc.flags = abi::Srqc::kXrc;
    srqc.xrcd = srq.xrcd->number;
    srqc.cqn = srq.cq->handle;
  }
  return srqc;
}

int create_srq(Context& context, ibv_srq_init_attr_ex& attributes, ibv_srq*& created) {
  if (const int error = check(context, attributes)) return error;
  auto srq = std::make_unique<Srq>();
  srq->context = &context.context;
  srq->srq_context = attributes.srq_context;
  srq->pd = attributes.pd;
  if (type_of(attributes) == IBV_SRQT_XRC) {
    srq->xrcd = &Xrcd::of(attributes.xrcd);
    srq->cq = &Cq::of(attributes.cq);
  }
  pthread_mutex_init(&srq->mutex, nullptr);
  pthread_cond_init(&srq->cond, nullptr);
  const provider::SharedReceiveRing::Layout layout{
      .log_entries = log_entries_for(attributes.attr.max_wr),
      .log_stride = provider::log_shared_receive_stride(attributes.attr.max_sge)};
  if (!allocate(context, *srq, layout)) return ENOMEM;
  grant(*srq);
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_srq(0, context_of(*srq)), result)) return error;
  srq->handle = result.object;
  if (srq->cq != nullptr) attach_user(*srq->cq, *srq);
  attributes.attr.max_wr = srq->max_wr;
  attributes.attr.max_sge = srq->max_sge;
  created = srq.get();
  context.srqs.add(result.object, std::move(srq));
  return 0;
}

int query_limit(Srq& srq, std::uint32_t& limit) {
  abi::QuerySrq answer;
  const auto query = provider::header(abi::CommandOpcode::query_srq, srq.handle);
  if (const int error = srq.owner().execute(query, answer)) return error;
  limit = answer.context.limit;
  return 0;
}

// Checks a whole change before any of it is made. Returns 0 or an errno.
int check_change(Srq& srq, const ibv_srq_attr& attributes, int mask) {
  const bool resizes = mask & IBV_SRQ_MAX_WR;
  const std::uint32_t max_wr = resizes ? attributes.max_wr : srq.max_wr;
  std::uint32_t limit = attributes.srq_limit;
  if (resizes && (max_wr == 0 || max_wr > srq.owner().capabilities.max_srq_wr)) return EINVAL;
  if (resizes && max_wr < srq.ring.outstanding()) return EINVAL;
  if (!(mask & IBV_SRQ_LIMIT))
    if (const int error = query_limit(srq, limit)) return error;
  return limit > max_wr ? EINVAL : 0;
}

int modify_srq(Srq& srq, const ibv_srq_attr& attributes, int mask) {
  Context& context = srq.owner();
  if (!resolves(srq)) return ENOENT;
  if (mask & ~kKnownAttributes) return EINVAL;
  if (mask == 0) return 0;
  QueueGuard guard(srq.lock, context.port);
  if (const int error = check_change(srq, attributes, mask)) return error;
  const bool grows = (mask & IBV_SRQ_MAX_WR) && attributes.max_wr > srq.ring.capacity();
  abi::ModifySrq command{.header = provider::header(abi::CommandOpcode::modify_srq, srq.handle)};
  DmaMemory larger;
  if (grows) {
    command.attributes = abi::ModifySrq::kRing;
    command.log_entries = log_entries_for(attributes.max_wr);
    larger = allocate_ring(context, srq, command.log_entries + srq.ring.layout().log_stride);
    if (!larger) return ENOMEM;
    command.ring = larger.bus_address();
    srq.ring.copy_to(larger.buffer(), command.log_entries);
  }
  if (mask & IBV_SRQ_LIMIT) {
    command.attributes = command.attributes | abi::ModifySrq::kLimit;
    command.limit = attributes.srq_limit;
  }
  if (command.attributes != 0u)
    if (const int error = context.execute(command)) return error;
  if (grows) {
    srq.ring.move_to(larger.buffer(), command.log_entries);
    std::swap(srq.memory, larger);
  }
  if (mask & IBV_SRQ_MAX_WR) srq.max_wr = grows ? capacity_of(srq) : attributes.max_wr;
  return 0;
}

int query_srq(Srq& srq, ibv_srq_attr& attributes) {
  if (!resolves(srq)) return ENOENT;
  std::uint32_t limit = 0;
  if (const int error = query_limit(srq, limit)) return error;
  attributes = {.max_wr = srq.max_wr, .max_sge = srq.max_sge, .srq_limit = limit};
  return 0;
}

int destroy_srq(Srq& srq) {
  Context& context = srq.owner();
  if (!resolves(srq)) return ENOENT;
  if (const int error = release_srq(srq)) return error;
  const std::unique_ptr<Srq> last = context.srqs.take(srq.handle);
  context.events.purge([&](const abi::EventRecord& record) {
    const auto type = abi::EventType(record.type);
    const bool concerns_srq = type == abi::EventType::srq_limit || type == abi::EventType::srq_error;
    return concerns_srq && record.number == last->handle;
  });
  wait_acknowledged(context.port, last->mutex, last->events_completed, last->events_delivered, "ibv_destroy_srq");
  pthread_cond_destroy(&last->cond);
  pthread_mutex_destroy(&last->mutex);
  return 0;
}

}  // namespace

int release_srq(Srq& srq) {
  const int error = srq.owner().execute(provider::header(abi::CommandOpcode::destroy_srq, srq.handle));
  if (error == 0 && srq.cq != nullptr) detach_user(*srq.cq, srq);
  return error;
}

std::uint64_t retire_shared(Srq& srq, std::uint16_t index) {
  QueueGuard guard(srq.lock, srq.owner().port);
  return srq.ring.retire(index);
}

int get_srq_number(ibv_srq* handle, std::uint32_t* number) {
  return guarded([&] {
    const Srq& srq = Srq::of(handle);
    if (!resolves(srq)) return ENOENT;
    if (srq.xrcd == nullptr) return EOPNOTSUPP;
    *number = srq.handle;
    return 0;
  });
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes) {
  return guarded_object<ibv_srq>([&](ibv_srq*& made) { return create_srq(Context::of(context), *attributes, made); });
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

// The header's inline ibv_create_srq_ex calls this function, too, with any PD.
ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  if (pd == nullptr) return errno = EINVAL, nullptr;
  ibv_srq_init_attr_ex extended{};
  extended.srq_context = attributes->srq_context;
  extended.attr = attributes->attr;
  extended.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_srq* srq = create_srq_ex(pd->context, &extended);
  if (srq != nullptr) attributes->attr = extended.attr;
  return srq;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return guarded([&] { return modify_srq(Srq::of(srq), *attributes, mask); });
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  return guarded([&] { return query_srq(Srq::of(srq), *attributes); });
}

int ibv_destroy_srq(ibv_srq* srq) {
  return guarded([&] { return destroy_srq(Srq::of(srq)); });
}

}  // extern "C"
