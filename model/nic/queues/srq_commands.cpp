// SPDX-License-Identifier: Apache-2.0
// Commands for shared receive queues.
#include "model/nic/queues/command_unit.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint8_t kMaxLogEntries = 15;  // the producer counts entries modulo 2^16
constexpr std::uint8_t kLeastLogEntryStride = 5;
constexpr std::uint8_t kMostLogStride = 10;

// One entry always stays unposted, so one entry is not enough.
bool sane_size(std::uint8_t log_entries) { return log_entries >= 1 && log_entries <= kMaxLogEntries; }

}  // namespace

void CommandUnit::create_srq() {
  const auto srqn = object();
  auto srq = input<SharedReceiveQueue>();
  if (!params_.srq || (srq.xrc && !params_.features().xrc)) return complete(CommandStatus::not_supported);
  if (srqn >= params_.max_srq) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.srqs.exists(srqn)) return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (!contexts_.srqs.mapped(srqn)) return refuse(CommandSyndrome::no_icm);
  const bool stride = srq.log_stride >= kLeastLogEntryStride && srq.log_stride <= kMostLogStride;
  if (!sane_size(srq.log_entries) || !stride) return refuse(CommandSyndrome::bad_size);
  if (srq.limit >= 1u << srq.log_entries) return refuse(CommandSyndrome::bad_range);
  if (srq.ring % kRingAlignment != 0 || srq.doorbell_record % personality_.layout.qp_record != 0)
    return refuse(CommandSyndrome::bad_alignment);
  if (srq.xrc && !contexts_.cqs.exists(srq.cqn)) return refuse(CommandSyndrome::no_cq);
  srq.head = srq.taken = 0;
  srq.dead = false;
  contexts_.srqs.create(srqn, srq);
  if (srq.xrc) contexts_.xrc_cqns[srqn] = srq.cqn;
  if (srq.limit != 0) srq_modified(std::uint32_t{srqn}, std::uint32_t{SrqModification::kLimit});
  complete(CommandStatus::ok);
}

void CommandUnit::destroy_srq() {
  const auto srqn = object();
  if (!contexts_.srqs.exists(srqn)) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  bool used = false;
  contexts_.qps.for_each([&](std::uint32_t, const QpEntry& qp) { used |= qp.srqn == srqn; });
  if (used) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  contexts_.xrc_cqns.erase(srqn);
  srq_destroyed(std::uint32_t{srqn});
  contexts_.srqs.destroy(srqn);
  complete(CommandStatus::ok);
}

void CommandUnit::query_srq() {
  contexts_.srqs.lookup(object(), [this](SharedReceiveQueue* srq) {
    if (srq == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    current_->output = *srq;
    complete(CommandStatus::ok);
  });
}

// Applies all changes or none.
void CommandUnit::modify_srq() {
  const auto in = input<SrqModification>();
  const std::uint32_t attributes = in.attributes;
  if ((attributes & ~(SrqModification::kLimit | SrqModification::kRing)) != 0)
    return complete(CommandStatus::not_supported);
  contexts_.srqs.lookup(object(), [this, in, attributes](SharedReceiveQueue* srq) {
    if (srq == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    if (srq->dead) return complete(CommandStatus::bad_state);
    const bool sets_ring = (attributes & SrqModification::kRing) != 0;
    const bool sets_limit = (attributes & SrqModification::kLimit) != 0;
    const auto log_entries = sets_ring ? in.log_entries : srq->log_entries;
    if (!sane_size(log_entries) || log_entries < srq->log_entries) return refuse(CommandSyndrome::bad_size);
    if (sets_ring && in.ring % kRingAlignment != 0) return refuse(CommandSyndrome::bad_alignment);
    if (sets_limit && in.limit >= 1u << log_entries) return refuse(CommandSyndrome::bad_range);
    if (sets_limit) srq->limit = in.limit;
    if (sets_ring) srq->ring = in.ring;
    srq->log_entries = log_entries;
    srq_modified(object(), std::uint32_t{attributes});
    complete(CommandStatus::ok);
  });
}

}  // namespace rnicsim::nic
