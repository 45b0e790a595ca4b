// SPDX-License-Identifier: Apache-2.0
// Completion queues: creation, resizing, notification. Polling is in poll.cpp.
#include <algorithm>
#include <memory>
#include <utility>

#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

constexpr std::uint64_t kReadableFields = std::uint64_t(IBV_WC_STANDARD_FLAGS) | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
constexpr std::uint32_t kKnownCqMask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
constexpr std::uint32_t kKnownFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;

int map(Cq& cq, int command_file, const rnic_create_cq_resp& answer) {
  cq.memory = Mapping(command_file, answer.ring);
  cq.record = Mapping(command_file, answer.record);
  if (!cq.memory || !cq.record) return errno;
  cq.number = answer.cqn;
  cq.ring = provider::CompletionRing(std::uint8_t(answer.log_entries), cq.memory.buffer(),
                                     cq.record.at<abi::CqDoorbellRecord>(0));
  return 0;
}

int create(ibv_context* context, const ibv_cq_init_attr_ex& attributes, std::unique_ptr<Cq>& made) {
  if (attributes.comp_mask & ~kKnownCqMask) return EOPNOTSUPP;
  const std::uint32_t flags = attributes.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attributes.flags : 0;
  if (flags & ~kKnownFlags || attributes.wc_flags & ~kReadableFields) return EOPNOTSUPP;
  auto cq = std::make_unique<Cq>((flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0);
  fill_extended_poll(*cq, attributes.wc_flags);
  ExtendedCommand<ib_uverbs_ex_create_cq> command;
  Answer<ib_uverbs_ex_create_cq_resp, rnic_create_cq_resp> answer;
  if (const int error = ibv_cmd_create_cq_ex(context, &attributes, cq.get(), &command, sizeof command, answer.core(),
                                             sizeof answer.bytes, 0))
    return error;
  if (const int error = map(*cq, Context::of(context).command_file, answer.driver())) {
    ibv_cmd_destroy_cq(&cq->cq);
    return error;
  }
  made = std::move(cq);
  return 0;
}

int resize(Cq& cq, int entries) {
  QueueGuard guard(cq.lock);
  if (entries <= 0 || cq.ring.unconsumed() > unsigned(entries)) return EINVAL;
  Command<ib_uverbs_resize_cq> command;
  Answer<ib_uverbs_resize_cq_resp, rnic_resize_cq_resp> answer;
  if (const int error =
          ibv_cmd_resize_cq(&cq.cq, entries, &command, sizeof command, answer.core(), sizeof answer.bytes))
    return error;
  const rnic_resize_cq_resp resized = answer.driver();
  Mapping memory(cq.owner().command_file, resized.ring);
  if (!memory) return errno;
  // The device wrote all CQEs before `producer` ahead of the command's response.
  cq.ring.move_to(std::uint8_t(resized.log_entries), memory.buffer(), resized.producer);
  std::swap(cq.memory, memory);
  return 0;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
  std::unique_ptr<Cq> cq;
  const ibv_cq_init_attr_ex attributes{.cqe = std::uint32_t(entries),
                                       .channel = channel,
                                       .comp_vector = std::uint32_t(vector),
                                       .wc_flags = IBV_WC_STANDARD_FLAGS};
  if (entries <= 0) return errno = EINVAL, nullptr;
  return guarded([&] { return create(context, attributes, cq); }) == 0 ? &cq.release()->cq : nullptr;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  std::unique_ptr<Cq> cq;
  return guarded([&] { return create(context, *attributes, cq); }) == 0 ? &cq.release()->cq_ex : nullptr;
}

int resize_cq(ibv_cq* cq, int entries) {
  return guarded([&] { return resize(Cq::of(cq), entries); });
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  ExtendedCommand<ib_uverbs_ex_modify_cq> command;
  return ibv_cmd_modify_cq(cq, attributes, &command, sizeof command);
}

int destroy_cq(ibv_cq* handle) {
  const int error = ibv_cmd_destroy_cq(handle);
  if (error == 0) delete &Cq::of(handle);
  return error;
}

// The device compares its producer index with the index in the arm doorbell: CQEs behind that index raise an event at
// once. One event is enough for the CQEs in the CQ. Therefore the index is behind all CQEs in two cases: the
// program has not taken the event of an earlier request; or the last event covered all these CQEs, and the program has
// taken none of them.
int request_notification(ibv_cq* handle, int solicited_only) {
  Cq& cq = Cq::of(handle);
  QueueGuard guard(cq.lock);
  const auto wanted = solicited_only != 0 ? Cq::Notification::solicited : Cq::Notification::any;
  const auto asked_for = std::exchange(cq.asked_for, std::max(cq.asked_for, wanted));
  const std::uint32_t consumer = cq.ring.consumer(), seen = cq.ring.seen();
  const bool all_are_newer = cq.ring.is_behind(consumer, std::exchange(cq.seen_when_asked, seen));
  const bool told = all_are_newer && cq.told_at == consumer;
  const std::uint32_t from = told || asked_for >= wanted ? seen : consumer;
  cq.owner().uar.arm_cq(cq.number, solicited_only != 0, from);
  return 0;
}

// Called before the program gets the event.
void take_completion_event(ibv_cq* handle) {
  Cq& cq = Cq::of(handle);
  QueueGuard guard(cq.lock);
  cq.asked_for = Cq::Notification::none;
  cq.told_at = cq.ring.consumer();
}

void attach_user(Cq& cq, Qp& qp) {
  QueueGuard guard(cq.lock);
  cq.users[qp.qp.qp_num] = &qp;
}

void forget_completions(Cq& cq, Qp& qp) {
  QueueGuard guard(cq.lock);
  cq.ring.remove_if([&](const abi::Cqe& cqe) {
    if (cqe.qpn != qp.qp.qp_num) return false;
    // The QP's own rings are reset; a shared receive queue keeps its entries.
    if (qp.shared() != nullptr && !provider::is_requester(cqe)) retire_shared(*qp.shared(), cqe.wqe_counter);
    return true;
  });
}

void detach_user(Cq& cq, Qp& qp) {
  forget_completions(cq, qp);
  QueueGuard guard(cq.lock);
  cq.users.erase(qp.qp.qp_num);
  cq.last_user = nullptr;
}

}  // namespace rnicsim::linux_provider
