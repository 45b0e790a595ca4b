// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/doorbell_checks.h"

#include <fmt/format.h>

#include <vector>

namespace rnicsim::driver_check {
namespace {

constexpr unsigned kMostValidated = 256;  // WQEs checked for each doorbell

About about_of(ObjectKind kind) {
  return kind == ObjectKind::cq ? About::cq : kind == ObjectKind::eq ? About::eq : About::qp;
}

}  // namespace

nic::DoorbellWrite DoorbellChecks::swapped_doorbell() const {
  const auto bytes = context_.log.last_bytes();
  if (bytes.size() != 8) return {.sound = false};
  const auto other_order = turned(bytes, 4);
  return context_.personality.decode_doorbell(last_in_page(), std::span(other_order).first(8));
}

std::uint32_t DoorbellChecks::last_in_page() const {
  const auto& pci = context_.personality.layout.pci;
  return static_cast<std::uint32_t>((context_.log.last_offset() - pci.uar) % pci.uar_page_bytes);
}

std::optional<std::uint32_t> DoorbellChecks::swapped_position() const {
  return context_.terms.swapped_position(last_in_page(), context_.log.last_bytes());
}

void DoorbellChecks::rung(const nic::DoorbellRung& rung) {
  const auto found = context_.objects.qps.find(rung.qpn.value);
  if (found == context_.objects.qps.end()) return;
  auto& qp = found->second;
  if (qp.state == roce::QpState::reset || !qp.context.has_send) return;  // ignored() reports this doorbell
  const auto added = static_cast<std::uint16_t>(rung.producer - qp.announced);
  const auto ring = 1u << qp.context.log_send_blocks;
  // BlueFlame of a WQE that an earlier doorbell announced.
  if (rung.wqe_bytes != 0 && added > 0x8000) return;
  if (const auto swapped = swapped_position(); swapped && rung.wqe_bytes == 0)
    return context_.reports.add(
        FindingKind::wrong_endianness, {About::qp, rung.qpn.value},
        fmt::format("send doorbell of queue pair {}: producer is invalid; in big-endian order the value is {}",
                    rung.qpn.value, *swapped));
  if (added > ring)
    return context_.reports.add(
        FindingKind::past_ring, {About::qp, rung.qpn.value},
        fmt::format("send doorbell of queue pair {}: producer {} after {} announces {} blocks, but the ring has {}",
                    rung.qpn.value, rung.producer, qp.announced, added, ring));
  validate_announced(rung.qpn.value, qp, rung.producer);
  qp.announced = rung.producer;
}

// A driver writes its WQEs into the ring before the doorbell, for BlueFlame as well.
void DoorbellChecks::validate_announced(std::uint32_t qpn, QueuePair& qp, std::uint16_t producer) {
  auto position = qp.announced;
  for (unsigned i = 0; i < kMostValidated && position != producer; ++i) {
    const auto blocks = validate_wqe(qpn, qp, position);
    if (blocks == 0 || blocks > static_cast<std::uint16_t>(producer - position)) return;
    position = static_cast<std::uint16_t>(position + blocks);
  }
}

std::uint16_t DoorbellChecks::validate_wqe(std::uint32_t qpn, const QueuePair& qp, std::uint16_t position) {
  const auto& layout = context_.personality.layout;
  const auto ring = 1u << qp.context.log_send_blocks;
  const auto block_at = [&](std::uint16_t at) {
    return qp.context.send_ring + std::uint64_t{at & (ring - 1)} * layout.send_block();
  };
  std::vector<std::byte> wqe(layout.send_block());
  if (!context_.peek(qp.context.pasid, block_at(position), wqe)) return 0;
  auto& reports = context_.reports;
  const auto claims = context_.terms.claims_of(wqe, false);
  const auto where = fmt::format("queue pair {}, WQE {}", qpn, position);
  const auto older_index = static_cast<std::uint16_t>(position - ring);
  const auto doubt = [&](FindingKind kind, const std::string& what) {
    reports.add(kind, {About::qp, qpn}, fmt::format("{}: {}", where, what));
    return std::uint16_t{0};
  };
  // The length field distinguishes WQE 0 with zero fields from a blank slot.
  if (claims.blank)
    return doubt(FindingKind::stale_wqe, "the doorbell announces the WQE, but the block in memory is empty");
  if (claims.index != position || claims.qpn != qpn) {
    const auto swapped = context_.terms.claims_of(wqe, true);
    const bool index_turned = claims.index != position && swapped.index == position;
    const bool qpn_turned = claims.qpn != qpn && swapped.qpn == qpn;
    if ((index_turned || claims.index == position) && (qpn_turned || claims.qpn == qpn))
      return doubt(FindingKind::wrong_endianness,
                   index_turned ? fmt::format("wqe_index is {:#x}; in big-endian order the index is {}", claims.index,
                                              swapped.index)
                                : fmt::format("the WQE names queue pair {:#x}; in big-endian order the number is {}",
                                              claims.qpn, swapped.qpn));
    if (claims.qpn == qpn && claims.index == older_index)
      return doubt(FindingKind::stale_wqe,
                   fmt::format("the doorbell announces the WQE, but the block in memory still has the older WQE {}",
                               claims.index));
    return doubt(FindingKind::unsound_wqe,
                 fmt::format("the WQE in memory has index {} and names queue pair {}", claims.index, claims.qpn));
  }
  if (claims.opcode == nullptr) return doubt(FindingKind::unsound_wqe, "unknown opcode");
  const auto blocks = context_.personality.send_blocks(wqe);
  if (!blocks) return doubt(FindingKind::unsound_wqe, fmt::format("invalid length of {} bytes", claims.bytes));
  for (std::uint16_t i = 1; i < *blocks; ++i) {
    wqe.resize(wqe.size() + layout.send_block());
    const auto next = std::span(wqe).last(layout.send_block());
    if (!context_.peek(qp.context.pasid, block_at(static_cast<std::uint16_t>(position + i)), next)) return 0;
  }
  const auto whole = std::span(wqe).first(std::min<std::size_t>(claims.bytes, wqe.size()));
  if (const auto left = context_.terms.reserved_in_wqe(whole, qp.context.transport))
    reports.add(FindingKind::reserved_bytes, {About::qp, qpn},
                fmt::format("{} ({}): reserved byte {:#04x} of {} is {:#04x}{}", where, claims.opcode, left->offset,
                            left->layout, left->value, position >= ring ? ": left from an older WQE?" : ""));
  return *blocks;
}

void DoorbellChecks::armed(const nic::CqArmed& arm) {
  const auto found = context_.objects.cqs.find(arm.cqn);
  if (found == context_.objects.cqs.end()) return;
  auto& cq = found->second;
  if (const auto swapped = swapped_position())
    return context_.reports.add(
        FindingKind::wrong_endianness, {About::cq, arm.cqn},
        fmt::format("arm of completion queue {}: consumer is invalid; in big-endian order the value is {}", arm.cqn,
                    *swapped));
  if (const auto beyond = ahead(arm.consumer, cq.written); beyond > 0)
    return context_.reports.add(FindingKind::arm_past_producer, {About::cq, arm.cqn},
                                fmt::format("arm of completion queue {}: consumer {} is {} beyond the {} entries that "
                                            "the device has written: events are lost",
                                            arm.cqn, arm.consumer, beyond, cq.written));
  if (ahead(arm.consumer, cq.landed) > 0)
    context_.reports.add(FindingKind::body_before_owner, {About::cq, arm.cqn},
                         fmt::format("arm of completion queue {}: consumer {}, but the owner bit of entry {} is not "
                                     "valid yet: the driver took the entry too early",
                                     arm.cqn, arm.consumer, cq.landed));
  if (cq.resized_at && ahead(arm.consumer, *cq.resized_at) < 0)
    context_.reports.add(FindingKind::old_ring_position, {About::cq, arm.cqn},
                         fmt::format("arm of completion queue {}: consumer {} is before {}, the consumer at the "
                                     "resize: the index continues in the new ring",
                                     arm.cqn, arm.consumer, *cq.resized_at));
}

void DoorbellChecks::consumed(const nic::EqConsumed& consumed) {
  const auto found = context_.objects.eqs.find(consumed.eqn);
  if (found == context_.objects.eqs.end()) return;
  const auto written = found->second.written;
  if (const auto swapped = swapped_position())
    return context_.reports.add(
        FindingKind::wrong_endianness, {About::eq, consumed.eqn},
        fmt::format("doorbell of event queue {}: consumer is invalid; in big-endian order the value is {}",
                    consumed.eqn, *swapped));
  if (const auto beyond = ahead(consumed.consumer, written); beyond > 0)
    context_.reports.add(FindingKind::consumer_past_producer, {About::eq, consumed.eqn},
                         fmt::format("doorbell of event queue {}: consumer {} is {} beyond the {} events that the "
                                     "device has written",
                                     consumed.eqn, consumed.consumer, beyond, written));
}

void DoorbellChecks::refused(const nic::Refusal& refusal) {
  using What = nic::Refusal::What;
  using Why = nic::Refusal::Why;
  auto& reports = context_.reports;
  context_.log.refuse();
  const auto kind = refusal.what == What::cq_arm        ? ObjectKind::cq
                    : refusal.what == What::eq_doorbell ? ObjectKind::eq
                                                        : ObjectKind::qp;
  const auto place = context_.log.place(nic::HostAccess::Space::bar, refusal.address);
  if (refusal.why == Why::no_object) return no_object(kind, refusal);
  if (refusal.why == Why::wrong_page) {
    std::string own;
    if (const auto qp = context_.objects.qps.find(refusal.object);
        kind == ObjectKind::qp && qp != context_.objects.qps.end())
      own = fmt::format(": the object belongs to page {}", qp->second.context.uar_page);
    if (const auto cq = context_.objects.cqs.find(refusal.object);
        kind == ObjectKind::cq && cq != context_.objects.cqs.end())
      own = fmt::format(": the object belongs to page {}", cq->second.context.uar_page);
    if (kind == ObjectKind::eq) own = ": doorbells of event queues are on page 0";
    return reports.add(FindingKind::wrong_page, {about_of(kind), refusal.object},
                       fmt::format("doorbell of {} {} at {}{}", name_of(kind), refusal.object, place, own));
  }
  if (const auto* doorbell = context_.log.doorbell_at(refusal.address)) {
    const auto size = context_.log.last_size();
    if (doorbell->bytes != 0)
      return reports.add(
          FindingKind::wrong_width, {About::place, refusal.address},
          fmt::format("write of {} bytes at {}: the doorbell is one store of {} bytes", size, place, doorbell->bytes));
    return reports.add(FindingKind::unsound_wqe, {About::place, refusal.address},
                       fmt::format("write of {} bytes at {}: a BlueFlame is one whole WQE, in multiples of {} bytes",
                                   size, place, context_.personality.layout.send_block()));
  }
  reports.add(FindingKind::no_register, {About::place, refusal.address},
              fmt::format("write of {} bytes at {}: no doorbell at this offset", context_.log.last_size(), place));
}

void DoorbellChecks::no_object(ObjectKind kind, const nic::Refusal& refusal) {
  auto& reports = context_.reports;
  const auto& objects = context_.objects;
  const auto number = refusal.object;
  const Subject key{about_of(kind), number};
  const auto swapped = swapped_doorbell();
  if (swapped.sound && swapped.number != number && objects.exists(kind, swapped.number))
    return reports.add(FindingKind::wrong_endianness, key,
                       fmt::format("doorbell: {:#x} is no {}; in big-endian order the number is {}", number,
                                   name_of(kind), swapped.number));
  if (is_poison(number, kind == ObjectKind::eq ? 4 : 3))
    return reports.add(FindingKind::body_before_owner, key,
                       fmt::format("doorbell: {:#x} is no {}, but the pattern of an unwritten CQE: the driver read a "
                                   "CQE before the owner bit was valid",
                                   number, name_of(kind)));
  if (const auto at = objects.destroyed_at(kind, number))
    return reports.add(FindingKind::destroyed_object, key,
                       fmt::format("doorbell: {} {} was destroyed {}", name_of(kind), number, CheckContext::ago(*at)));
  reports.add(FindingKind::unknown_object, key, fmt::format("doorbell: there is no {} {}", name_of(kind), number));
}

void DoorbellChecks::ignored(const nic::DoorbellIgnored& ignored) {
  using Why = nic::Refusal::Why;
  const auto qpn = ignored.qpn.value;
  if (ignored.why == Why::past_ring) {
    if (context_.reports.has(FindingKind::wrong_endianness, {About::qp, qpn})) return;
    return context_.reports.add(
        FindingKind::past_ring, {About::qp, qpn},
        fmt::format("send doorbell of queue pair {} announces more blocks than its ring has", qpn));
  }
  context_.reports.add(FindingKind::wrong_state, {About::qp, qpn},
                       ignored.why == Why::no_send_queue
                           ? fmt::format("send doorbell of queue pair {}, which has no send queue", qpn)
                           : fmt::format("send doorbell of queue pair {}, which is in RESET", qpn));
}

}  // namespace rnicsim::driver_check
