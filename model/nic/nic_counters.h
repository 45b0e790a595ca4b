// SPDX-License-Identifier: Apache-2.0
// Counters of the NIC: the counters of its blocks.
#pragma once

#include "model/base/stats.h"
#include "model/nic/contexts/atomic_unit_params.h"
#include "model/nic/contexts/context_cache_params.h"
#include "model/nic/contexts/device_memory_params.h"
#include "model/nic/contexts/processing_units_params.h"
#include "model/nic/contexts/translation_cache_params.h"
#include "model/nic/contexts/translation_params.h"
#include "model/nic/contexts/window_unit_counters.h"
#include "model/nic/packets/loopback_params.h"
#include "model/nic/packets/notification_counters.h"
#include "model/nic/packets/packet_tx_params.h"
#include "model/nic/packets/port_params.h"
#include "model/nic/packets/receive/packet_rx_params.h"
#include "model/nic/packets/receive/raw_rx_params.h"
#include "model/nic/packets/receive/receive_buffer_params.h"
#include "model/nic/packets/receive/steering_counters.h"
#include "model/nic/pcie/dma_params.h"
#include "model/nic/pcie/pcie_endpoint_params.h"
#include "model/nic/queues/command_unit_counters.h"
#include "model/nic/queues/completion_counters.h"
#include "model/nic/queues/doorbell_counters.h"
#include "model/nic/queues/event_writer_counters.h"
#include "model/nic/queues/send_wqe_cache_params.h"
#include "model/nic/queues/shared_receives_counters.h"
#include "model/nic/queues/wqe_fetch_params.h"
#include "model/nic/seam/engine_counters.h"

namespace rnicsim::nic {

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
  NotificationCounters notification;
  PacketTxCounters tx;
  SteeringCounters steering;
  PacketRxCounters rx;
  ReceiveBufferCounters receive_buffer;
  RawRxCounters raw;
  PortCounters port;
  LoopbackCounters loopback;

  void describe(CounterVisitor& visit) const;
};

}  // namespace rnicsim::nic
