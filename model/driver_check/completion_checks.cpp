// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/completion_checks.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace rnicsim::driver_check {

void CompletionChecks::written(const nic::CqeWritten& written) {
  const auto found = context_.objects.cqs.find(written.cqn.value);
  if (found == context_.objects.cqs.end()) return;
  auto& cq = found->second;
  const auto qp = context_.objects.qps.find(written.cqe.qpn);
  cq.entries.push_back({written.index, written.cqe.qpn, qp != context_.objects.qps.end() ? qp->second.life : 0});
  while (cq.entries.size() > 1u << cq.context.log_entries) cq.entries.pop_front();
  cq.written = (written.index + 1) & nic::kCounterMask;
  if (context_.params.poison && !cq.context.ignore_overrun) poison(cq, written.index);
}

// The slot belongs to the device until the entry lands, so the check may write to it.
void CompletionChecks::poison(const CompletionRing& cq, std::uint32_t position) {
  const auto bytes = context_.personality.layout.cqe;
  const auto at = cq.context.ring + std::uint64_t{position & ((1u << cq.context.log_entries) - 1)} * bytes;
  const std::vector<std::byte> body(bytes - context_.terms.owner_bytes(), std::byte{CheckParams::kPoison});
  context_.pcie.write(cq.context.pasid, at, body);
}

void CompletionChecks::landing(const MemoryRange& ring, std::uint64_t address, std::size_t bytes) {
  auto& cq = context_.objects.cqs.find(ring.number)->second;
  const auto entry = context_.personality.layout.cqe;
  // Owner bytes are at the end of an entry, and land in the order of the entries.
  const auto owners_before = [&](std::uint64_t at) {
    return (std::clamp(at, ring.address, ring.address + ring.bytes) - ring.address) / entry;
  };
  const auto count = owners_before(address + bytes) - owners_before(address);
  cq.landed = static_cast<std::uint32_t>(cq.landed + count) & nic::kCounterMask;
}

void CompletionChecks::pushing(std::uint32_t cqn) {
  auto& cq = context_.objects.cqs.find(cqn)->second;
  cq.landed_before = cq.landed;
}

void CompletionChecks::record_read(std::uint32_t cqn, std::span<const std::byte> record) {
  auto& cq = context_.objects.cqs.find(cqn)->second;
  const auto landed = std::exchange(cq.landed_before, std::nullopt).value_or(cq.landed);
  auto& reports = context_.reports;
  const auto consumer = context_.personality.cqes_consumed(record);
  const auto record_of = fmt::format("doorbell record of completion queue {}: consumer", cqn);
  if (const auto swapped = context_.terms.swapped_consumer(record))
    return reports.add(FindingKind::wrong_endianness, {About::cq, cqn},
                       fmt::format("{} is invalid; in big-endian order the value is {}", record_of, *swapped));
  if (const auto beyond = ahead(consumer, cq.written); beyond > 0)
    return reports.add(FindingKind::consumer_past_producer, {About::cq, cqn},
                       fmt::format("{} {} is {} beyond the {} entries that the device has written", record_of, consumer,
                                   beyond, cq.written));
  if (ahead(consumer, landed) > 0)
    reports.add(
        FindingKind::body_before_owner, {About::cq, cqn},
        fmt::format("{} {}, but the owner bit of entry {} is not valid yet: the driver took the entry too early",
                    record_of, consumer, landed));
  if (cq.resized_at && ahead(consumer, *cq.resized_at) < 0)
    reports.add(FindingKind::old_ring_position, {About::cq, cqn},
                fmt::format("{} {} is before {}, the consumer at the resize: the index continues in the new ring",
                            record_of, consumer, *cq.resized_at));
}

void CompletionChecks::event_written(const nic::EventTrace& event) {
  if (const auto eq = context_.objects.eqs.find(event.eqn); eq != context_.objects.eqs.end())
    eq->second.written = (eq->second.written + 1) & nic::kCounterMask;
  if (event.type == nic::EventType::cq_error) overran(event.number);
}

void CompletionChecks::overran(std::uint32_t cqn) {
  const auto found = context_.objects.cqs.find(cqn);
  if (found == context_.objects.cqs.end()) return;
  const auto& cq = found->second;
  std::vector<std::byte> record(context_.personality.layout.cq_record);
  if (!context_.peek(cq.context.pasid, cq.context.doorbell_record, record)) return;
  const auto consumer = context_.personality.cqes_consumed(record);
  if (context_.reports.has(FindingKind::wrong_endianness, {About::cq, cqn})) return;
  unsigned orphans = 0, unconsumed = 0;
  std::uint32_t orphan = 0;
  for (const auto& entry : cq.entries) {
    if (ahead(entry.position, consumer) < 0) continue;
    ++unconsumed;
    if (entry.life == 0 || context_.objects.lives(entry.qpn, entry.life)) continue;
    ++orphans;
    orphan = entry.qpn;
  }
  const auto head = fmt::format("completion queue {} overruns with consumer {} in the doorbell record", cqn, consumer);
  context_.reports.add(
      FindingKind::record_not_updated, {About::cq, cqn},
      orphans != 0 ? fmt::format("{}: {} of the {} later entries are of destroyed queue pairs, for example {}: did the "
                                 "driver remove these entries without an update of the record?",
                                 head, orphans, unconsumed, orphan)
      : consumer == cq.first
          ? fmt::format(
                "{}: the device wrote {} entries and the consumer never changed: the driver does not update the record",
                head, unconsumed)
          : fmt::format("{}: more work is in progress than the queue has entries ({}), or the driver updates the "
                        "record too late",
                        head, 1u << cq.context.log_entries));
}

}  // namespace rnicsim::driver_check
