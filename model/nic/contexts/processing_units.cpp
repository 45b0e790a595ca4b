// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/processing_units.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "model/roce/opcode.h"

namespace rnicsim::nic {
namespace {

constexpr Qpn kNobody{~0u};

}  // namespace

void ProcessingUnitsParams::describe(ParamVisitor& visit) {
  visit.param("transmit_units", transmit_units,
              "transmit units; each takes the next waiting queue pair; docs/timing.md",
              {1, ProcessingUnitsCounters::kMostUnits});
  visit.param("receive_units", receive_units, "receive units, with the same rule; docs/timing.md",
              {1, ProcessingUnitsCounters::kMostUnits});
  visit.param("write", write, "a unit sends an RDMA WRITE; 11 ns over all units, docs/timing.md", {0, 1e9});
  visit.param("send", send, "a unit sends a SEND; as a WRITE", {0, 1e9});
  visit.param("read", read, "a unit sends an RDMA READ; 16 ns over all units, docs/timing.md", {0, 1e9});
  visit.param("atomic", atomic, "a unit sends an atomic; as a READ", {0, 1e9});
  visit.param("read_response", read_response, "a unit begins the answer to a READ or an atomic; 8 ns over all units",
              {0, 1e9});
  visit.param("payload_reads", payload_reads, "packets of requests whose payload is read from memory at a time",
              {1, 65536});
  visit.param("read_ahead", read_ahead,
              "bytes of READ responses that a QP awaits from host memory, and 80 for each piece; tuned to CAL-9, "
              "docs/timing.md",
              {64, 1 << 20});
  visit.param("read_piece", read_piece, "bytes of a READ response that are asked for at a time", {64, 4096});
  visit.param("acknowledge", acknowledge, "a unit sends an ACK or NAK", {0, 1e9});
  visit.param("next_packet", next_packet, "a unit sends a further packet of a message", {0, 1e9});
  visit.param("receive_request", receive_request, "a unit takes a request; 8 ns over all units, docs/timing.md",
              {0, 1e9});
  visit.param("receive_atomic", receive_atomic, "a unit takes an atomic, which occupies it longer", {0, 1e9});
  visit.param("receive_response", receive_response, "a unit takes a response or an ACK", {0, 1e9});
  visit.param("receive_next", receive_next, "a unit takes a further packet of a message", {0, 1e9});
  visit.param("line", line, "a unit passes on each line of 64 B of payload but the first; docs/timing.md", {0, 1e9});
}

void ProcessingUnitsCounters::describe(CounterVisitor& visit) const {
  const auto busy = [&](const char* name, const auto& each, std::uint32_t units, const char* meaning) {
    const std::span used(each.data(), units);
    visit.busy(name, std::accumulate(used.begin(), used.end(), Counter{}), units, meaning, used);
  };
  visit.counter("transmit_operations", transmit_operations, "operations", "packets built by transmit units");
  busy("transmit_busy", transmit_busy_ps, transmit_units, "time that transmit units were busy, sum of all units");
  visit.counter("receive_packets", receive_packets, "packets", "packets processed by receive units");
  busy("receive_busy", receive_busy_ps, receive_units, "time that receive units were busy, sum of all units");
  visit.counter("receive_waits", receive_waits, "packets", "received packets that found their unit busy");
  visit.waited("receive_wait", receive_wait_ps, "time that received packets waited for a unit, sum of all packets");
}

ProcessingUnits::ProcessingUnits(sc_core::sc_module_name name, const ProcessingUnitsParams& params,
                                 QpContexts& contexts)
    : sc_module(name),
      params_(params),
      contexts_(contexts),
      transmit_(params.transmit_units),
      context_waits_(params.transmit_units),
      receive_(params.receive_units),
      counters_{.transmit_units = params.transmit_units, .receive_units = params.receive_units} {}

void ProcessingUnits::take(SendDoorbell&& rung) {
  doorbell_taken({rung.qpn, rung.producer});
  doorbell(std::move(rung));
}

void ProcessingUnits::ring(SendDoorbell&& rung) {
  const auto qpn = rung.qpn;
  if (const auto wait = contexts_.touch(QpcClient::transmit, qpn)) {
    context_waits_[unit_of(qpn, params_.transmit_units)] += *wait;
    return take(std::move(rung));
  }
  await_context(std::move(rung));
}

void ProcessingUnits::await_context(SendDoorbell&& rung) {
  const auto qpn = rung.qpn;
  contexts_.await(QpcClient::transmit, qpn, [this, rung = std::move(rung)]() mutable {
    context_waits_[unit_of(rung.qpn, params_.transmit_units)] += contexts_.vain_look();
    take(std::move(rung));
  });
}

Duration ProcessingUnits::lines_of(std::uint32_t payload) const {
  constexpr std::uint32_t kLine = 64;
  return payload <= kLine ? Duration{} : params_.line * ((payload - 1) / kLine);
}

Duration ProcessingUnits::service_of(const TransmitWork& work) const {
  using enum TransmitWork::Kind;
  if (!work.begins) return params_.next_packet;
  switch (work.kind) {
    case write: return params_.write;
    case send: return params_.send;
    case read: return params_.read;
    case atomic: return params_.atomic;
    case read_response: return params_.read_response;
    case acknowledge: return params_.acknowledge;
  }
  return {};
}

void ProcessingUnits::transmit(const TransmitWork& work) {
  auto& context_wait = context_waits_[unit_of(work.qpn, params_.transmit_units)];
  const auto service = service_of(work) + lines_of(work.payload) + std::exchange(context_wait, Duration{});
  ++counters_.transmit_operations;
  counters_.transmit_busy_ps[work.unit] += static_cast<Counter>(service.ps);
  transmit_[work.unit].free = now() + service;
}

void ProcessingUnits::wanted(std::uint32_t unit) {
  if (transmit_[unit].free <= now()) return transmit_free(unit);
  freed_.push(transmit_[unit].free, {true, unit});
}

Duration ProcessingUnits::service_of(const PacketIn& packet) const {
  const auto& row = roce::info(packet.headers().bth.opcode);
  if (!row.begins()) return params_.receive_next;
  if (row.response()) return params_.receive_response;
  return row.operation == roce::Operation::atomic ? params_.receive_atomic : params_.receive_request;
}

void ProcessingUnits::receive(PacketIn&& in) {
  const auto qpn = in.destination;
  const auto client = roce::info(in.headers().bth.opcode).response() ? QpcClient::response : QpcClient::responder;
  if (const auto wait = contexts_.touch(client, qpn)) return enqueue(std::move(in), *wait);
  await_context(client, std::move(in));
}

void ProcessingUnits::await_context(QpcClient client, PacketIn&& in) {
  const auto qpn = in.destination;
  contexts_.await(client, qpn, [this, in = std::move(in)]() mutable { enqueue(std::move(in), contexts_.vain_look()); });
}

void ProcessingUnits::enqueue(PacketIn&& in, Duration context_wait) {
  const auto qpn = in.destination;
  auto* at = receive_unit_of(qpn);
  if (at == nullptr && ready_.empty() && (waiting_.empty() || !waiting_.contains(qpn.value)))
    if (auto* unit = free_receive_unit(qpn)) return serve(*unit, std::move(in), context_wait);
  wait(at, std::move(in), context_wait);
}

ProcessingUnits::Unit& ProcessingUnits::first_unit_of(Qpn qpn) { return receive_[unit_of(qpn, params_.receive_units)]; }

// Queues the packet behind others of its QP: at the unit that the QP occupies, or until a unit is free.
void ProcessingUnits::wait(Unit* at, PacketIn&& in, Duration context_wait) {
  const auto qpn = in.destination;
  ++counters_.receive_waits;
  contexts_.hold(qpn);
  auto& packets = waiting_[qpn.value];
  packets.push_back({std::move(in), context_wait, now()});
  if (at != nullptr) return ask(*at);
  if (packets.size() > 1) return;
  ready_.push_back(Qpn(qpn));
  for (auto& unit : receive_) ask(unit);
}

// The unit that the QP occupies; nullptr: none.
ProcessingUnits::Unit* ProcessingUnits::receive_unit_of(Qpn qpn) {
  const auto is_at = [qpn](const Unit& unit) { return unit.qpn == qpn && unit.free > now(); };
  if (auto& first = first_unit_of(qpn); is_at(first)) return &first;
  if (away_until_ <= now()) return nullptr;
  const auto at = std::ranges::find_if(receive_, is_at);
  return at == receive_.end() ? nullptr : &*at;
}

// The QP's first unit if it is free, else another free unit; nullptr: none. Units for which something waits are not
// free.
ProcessingUnits::Unit* ProcessingUnits::free_receive_unit(Qpn qpn) {
  const auto is_free = [](const Unit& unit) { return unit.free <= now() && !unit.asked; };
  auto& first = first_unit_of(qpn);
  if (is_free(first)) return &first;
  const auto free = std::ranges::find_if(receive_, is_free);
  return free == receive_.end() ? nullptr : &*free;
}

void ProcessingUnits::serve(Unit& unit, PacketIn&& in, Duration context_wait) {
  const auto service = service_of(in) + lines_of(in.payload().size()) + context_wait;
  ++counters_.receive_packets;
  counters_.receive_busy_ps[static_cast<std::size_t>(&unit - receive_.data())] += static_cast<Counter>(service.ps);
  unit.qpn = in.destination;
  unit.free = now() + service;
  if (&unit != &first_unit_of(unit.qpn)) away_until_ = std::max(away_until_, unit.free);
  packet(std::move(in));
}

void ProcessingUnits::serve_first(Unit& unit, Qpn qpn) {
  const auto found = waiting_.find(qpn.value);
  auto next = std::move(found->second.front());
  found->second.pop_front();
  const bool more = !found->second.empty();
  if (!more) waiting_.erase(found);
  counters_.receive_wait_ps += static_cast<Counter>((now() - next.since).ps);
  serve(unit, std::move(next.packet), next.context_wait);
  contexts_.release(qpn);
  if (more) ask(unit);
}

// Schedules receive_free() for the time when the unit is free.
void ProcessingUnits::ask(Unit& unit) {
  if (std::exchange(unit.asked, true)) return;
  freed_.push(std::max(unit.free, now()), {false, static_cast<std::uint32_t>(&unit - receive_.data())});
}

void ProcessingUnits::free_due() {
  Freed freed;
  while (freed_.pop_due(freed)) freed.transmit ? transmit_free(freed.unit) : receive_free(receive_[freed.unit]);
}

// The QP that occupied the unit queues behind the QPs that wait for a unit.
void ProcessingUnits::receive_free(Unit& unit) {
  unit.asked = false;
  if (!waiting_.empty() && waiting_.contains(unit.qpn.value)) ready_.push_back(Qpn(unit.qpn));
  unit.qpn = kNobody;
  if (ready_.empty()) return;
  const auto next = ready_.front();
  ready_.pop_front();
  serve_first(unit, next);
  if (!ready_.empty()) ask(unit);
}

void ProcessingUnits::reset() {
  freed_.clear();
  ready_.clear();
  waiting_.clear();
  std::ranges::fill(transmit_, Unit{});
  std::ranges::fill(context_waits_, Duration{});
  std::ranges::fill(receive_, Unit{});
  away_until_ = {};
}

}  // namespace rnicsim::nic
