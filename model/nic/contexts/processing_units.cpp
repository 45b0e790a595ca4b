#include "model/nic/contexts/processing_units.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "model/roce/opcode.h"

namespace rnicsim::nic {

void ProcessingUnitsParams::describe(ParamVisitor& visit) {
  visit.param("transmit_units", transmit_units,
              "units that send; a QP's is its number modulo them; docs/timing.md",
              {1, ProcessingUnitsCounters::kMostUnits});
  visit.param("receive_units", receive_units, "units that receive; docs/timing.md",
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
}

void ProcessingUnitsCounters::describe(CounterVisitor& visit) const {
  const auto busy = [&](const char* name, const auto& each, std::uint32_t units, const char* meaning) {
    const std::span used(each.data(), units);
    visit.busy(name, std::accumulate(used.begin(), used.end(), Counter{}), units, meaning, used);
  };
  visit.counter("transmit_operations", transmit_operations, "operations", "packets that transmit units made");
  busy("transmit_busy", transmit_busy_ps, transmit_units, "time that transmit units were busy, of all together");
  visit.counter("receive_packets", receive_packets, "packets", "packets that receive units took");
  busy("receive_busy", receive_busy_ps, receive_units, "time that receive units were busy, of all together");
  visit.counter("receive_waits", receive_waits, "packets", "of those, found their unit busy");
  visit.waited("receive_wait", receive_wait_ps, "time that they waited for it, of all together");
}

ProcessingUnits::ProcessingUnits(sc_core::sc_module_name name, const ProcessingUnitsParams& params,
                                 QpContexts& contexts)
    : sc_module(name),
      params_(params),
      contexts_(contexts),
      transmit_(params.transmit_units),
      receive_(params.receive_units),
      counters_{.transmit_units = params.transmit_units, .receive_units = params.receive_units} {}

void ProcessingUnits::take(SendDoorbell&& rung) {
  doorbell_taken({rung.qpn, rung.producer});
  doorbell(std::move(rung));
}

void ProcessingUnits::ring(SendDoorbell&& rung) {
  const auto qpn = rung.qpn;
  if (const auto wait = contexts_.touch(QpcClient::transmit, qpn)) {
    transmit_[unit_of(qpn, params_.transmit_units)].context_wait += *wait;
    return take(std::move(rung));
  }
  await_context(std::move(rung));
}

void ProcessingUnits::await_context(SendDoorbell&& rung) {
  const auto qpn = rung.qpn;
  contexts_.await(QpcClient::transmit, qpn, [this, rung = std::move(rung)]() mutable {
    transmit_[unit_of(rung.qpn, params_.transmit_units)].context_wait += contexts_.vain_look();
    take(std::move(rung));
  });
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
  auto& unit = transmit_[work.unit];
  const auto service = service_of(work) + std::exchange(unit.context_wait, Duration{});
  ++counters_.transmit_operations;
  counters_.transmit_busy_ps[work.unit] += static_cast<Counter>(service.ps);
  unit.free = now() + service;
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
  contexts_.await(client, qpn, [this, in = std::move(in)]() mutable {
    enqueue(std::move(in), contexts_.vain_look());
  });
}

void ProcessingUnits::enqueue(PacketIn&& in, Duration context_wait) {
  const auto number = unit_of(in.destination, params_.receive_units);
  auto& unit = receive_[number];
  if (unit.waiting.empty() && unit.free <= now()) return serve(number, std::move(in), context_wait);
  ++counters_.receive_waits;
  if (unit.waiting.empty()) freed_.push(unit.free, {false, number});
  contexts_.hold(in.destination);
  unit.waiting.push_back({std::move(in), context_wait, now()});
}

void ProcessingUnits::serve(std::uint32_t number, PacketIn&& in, Duration context_wait) {
  const auto service = service_of(in) + context_wait;
  ++counters_.receive_packets;
  counters_.receive_busy_ps[number] += static_cast<Counter>(service.ps);
  receive_[number].free = now() + service;
  packet(std::move(in));
}

void ProcessingUnits::free_due() {
  Freed freed;
  while (freed_.pop_due(freed)) {
    if (freed.transmit) {
      transmit_free(freed.unit);
      continue;
    }
    auto& unit = receive_[freed.unit];
    while (!unit.waiting.empty() && unit.free <= now()) {
      auto next = std::move(unit.waiting.front());
      unit.waiting.pop_front();
      const auto qpn = next.packet.destination;
      counters_.receive_wait_ps += static_cast<Counter>((now() - next.since).ps);
      serve(freed.unit, std::move(next.packet), next.context_wait);
      contexts_.release(qpn);
    }
    if (!unit.waiting.empty()) freed_.push(unit.free, freed);
  }
}

void ProcessingUnits::reset() {
  freed_.clear();
  std::ranges::fill(transmit_, TransmitUnit{});
  for (auto& unit : receive_) {
    unit.waiting.clear();
    unit.free = {};
  }
}

}  // namespace rnicsim::nic
