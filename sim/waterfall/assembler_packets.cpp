// SPDX-License-Identifier: Apache-2.0
// Packets of a message, from the transmit unit to the answer.
#include <algorithm>
#include <utility>

#include "sim/waterfall/assembler.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostAttempts = 8;        // limit; a new attempt replaces the oldest
constexpr std::size_t kMostAnswers = 1 << 16;   // limit, for a requester that takes none of them
constexpr std::size_t kMostDeparted = 1 << 16;  // limit, because lost packets never arrive
constexpr std::size_t kMostArriving = 64;   // limit for a queue pair: taken, and neither placed nor known as dropped
constexpr std::size_t kAnswersBehind = 64;  // limit of older answers, lost or late, kept after one was taken

}  // namespace

Assembler::Flight* Assembler::flight_of(Queue& queue, std::uint64_t message) {
  auto& flights = queue.flights;
  if (flights.empty() || message < flights.front().message) return nullptr;
  const auto index = message - flights.front().message;
  return index < flights.size() ? &flights[index] : nullptr;
}

// Flight with this PSN; nullptr: none.
Assembler::Flight* Assembler::flight_at(Queue& queue, roce::Psn psn) {
  auto& flights = queue.flights;
  const auto found =
      std::ranges::partition_point(flights, [psn](const Flight& flight) { return distance(flight.end(), psn) >= 0; });
  if (found == flights.end() || before(psn, found->first)) return nullptr;
  return &*found;
}

// Attempt with this frame; `frame` 0: the attempt that has no frame yet.
Assembler::Attempt* Assembler::attempt_of(Queue& queue, roce::Psn psn, std::uint64_t frame) {
  auto* flight = flight_at(queue, psn);
  if (flight == nullptr) return nullptr;
  for (auto& attempt : flight->attempts)
    if (attempt.psn == psn && attempt.frame == frame) return &attempt;
  return nullptr;
}

Assembler::Queue* Assembler::requester_of(std::uint32_t host, nic::Qpn responder) {
  const auto& sender = queue(host, responder.value).sender;
  return sender ? &queue(sender->host, sender->qpn) : nullptr;
}

void Assembler::request_began(std::uint32_t host, Duration at, const nic::RequestBegan& began) {
  auto* flight = flight_of(queue(host, began.qpn.value), began.message);
  if (flight == nullptr) return;
  if (!flight->begun) flight->draft.at.set(Stage::unit, at);
  // A PSN that is not later than the last one means a retransmission.
  if (!std::exchange(flight->begun, true) || !before(flight->last_begun, began.psn)) flight->run_begun = at;
  flight->last_begun = began.psn;
  if (began.end != flight->end()) return;
  auto& attempts = flight->attempts;
  if (!attempts.empty() && attempts.back().frame == 0) attempts.pop_back();  // the attempt never left the engine
  if (attempts.size() == kMostAttempts) attempts.erase(attempts.begin());
  auto& attempt = attempts.emplace_back(Attempt{began.psn, began.gather});
  attempt.at.set(Stage::retry, flight->run_begun);
  attempt.at.set(Stage::packets, at);
  if (began.gather) hosts_[host].gathers.insert_or_assign(*began.gather, std::pair(began.qpn.value, began.message));
}

void Assembler::translated(std::uint32_t host, Duration at, nic::Tag tag) {
  auto& gathers = hosts_[host].gathers;
  const auto found = gathers.find(tag);
  if (found == gathers.end()) return;
  const auto [qpn, message] = found->second;
  gathers.erase(found);
  auto* flight = flight_of(queue(host, qpn), message);
  if (flight == nullptr || flight->attempts.empty()) return;
  if (auto& attempt = flight->attempts.back(); attempt.gather == tag) attempt.at.set(Stage::translation, at);
}

void Assembler::packet_sent(std::uint32_t host, Duration at, const nic::PacketTrace& packet,
                            std::optional<std::uint32_t> to) {
  const auto& bth = packet.headers.bth;
  const auto& row = roce::info(bth.opcode);
  auto& sending = hosts_[host].sending;
  if (row.response()) {
    if (!to) return;
    sending.insert_or_assign(packet.frame, Sending{{*to, bth.destination.value}, true});
    auto& answers = queue(*to, bth.destination.value).answers;
    answers.push_back({packet.frame, at});
    if (answers.size() > kMostAnswers) answers.pop_front();
    return;
  }
  if (to) queue(*to, bth.destination.value).sender = QueueName{host, packet.qpn.value};
  auto& own = queue(host, packet.qpn.value);
  auto* attempt = attempt_of(own, bth.psn, 0);
  if (attempt == nullptr) return;
  auto& flight = *flight_at(own, bth.psn);
  flight.unreliable = !roce::is_reliable(row.transport);
  if (to) flight.draft.journey.peer = *to;
  attempt->frame = packet.frame;
  attempt->at.set(Stage::dma, at);
  sending.insert_or_assign(packet.frame, Sending{{host, packet.qpn.value}, false, bth.psn});
}

void Assembler::frame_scheduled(std::uint32_t host, const nic::FrameScheduled& frame) {
  auto& waiting = hosts_[host].sending;
  const auto found = waiting.find(frame.frame);
  if (found == waiting.end()) return;
  const auto sending = found->second;
  waiting.erase(found);
  auto& requester = queue(sending.requester.host, sending.requester.qpn);
  if (sending.answer) {
    const auto answer = std::ranges::lower_bound(requester.answers, frame.frame, {}, &Answer::frame);
    if (answer != requester.answers.end() && answer->frame == frame.frame) answer->begins = frame.begins;
  } else if (auto* attempt = attempt_of(requester, sending.psn, frame.frame)) {
    attempt->at.set(Stage::tx, frame.begins);
  }
}

void Assembler::packet_received(std::uint32_t host, const nic::PacketTrace& packet) {
  const auto& bth = packet.headers.bth;
  if (packet.frame == 0) return;
  if (roce::info(bth.opcode).response()) {
    auto& answers = queue(host, packet.qpn.value).answers;
    const auto found = std::ranges::lower_bound(answers, packet.frame, {}, &Answer::frame);
    if (found != answers.end() && found->frame == packet.frame && !found->arrived) found->arrived = packet.arrived;
    return;
  }
  auto* requester = requester_of(host, packet.qpn);
  auto* attempt = requester != nullptr ? attempt_of(*requester, bth.psn, packet.frame) : nullptr;
  if (attempt != nullptr && !attempt->at.has(Stage::wire)) attempt->at.set(Stage::wire, packet.arrived);
  if (const auto found = departed_.find(packet.frame); found != departed_.end())
    found->second.attempt.at.set(Stage::wire, packet.arrived);
}

void Assembler::request_taken(std::uint32_t host, Duration at, const nic::RequestTaken& taken) {
  auto* requester = taken.frame != 0 ? requester_of(host, taken.qpn) : nullptr;
  auto* attempt = requester != nullptr ? attempt_of(*requester, taken.psn, taken.frame) : nullptr;
  if (attempt != nullptr && !attempt->at.has(Stage::rx)) attempt->at.set(Stage::rx, at);
  const auto found = departed_.find(taken.frame);
  if (found == departed_.end()) return;
  found->second.attempt.at.set(Stage::rx, at);
  auto& arriving = queue(host, taken.qpn.value).arriving;
  arriving.push_back(std::move(found->second));
  departed_.erase(found);
  if (arriving.size() > kMostArriving) arriving.pop_front();
}

void Assembler::request_placed(std::uint32_t host, Duration at, const nic::RequestPlaced& placed) {
  auto* requester = requester_of(host, placed.qpn);
  auto* flight = requester != nullptr ? flight_at(*requester, placed.psn) : nullptr;
  if (flight == nullptr) return departed_placed(host, at, placed);
  auto& attempts = flight->attempts;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (attempt->psn != placed.psn || !attempt->at.has(Stage::rx) || attempt->at.has(Stage::placement)) continue;
    attempt->at.set(Stage::placement, at);
    return tell_one_way(host, at, placed, *flight, *attempt);
  }
  departed_placed(host, at, placed);
}

// Packets that arrived before this one were dropped.
void Assembler::departed_placed(std::uint32_t host, Duration at, const nic::RequestPlaced& placed) {
  auto& arriving = queue(host, placed.qpn.value).arriving;
  const auto found = std::ranges::find(arriving, placed.psn, [](const Departed& one) { return one.attempt.psn; });
  if (found == arriving.end()) return;
  auto departed = std::move(*found);
  arriving.erase(arriving.begin(), std::next(found));
  departed.attempt.at.set(Stage::placement, at);
  tell_one_way(host, at, placed, std::move(departed.draft), departed.attempt);
}

// The message's own journey continues with its completion; the one-way journey is reported on arrival.
void Assembler::depart(Flight& flight, Duration at) {
  if (flight.attempts.empty() || !flight.attempts.back().at.has(Stage::tx)) return;
  const auto& attempt = flight.attempts.back();
  departed_.insert_or_assign(attempt.frame, Departed{flight.draft, attempt});
  if (departed_.size() > kMostDeparted) departed_.erase(departed_.begin());
  flight.draft.at.merge(attempt.at);
  flight.draft.at.set(Stage::wire, at);
  flight.answered = true;
}

void Assembler::answer_taken(std::uint32_t host, Duration at, const nic::AnswerTaken& taken) {
  auto& own = queue(host, taken.qpn.value);
  const auto found = std::ranges::lower_bound(own.answers, taken.frame, {}, &Answer::frame);
  const bool known = found != own.answers.end() && found->frame == taken.frame && found->arrived;
  while (own.answered < own.flights.size()) {
    auto& flight = own.flights[own.answered];
    if (distance(flight.end(), taken.oldest) < 0) break;
    // A message without packets needs no answer.
    if (flight.packets != 0) settle(flight, known ? &*found : nullptr, at);
    ++own.answered;
  }
  if (!known) return;
  const auto behind = static_cast<std::size_t>(found - own.answers.begin());
  own.answers.erase(found);
  if (behind > kAnswersBehind)
    own.answers.erase(own.answers.begin(), own.answers.begin() + static_cast<std::ptrdiff_t>(behind - kAnswersBehind));
}

// The answer belongs to the latest attempt that the responder had finished when it sent the answer.
void Assembler::settle(Flight& flight, const Answer* answer, Duration at) {
  flight.answered = true;
  const bool read = flight.draft.journey.opcode == nic::SendOpcode::read;
  const auto stage = read ? Stage::rx : Stage::placement;
  const auto& attempts = flight.attempts;
  const auto attempt = std::find_if(attempts.rbegin(), attempts.rend(), [&](const Attempt& candidate) {
    return answer != nullptr && candidate.at.has(stage) && candidate.at[stage] <= answer->sent;
  });
  flight.lost = attempt == attempts.rend();
  if (flight.lost) return;
  auto& milestones = flight.draft.at;
  milestones.merge(attempt->at);
  // A READ has no placement at the responder: its data are ready when the answer is sent.
  if (read) milestones.set(Stage::placement, answer->sent);
  milestones.set(Stage::answer_tx, answer->begins);
  milestones.set(Stage::answer_wire, *answer->arrived);
  milestones.set(Stage::answer_rx, at);
}

void Assembler::answer_placed(std::uint32_t host, Duration at, const nic::AnswerPlaced& placed) {
  if (auto* flight = flight_of(queue(host, placed.qpn.value), placed.message)) flight->draft.at.set(Stage::scatter, at);
}

}  // namespace rnicsim::sim
