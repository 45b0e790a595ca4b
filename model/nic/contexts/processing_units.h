// The processing units, to send and to receive. A unit takes one packet at a time and is busy with it for a service
// time; a QP is at one unit at a time, so that its packets keep their order, and at whichever is free: QPs that wait
// take turns. What the pipeline around the units takes is the latency of packet_tx and packet_rx.
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

// A doorbell goes to the engine: its QP's context is at hand.
struct DoorbellTaken {
  Qpn qpn;
  std::uint16_t producer;
};

class ProcessingUnits : public sc_core::sc_module {
 public:
  ProcessingUnits(sc_core::sc_module_name name, const ProcessingUnitsParams& params, QpContexts& contexts);

  Output<std::uint32_t> transmit_free;    // this unit may take more
  Output<SendDoorbell> doorbell;          // of a QP whose context is here
  Output<PacketIn> packet;                // the same
  trace::Point<DoorbellTaken> doorbell_taken;

  [[gnu::flatten]] void ring(SendDoorbell&& doorbell);
  void transmit(const TransmitWork& work);
  void wanted(std::uint32_t unit);        // tell when it is free
  [[gnu::flatten]] void receive(PacketIn&& packet);
  void reset();

  const ProcessingUnitsCounters& counters() const { return counters_; }

 private:
  struct Arrival {
    PacketIn packet;
    Duration context_wait;
    Duration since;                       // it waits for its unit
  };
  struct Unit {
    Duration free;
    Qpn qpn{};                            // that is at it until then
    bool asked = false;                   // it is in freed_
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
  std::vector<Duration> context_waits_;   // of the next work to send, by QP
  std::vector<Unit> receive_;
  Duration away_until_;                   // a QP may be at another one than where it begins
  std::unordered_map<std::uint32_t, PooledList<Arrival>> waiting_;  // by QP, whose order shows nowhere
  Fifo<Qpn> ready_;                       // of these, those that are at no unit
  EventQueue<Freed> freed_{[this] { free_due(); }};      // units that something waits for
  ProcessingUnitsCounters counters_;
};

}  // namespace rnicsim::nic
