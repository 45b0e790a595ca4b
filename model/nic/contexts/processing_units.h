// SPDX-License-Identifier: Apache-2.0
// The processing units for sending and receiving. A unit handles one packet at a time and is busy for a service time. A
// QP occupies one unit at a time, so that its packets keep their order; any free unit will do, and waiting QPs take
// turns. The latency of the pipeline around the units is that of packet_tx and packet_rx.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/params.h"
#include "model/base/pooled_list.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/contexts/processing_units_params.h"
#include "model/nic/contexts/qp_contexts.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// The QP's context is available, and its doorbell goes to the engine.
struct DoorbellTaken {
  Qpn qpn;
  std::uint16_t producer;
};

class ProcessingUnits : public sc_core::sc_module {
 public:
  ProcessingUnits(sc_core::sc_module_name name, const ProcessingUnitsParams& params, QpContexts& contexts);

  Output<std::uint32_t> transmit_free;  // the unit accepts more work
  Output<SendDoorbell> doorbell;        // doorbell of a QP with a resident context
  Output<PacketIn> packet;              // packet of a QP with a resident context
  trace::Point<DoorbellTaken> doorbell_taken;

  [[gnu::flatten]] void ring(SendDoorbell&& doorbell);
  void transmit(const TransmitWork& work);
  void wanted(std::uint32_t unit);  // asks for transmit_free() when the unit is free
  [[gnu::flatten]] void receive(PacketIn&& packet);
  void reset();

  const ProcessingUnitsCounters& counters() const { return counters_; }

 private:
  struct Arrival {
    PacketIn packet;
    Duration context_wait;
    Duration since;  // when the packet began to wait for its unit
  };
  struct Unit {
    Duration free;
    Qpn qpn{};           // QP that occupies the unit until `free`
    bool asked = false;  // the unit is in freed_
  };
  struct Freed {
    bool transmit = false;
    std::uint32_t unit = 0;
  };

  void take(SendDoorbell&& rung);
  [[gnu::noinline]] void await_context(SendDoorbell&& rung);
  [[gnu::noinline]] void await_context(QpcClient client, PacketIn&& in);
  Duration lines_of(std::uint32_t payload) const;
  Duration service_of(const TransmitWork& work) const;
  Duration service_of(const PacketIn& packet) const;
  void enqueue(PacketIn&& in, Duration context_wait);
  [[gnu::noinline]] void wait(Unit* at, PacketIn&& in, Duration context_wait);
  Unit& first_unit_of(Qpn qpn);
  Unit* receive_unit_of(Qpn qpn);
  Unit* free_receive_unit(Qpn qpn);
  void serve(Unit& unit, PacketIn&& in, Duration context_wait);
  void serve_first(Unit& unit, Qpn qpn);
  void ask(Unit& unit);
  void free_due();
  void receive_free(Unit& unit);

  const ProcessingUnitsParams params_;
  QpContexts& contexts_;
  std::vector<Unit> transmit_;
  std::vector<Duration> context_waits_;  // added to the next packet sent, by unit of the QP
  std::vector<Unit> receive_;
  Duration away_until_;  // until then a QP may occupy another unit than its first one
  std::unordered_map<std::uint32_t, PooledList<Arrival>> waiting_;  // by QP; the order of iteration has no effect
  Fifo<Qpn> ready_;                                                 // QPs in waiting_ that occupy no unit
  EventQueue<Freed> freed_{[this] { free_due(); }};                 // units for which something waits
  ProcessingUnitsCounters counters_;
};

}  // namespace rnicsim::nic
