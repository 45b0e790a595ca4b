// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/receive_checks.h"

#include <fmt/format.h>

namespace rnicsim::driver_check {

void ReceiveChecks::too_many(const Subject& subject, const char* whose, std::uint32_t number,
                             std::span<const std::byte> record, std::uint16_t from, std::uint32_t most) {
  const auto producer = context_.personality.receives_posted(record);
  const auto announced = static_cast<std::uint16_t>(producer - from);
  const auto record_of = fmt::format("doorbell record of {} {}: receive_producer", whose, number);
  if (const auto swapped = context_.terms.swapped_receives(record))
    return context_.reports.add(FindingKind::wrong_endianness, subject,
                                fmt::format("{} is invalid; in big-endian order the value is {}", record_of, *swapped));
  if (announced > most)
    context_.reports.add(
        FindingKind::past_ring, subject,
        fmt::format("{} {} announces {} entries that the device has not taken, but the ring has at most {}", record_of,
                    producer, announced, most));
}

// In ERR the device takes receives without a trace event for each.
void ReceiveChecks::record_read(std::uint32_t qpn, std::span<const std::byte> record) {
  const auto& qp = context_.objects.qps.find(qpn)->second;
  if (!qp.context.has_receive || qp.state == roce::QpState::error || qp.state == roce::QpState::reset) return;
  too_many({About::qp, qpn}, "queue pair", qpn, record, qp.received, 1u << qp.context.log_receive_wqes);
}

void ReceiveChecks::taken(const nic::WqeTaken& taken) {
  if (taken.queue != nic::QueueKind::receive) return;
  const auto found = context_.objects.qps.find(taken.qpn.value);
  if (found != context_.objects.qps.end()) found->second.received = static_cast<std::uint16_t>(taken.index + 1);
}

void ReceiveChecks::shared_record_read(std::uint32_t srqn, std::span<const std::byte> record) {
  auto& srq = context_.objects.srqs.find(srqn)->second;
  too_many({About::srq, srqn}, "shared receive queue", srqn, record, srq.followed, (1u << srq.context.log_entries) - 1);
  srq.posted = context_.personality.receives_posted(record);
}

// The device reads adjacent entries, and uses them as far as each `next` names the adjacent entry. A returned entry is
// read again, alone; its `next` was checked at the first read.
void ReceiveChecks::shared_entries_read(const MemoryRange& ring, std::uint64_t address,
                                        std::span<const std::byte> bytes) {
  auto& srq = context_.objects.srqs.find(ring.number)->second;
  const std::size_t stride = std::size_t{1} << srq.context.log_stride;
  if (address < ring.address || (address - ring.address) % stride != 0) return;
  auto index = static_cast<std::uint16_t>((address - ring.address) / stride);
  for (std::size_t at = 0; at + stride <= bytes.size(); at += stride, ++index) {
    if (index != srq.next || srq.followed == srq.posted) return;
    const auto bytes_of_it = bytes.subspan(at, stride);
    const auto entry = context_.personality.decode_shared_receive(bytes_of_it, index);
    srq.unfinished.insert(index);
    ++srq.followed;
    srq.next = entry.next;
    if (const auto left = context_.terms.reserved_in_shared_receive(bytes_of_it))
      context_.reports.add(FindingKind::reserved_bytes, {About::srq, ring.number},
                           fmt::format("shared receive queue {}, entry {}: reserved byte {:#04x} of {} is {:#04x}",
                                       ring.number, index, left->offset, left->layout, left->value));
    const auto entries = 1u << srq.context.log_entries;
    const auto swapped = static_cast<std::uint16_t>(entry.next << 8 | entry.next >> 8);
    if (entry.next >= entries && swapped < entries)
      context_.reports.add(
          FindingKind::wrong_endianness, {About::srq, ring.number},
          fmt::format("shared receive queue {}, entry {}: next {:#x} is no entry; in big-endian order the entry is {}",
                      ring.number, index, entry.next, swapped));
    else if (is_poison(entry.next, sizeof(entry.next)))
      context_.reports.add(FindingKind::body_before_owner, {About::srq, ring.number},
                           fmt::format("shared receive queue {}, entry {}: next is {:#x}, the pattern of an unwritten "
                                       "CQE: the driver read a CQE before the owner bit was valid",
                                       ring.number, index, entry.next));
    else if (srq.unfinished.contains(entry.next))
      context_.reports.add(
          FindingKind::srq_next_posted, {About::srq, ring.number},
          fmt::format(
              "shared receive queue {}, entry {}: next names entry {}, which is already posted and not completed",
              ring.number, index, entry.next));
  }
}

void ReceiveChecks::completed(const nic::Cqe& cqe) {
  if (cqe.opcode == nic::CqeOpcode::requester || cqe.opcode == nic::CqeOpcode::requester_error) return;
  auto srqn = cqe.source_qpn;
  if (!cqe.xrc) {
    const auto qp = context_.objects.qps.find(cqe.qpn);
    if (qp == context_.objects.qps.end() || !qp->second.context.has_srq) return;
    srqn = qp->second.context.srqn;
  }
  if (const auto srq = context_.objects.srqs.find(srqn); srq != context_.objects.srqs.end())
    srq->second.unfinished.erase(cqe.wqe_counter);
}

}  // namespace rnicsim::driver_check
