// SPDX-License-Identifier: Apache-2.0
// Software, queues and completions. Packets: assembler_packets.cpp.
#include "sim/waterfall/assembler.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostUnmatched = 1 << 16;  // limit of entries for doorbells that the device refused
constexpr std::uint32_t kIndexMask = nic::kCounterMask;

// Block indices count modulo 2^16.
bool before(std::uint16_t a, std::uint16_t b) { return static_cast<std::int16_t>(b - a) > 0; }

bool brings_payload(nic::SendOpcode opcode) {
  using enum nic::SendOpcode;
  return opcode == write || opcode == write_with_imm || opcode == send || opcode == send_with_imm ||
         opcode == send_with_inv;
}

}  // namespace

// --- Events of the CPU.

void Assembler::software(std::uint32_t host, const abi::Milestone& milestone) {
  if (milestone.kind == abi::MilestoneKind::polled) return polled(host, milestone);
  if (milestone.kind != abi::MilestoneKind::posted) return;
  auto& postings = queue(host, milestone.queue).postings;
  postings.push_back({static_cast<std::uint16_t>(milestone.position), milestone.count,
                      Duration{static_cast<std::int64_t>(milestone.time)}});
  if (postings.size() > kMostUnmatched) postings.pop_front();
}

// Time when the CPU began with the WQE at `index`, the next one taken; nullopt: unknown.
std::optional<Duration> Assembler::posted(std::uint32_t host, Queue& queue, std::uint16_t index) {
  auto& postings = queue.postings;
  while (!postings.empty() && postings.front().taken == 0 && before(postings.front().first, index))
    postings.pop_front();
  if (postings.empty()) return std::nullopt;
  auto& list = postings.front();
  if (list.taken == 0 && list.first != index) return std::nullopt;
  const auto at = list.at + costs_[host].post_wqe * list.taken;
  if (++list.taken >= list.count) postings.pop_front();
  return at;
}

void Assembler::polled(std::uint32_t host, const abi::Milestone& milestone) {
  auto& ring = hosts_[host].rings[milestone.queue];
  const auto at = Duration{static_cast<std::int64_t>(milestone.time)};
  // All entries before the consumer index have been polled.
  const auto left = (ring.next - milestone.position) & kIndexMask;
  while (ring.entries.size() > left) {
    auto entry = std::move(ring.entries.front());
    ring.entries.pop_front();
    if (!entry.draft) continue;
    entry.draft->at.set(Stage::poll, at);
    if (entry.draft->journey.one_way) queue(host, entry.qpn).seen = at;
    finish(*entry.draft);
  }
}

// --- Events of the device, until a WQE is taken.

void Assembler::doorbell(std::uint32_t host, Duration at, const nic::DoorbellRung& rung, Duration stored) {
  auto& doorbells = queue(host, rung.qpn.value).doorbells;
  doorbells.push_back({rung.producer, stored, at});
  if (doorbells.size() > kMostUnmatched) doorbells.pop_front();
}

void Assembler::doorbell_taken(std::uint32_t host, Duration at, const nic::DoorbellTaken& taken) {
  auto& doorbells = queue(host, taken.qpn.value).doorbells;
  auto found = doorbells.rend();
  for (auto it = doorbells.rbegin(); it != doorbells.rend() && !it->context; ++it)
    if (it->producer == taken.producer) found = it;
  if (found != doorbells.rend()) found->context = at;
}

void Assembler::wqe_taken(std::uint32_t host, Duration at, const nic::WqeTaken& wqe) {
  if (wqe.queue != nic::QueueKind::send) return;
  auto& own = queue(host, wqe.qpn.value);
  auto& doorbells = own.doorbells;
  while (!doorbells.empty() && !before(wqe.index, doorbells.front().producer)) doorbells.pop_front();
  // The QP was reset without an event that showed it: drop its old flights.
  if (!own.flights.empty() && own.flights.back().message + 1 != wqe.message) {
    own.flights.clear();
    own.answered = 0;
  }
  auto& flight = own.flights.emplace_back();
  flight.message = wqe.message;
  flight.first = wqe.first;
  flight.packets = wqe.packets;
  auto& journey = flight.draft.journey;
  journey = {.number = taken_++,
             .host = host,
             .peer = host,
             .qpn = wqe.qpn.value,
             .index = wqe.index,
             .opcode = wqe.opcode,
             .bytes = wqe.bytes,
             .start = at};
  auto& milestones = flight.draft.at;
  if (!doorbells.empty()) {
    const auto& ring = doorbells.front();
    journey.start = ring.stored;
    milestones.set(Stage::post, ring.stored);
    milestones.set(Stage::doorbell, ring.arrived);
    milestones.set(Stage::context, ring.context.value_or(ring.arrived));
  }
  milestones.set(Stage::fetch, at);
  if (const auto begun = posted(host, own, wqe.index)) journey.start = std::min(journey.start, *begun);
  if (own.seen && *own.seen <= journey.start) flight.draft.seen = std::exchange(own.seen, std::nullopt);
}

void Assembler::qp_reset(std::uint32_t host, nic::Qpn qpn) {
  auto& state = hosts_[host];
  state.queues.erase(qpn.value);
  // The driver removes the QP's entries from the rings, and moves the others up.
  for (auto& [cqn, ring] : state.rings)
    std::erase_if(ring.entries, [qpn](const Entry& entry) { return entry.qpn == qpn.value; });
}

// --- Events of completion.

void Assembler::send_completed(std::uint32_t host, Duration at, const nic::SendCompleted& completed) {
  auto& own = queue(host, completed.qpn.value);
  auto* flight = flight_of(own, completed.message);
  if (flight == nullptr) return;
  if (flight->unreliable && completed.ok) depart(*flight, at);
  auto draft = std::move(flight->draft);
  // A message without packets, such as a NOP, needs no answer.
  const bool followed = !flight->lost && (flight->answered || flight->packets == 0);
  const auto index = draft.journey.index;
  const auto done = static_cast<std::size_t>(flight - &own.flights.front()) + 1;
  own.flights.erase(own.flights.begin(), own.flights.begin() + static_cast<std::ptrdiff_t>(done));
  own.answered -= std::min(own.answered, done);
  if (!completed.ok) ++failed_;
  if (completed.ok && !followed) ++lost_, ++irregular_;
  const bool counts = completed.ok && followed;
  if (completed.cqe) {
    own.completing.push_back({index, counts ? std::optional(std::move(draft)) : std::nullopt});
  } else if (counts) {
    draft.at.set(Stage::cqe, at);
    finish(draft);
  }
}

void Assembler::cqe_written(std::uint32_t host, const nic::CqeWritten& written) {
  auto& own = queue(host, written.cqe.qpn);
  const auto opcode = written.cqe.opcode;
  const bool requester = opcode == nic::CqeOpcode::requester || opcode == nic::CqeOpcode::requester_error;
  auto& expected = requester ? own.completing : own.receiving;
  Entry entry{written.cqe.qpn};
  const auto found = std::ranges::find(expected, std::uint16_t{written.cqe.wqe_counter}, &Expected::index);
  if (found != expected.end()) {
    entry.draft = std::move(found->draft);
    expected.erase(expected.begin(), std::next(found));
  }
  auto& ring = hosts_[host].rings[written.cqn.value];
  if (written.index != ring.next) ring.entries.clear();
  ring.next = (written.index + 1) & kIndexMask;
  ring.entries.push_back(std::move(entry));
}

void Assembler::cqe_landed(std::uint32_t host, Duration at, const nic::CqeLanded& landed) {
  auto& ring = hosts_[host].rings[landed.cqn.value];
  const auto back = (ring.next - landed.index) & kIndexMask;
  if (back == 0 || back > ring.entries.size()) return;
  auto& entry = ring.entries[ring.entries.size() - back];
  if (entry.draft) entry.draft->at.set(Stage::cqe, at);
}

// The payload is visible to the peer's CPU, by a CQE or in memory.
void Assembler::tell_one_way(std::uint32_t host, Duration at, const nic::RequestPlaced& placed, Flight& flight,
                             const Attempt& attempt) {
  if (!std::exchange(flight.told_one_way, true)) tell_one_way(host, at, placed, flight.draft, attempt);
}

void Assembler::tell_one_way(std::uint32_t host, Duration at, const nic::RequestPlaced& placed, Draft draft,
                             const Attempt& attempt) {
  if (!brings_payload(draft.journey.opcode)) return;
  auto& journey = draft.journey;
  journey.one_way = true;
  journey.peer = host;
  draft.at.merge(attempt.at);
  if (draft.seen) {
    draft.at.set(Stage::turnaround, journey.start);
    journey.start = *draft.seen;
  }
  auto& peer = queue(host, placed.qpn.value);
  if (placed.receive) return void(peer.receiving.push_back({*placed.receive, std::move(draft)}));
  draft.at.set(Stage::poll, at + costs_[host].detect);
  peer.seen = at + costs_[host].detect;
  finish(draft);
}

void Assembler::finish(Draft& draft) {
  if (!draft.at.fill(draft.journey)) ++irregular_;
  if (!draft.journey.one_way) ++complete_;
  if (finished) finished(draft.journey);
}

}  // namespace rnicsim::sim
