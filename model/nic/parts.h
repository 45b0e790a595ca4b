// SPDX-License-Identifier: Apache-2.0
// The NIC's blocks and their wiring.
#pragma once

#include <memory>

#include "model/nic/blocks.h"
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
#include "model/nic/nic_counters.h"
#include "model/nic/nic_params.h"
#include "model/nic/packets/gid_table.h"
#include "model/nic/packets/loopback.h"
#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/notification_point.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/packets/port.h"
#include "model/nic/packets/receive/packet_rx.h"
#include "model/nic/packets/receive/raw_rx.h"
#include "model/nic/packets/receive/receive_buffer.h"
#include "model/nic/packets/receive/steering.h"
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

namespace rnicsim::nic {

class NicParts {
 public:
  // `personality` must outlive the parts. Their parent is the module that is being constructed.
  NicParts(const NicParams& params, const EngineFactory& make_engine, const Personality& personality);

  NicCounters counters() const;
  PortStatistics port_counters() const;  // counters that the driver may query
  NicBlocks blocks();
  const QpEngine& engine() const { return *engine_; }
  void seed(std::uint64_t seed);
  void set_link(bool up);
  void fail(HealthSyndrome why);

 private:
  const NicParams params_;
  const CapabilityParams capabilities_;
  GidTable gids_;
  MulticastTable groups_;
  FlowTable flows_;
  RssTable scaling_;

 public:
  ReceiveBuffer receive_buffer;  // before all blocks that hold frames of it
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
  NotificationPoint notification;
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
  void grant_credits();
  void execute(QpCommand&& command);
  void recover_receive(const Cqe& cqe);
  void fail_users_of(CqOverrun&& overrun);
  void forget_objects();
  void stop_work();
  void function_reset();
};

}  // namespace rnicsim::nic
