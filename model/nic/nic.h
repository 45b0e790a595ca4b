// The NIC: wires its blocks, and holds their parameters and counters.
#pragma once

#include <memory>
#include <string>

#include "model/base/policy.h"
#include "model/nic/contexts/atomic_unit.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/contexts/device_memory.h"
#include "model/nic/contexts/gather_scatter.h"
#include "model/nic/contexts/payload_memory.h"
#include "model/nic/contexts/processing_units.h"
#include "model/nic/contexts/qp_contexts.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/contexts/translation_cache.h"
#include "model/nic/contexts/window_unit.h"
#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/jittered_engine.h"
#include "model/nic/engine/timer_unit.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/packet_rx.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/packets/raw_rx.h"
#include "model/nic/packets/receive_buffer.h"
#include "model/nic/packets/steering.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/personality/personality.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/queues/event_writer.h"
#include "model/nic/queues/send_wqe_cache.h"
#include "model/nic/queues/shared_receives.h"
#include "model/nic/queues/wqe_fetch.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/congestion.h"

namespace rnicsim::nic {

struct NicParams {
  static constexpr const char* kIcrcWords[] = {"lazy", "always"};

  CapabilityParams capabilities;
  PcieEndpointParams pcie;
  DmaParams dma;
  ContextParams contexts;
  DeviceMemoryParams device_memory;
  TranslationParams translation;
  TranslationCacheParams atc;
  AtomicParams atomics;
  ProcessingUnitsParams units;
  SendWqeCacheParams send_wqes;
  ReceiveWqeParams receive_wqes;
  PacketTxParams tx;
  PacketRxParams rx;
  ReceiveBufferParams receive_buffer;
  RawRxParams raw;
  PortParams port;
  LoopbackParams loopback;
  JitterParams jitter;
  Duration adaptive_timeout{};
  std::string congestion = "none";
  std::string icrc{kIcrcWords[0]};
  bool timing_only = false;

  IcrcRule icrc_rule() const { return {.headers_only = timing_only, .always = icrc == kIcrcWords[1]}; }

  void describe(ParamVisitor& visit) {
    visit.group("capabilities", capabilities);
    visit.group("device", pcie);
    visit.group("pcie", dma);
    visit.group("contexts", contexts);
    visit.group("device_memory", device_memory);
    visit.group("translation", translation);
    visit.group("atc", atc);
    visit.group("atomics", atomics);
    visit.group("units", units);
    visit.group("send_wqes", send_wqes);
    visit.group("receive_wqes", receive_wqes);
    visit.group("tx", tx);
    visit.group("rx", rx);
    visit.group("receive_buffer", receive_buffer);
    visit.group("raw", raw);
    visit.group("port", port);
    visit.group("loopback", loopback);
    visit.group("jitter", jitter);
    visit.param("adaptive_timeout", adaptive_timeout,
                "what is not answered is sent again after so long, then after four times as long, and no retry is "
                "counted, until the queue pair's own timeout is shorter; 0: not before that",
                {0, 1e9});
    visit.param("congestion", congestion, "what holds a queue pair back, packet by packet",
                policy_names<roce::CongestionControl>());
    visit.param("icrc", icrc,
                "lazy: bytes and ICRC of a packet are made when somebody looks; always: they are made, parsed and "
                "checked, and nothing is different but the simulator's speed",
                kIcrcWords);
    visit.param("timing_only", timing_only,
                "payload is neither read nor written nor covered by the ICRC; what carries it takes its time");
  }
};

struct NicCounters {
  PcieEndpointCounters pcie;
  DoorbellCounters doorbell;
  CommandCounters command;
  ContextCounters contexts;
  WqeFetchCounters wqe_fetch;
  SharedReceiveCounters shared_receives;
  TranslationCounters translation;
  TranslationCacheCounters atc;
  WindowCounters windows;
  DmaCounters dma;
  DeviceMemoryCounters device_memory;
  AtomicCounters atomics;
  ProcessingUnitsCounters units;
  SendWqeCacheCounters send_wqes;
  EngineCounters engine;
  CompletionCounters completion;
  EventCounters events;
  PacketTxCounters tx;
  SteeringCounters steering;
  PacketRxCounters rx;
  ReceiveBufferCounters receive_buffer;
  RawRxCounters raw;
  PortCounters port;
  LoopbackCounters loopback;

  void describe(CounterVisitor& visit) const;
};

class Nic : public sc_core::sc_module {
 public:
  // `personality` outlives it.
  Nic(sc_core::sc_module_name name, const NicParams& params, const EngineFactory& make_engine = make_model_engine,
      const Personality& personality = rnic_personality());

  // --- To the host: PCIe.
  tlm_utils::simple_target_socket<PcieEndpoint>& bar() { return pcie.bar; }
  tlm_utils::simple_target_socket<PcieEndpoint>& config() { return pcie.config; }
  tlm_utils::simple_initiator_socket<PcieEndpoint>& dma() { return pcie.dma; }
  // --- To the network.
  Output<Frame>& frame_out() { return port.frame_out; }
  // Its last bit arrives in so long, and not before that of the frame before it.
  void receive(Frame&& frame, Duration delay = {}) { port.receive(std::move(frame), delay); }

  NicCounters counters() const;
  PortStatistics port_counters() const;    // what the driver may ask for
  // No write reaches host memory before this time, if nothing happens here before `next`.
  Duration quiet_until(Duration next) const { return dma_unit.quiet_until(next); }
  void describe_state(std::string& out) const { engine_->describe_state(out); }
  std::size_t sends_outstanding() const { return engine_->sends_outstanding(); }
  QpEngine& engine() { return *engine_; }
  // Seed of random replacement in the caches: the run's. Call before the first access; the default is 1.
  void seed(std::uint64_t seed) {
    contexts.seed(seed);
    translation_cache.seed(seed);
    send_wqes.seed(seed);
    wqe_fetch.seed(seed);
  }

 private:
  const NicParams params_;
  const CapabilityParams capabilities_;
  GidTable gids_;
  MulticastTable groups_;
  FlowTable flows_;
  RssTable scaling_;

 public:
  ReceiveBuffer receive_buffer;           // before all that holds frames of it
  // Blocks, for their trace points: doorbell.rung and its like, wqe_fetch.requested, tx.sent, raw.dropped,
  // rx.received, port.sent, loopback.sent, completion.written, events.written, command_unit.executed. Those of the
  // engine: engine().trace().
  PcieEndpoint pcie;
  Dma dma_unit;
  DeviceMemory device_memory;
  PayloadMemory payload_memory;
  ContextCache contexts;
  QpContexts qp_contexts;
  TranslationCache translation_cache;
  Translation translation;
  WindowUnit windows;
  GatherScatter gather_scatter;
  AtomicUnit atomic_unit;
  WqeFetcher wqe_fetch;
  EventWriter events;
  SharedReceives shared_receives;
  Completion completion;
  Doorbell doorbell;
  CommandUnit command_unit;
  TimerUnit timers;
  ProcessingUnits units;
  SendWqeCache send_wqes;

 private:
  std::unique_ptr<QpEngine> engine_;

 public:
  PacketTx tx;
  Steering steering;
  PacketRx rx;
  RawRx raw;
  Port port;
  Loopback loopback;

 private:
  void wire_host();
  void wire_engine();
  void wire_network();
  void execute(QpCommand&& command);
  void recover_receive(const Cqe& cqe);
  void fail_users_of(CqOverrun&& overrun);
  void forget_objects();
  void function_reset();
};

}  // namespace rnicsim::nic
