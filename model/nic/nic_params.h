// SPDX-License-Identifier: Apache-2.0
// Parameters of the NIC: those of its blocks, and those of the whole NIC.
#pragma once

#include <string>

#include "model/base/params.h"
#include "model/nic/capability_params.h"
#include "model/nic/contexts/atomic_unit_params.h"
#include "model/nic/contexts/context_cache_params.h"
#include "model/nic/contexts/device_memory_params.h"
#include "model/nic/contexts/processing_units_params.h"
#include "model/nic/contexts/translation_cache_params.h"
#include "model/nic/contexts/translation_params.h"
#include "model/nic/engine/adaptive_retransmission.h"
#include "model/nic/engine/congestion_params.h"
#include "model/nic/engine/jittered_engine_params.h"
#include "model/nic/engine/transport_params.h"
#include "model/nic/packets/loopback_params.h"
#include "model/nic/packets/packet_tx_params.h"
#include "model/nic/packets/port_params.h"
#include "model/nic/packets/receive/packet_rx_params.h"
#include "model/nic/packets/receive/raw_rx_params.h"
#include "model/nic/packets/receive/receive_buffer_params.h"
#include "model/nic/pcie/dma_params.h"
#include "model/nic/pcie/pcie_endpoint_params.h"
#include "model/nic/queues/send_wqe_cache_params.h"
#include "model/nic/queues/wqe_fetch_params.h"

namespace rnicsim::nic {

struct IcrcRule;

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
  AdaptiveRetransmissionParams adaptive_retransmission;
  TransportParams transport;
  CongestionParams congestion;
  std::string icrc{kIcrcWords[0]};
  bool timing_only = false;

  IcrcRule icrc_rule() const;

  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
