// SPDX-License-Identifier: Apache-2.0
// A queue pair's context in the transport's form, and the rules for modify commands.
#pragma once

#include <cstdint>
#include <string>

#include "model/base/ports/priority_map.h"
#include "model/base/units.h"
#include "model/nic/engine/adaptive_retransmission.h"
#include "model/nic/engine/congestion_params.h"
#include "model/nic/engine/transport_params.h"
#include "model/nic/engine/wqe.h"
#include "model/nic/personality/personality.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/qp_state.h"
#include "model/roce/responders/responder.h"
#include "model/roce/send_window.h"

namespace rnicsim::nic {

struct QpLimits {
  std::uint8_t max_mtu = 5;  // enum ibv_mtu
  std::uint8_t max_rd_atomic = 16;
  std::uint32_t max_message = 1u << 30;
  std::uint32_t max_inline_receive = 32;
  bool invalidate = true;  // SEND with invalidate, and local invalidate
  bool windows = true;
  bool fast_register = true;
  bool atomic_write = true;
  bool uc = true;
  bool ud = true;
  bool source_qpn = true;  // UD: another QP's number as source
  bool raw = true;
  std::uint32_t max_frame = 9018;    // bytes of a raw frame, without FCS
  std::uint32_t max_tso = 1u << 18;  // bytes of one WQE that is sent in segments
  std::uint32_t max_tso_header = 256;
  std::uint32_t max_rate_limit = 100'000'000;  // kb/s
  bool srq = true;                             // shared receive queues
  bool xrc = true;
  std::uint32_t transmit_units = 1;
  // Payload of one priority that may wait for the port. Above it no packet of the priority begins.
  std::uint32_t queue_bytes = 16384;
  std::uint32_t sends_ahead = 20;     // WQEs of a QP that are stored until their turn
  std::uint32_t receives_ahead = 32;  // WQEs of the receive ring per read
  std::uint32_t payload_reads = 256;  // payloads of requests that are read concurrently
  std::uint32_t read_ahead = 6656;    // bytes of READ responses that a QP may await
  std::uint32_t read_piece = 1024;    // bytes per read for READ responses
  Duration adaptive_timeout{};        // 0: no adaptive timeout
  AdaptiveRetransmissionParams adaptive_retransmission{};
  TransportParams transport{};
  CongestionParams congestion{};
  PriorityMap priorities{};          // map of the port
  BitRate line{100'000'000'000};     // rate of the port
  std::uint32_t line_overhead = 24;  // bytes that a frame takes on the line beyond itself
  Duration receive_latency{};        // time from a packet's last bit to the engine
  const Personality* personality = &rnic_personality();
};

// Reasons for refusing a command on a queue pair (CommandResult::syndrome; docs/device.md).
enum class QpSyndrome : std::uint32_t {
  none = 0,
  transition = 0x101,
  missing_attribute = 0x102,
  extra_attribute = 0x103,
  current_state = 0x104,
  path_mtu = 0x105,
  rd_atomic = 0x106,
  timeout = 0x107,
  rnr_timer = 0x108,
  port = 0x109,
  transport = 0x10a,
  ring = 0x10b,
  draining = 0x10c,
  migration = 0x10d,
  retry_count = 0x10e,
  inline_receive = 0x10f,
  shared_receives = 0x118,
  frame_options = 0x119,
  rate_limit = 0x11a,
  source_qpn = 0x11b,
  xrc_queues = 0x11c,
};

roce::SendAttributes send_attributes(Qpn qpn, const QpContext& context, const QpLimits& limits);
// Longest message: the device's limit, and fewer packets than half of all PSNs.
std::uint32_t max_message(const QpContext& context, const QpLimits& limits);
SendRules send_rules(const QpContext& context, const QpLimits& limits);
roce::ResponderAttributes responder_attributes(const QpContext& context, const QpLimits& limits);
// A connected QP accepts packets from its peer only, and at its own address only.
bool came_by_path(const PacketIn& packet, const QpContext& context);
// Writes destination and path attributes.
void address(roce::FrameAddresses& addresses, const Path& path);

CommandStatus status_of(QpSyndrome syndrome);
QpSyndrome check_fixed(const QpContext& context, const QpLimits& limits);
QpSyndrome check_values(const QpContext& attributes, std::uint32_t mask, const QpLimits& limits);

// Result of a modify command. If it is not refused, the QP gets this context and state.
struct Modification {
  QpSyndrome refused = QpSyndrome::none;
  roce::QpState to{};
  QpContext context{};
};
// `from`: present state; `draining`: the send queue is draining.
Modification validate_modify(const QpCommand& command, const QpContext& context, roce::QpState from, bool draining,
                             const QpLimits& limits);

}  // namespace rnicsim::nic
