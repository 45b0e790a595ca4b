// SPDX-License-Identifier: Apache-2.0
#include "model/nic/engine/qp_context.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::nic {
namespace {

constexpr std::uint8_t kMaxTimeout = 31;
constexpr std::uint8_t kMaxRnrTimer = 31;
constexpr std::uint8_t kMaxRetry = 7;
constexpr std::uint8_t kMaxLogRing = 15;
constexpr std::uint8_t kLeastLogStride = 4;
constexpr std::uint8_t kOnlyPort = 1;
constexpr std::uint8_t kDefaultHopLimit = 64;
constexpr std::uint8_t kLeastMtu = 1;  // enum ibv_mtu
constexpr std::uint8_t kMigrated = 0;  // enum ibv_mig_state
constexpr std::uint32_t kMostQpn = 0xffffff;

void merge(QpContext& context, const QpContext& given, std::uint32_t mask) {
  using namespace roce::attr;
  if (mask & kSqdNotify) context.sqd_notify = given.sqd_notify;
  if (mask & kAccess) context.access_flags = given.access_flags;
  if (mask & kPkeyIndex) context.pkey_index = given.pkey_index;
  if (mask & kPort) context.port = given.port;
  if (mask & kQkey) context.qkey = given.qkey;
  if (mask & kPath) context.path = given.path;
  if (mask & kPathMtu) context.path_mtu = given.path_mtu;
  if (mask & kTimeout) context.timeout = given.timeout;
  if (mask & kRetryCount) context.retry_count = given.retry_count;
  if (mask & kRnrRetry) context.rnr_retry = given.rnr_retry;
  if (mask & kReceivePsn) context.receive_psn = given.receive_psn & roce::Psn::kMask;
  if (mask & kMaxRdAtomic) context.max_rd_atomic = given.max_rd_atomic;
  if (mask & kMinRnrTimer) context.min_rnr_timer = given.min_rnr_timer;
  if (mask & kSendPsn) context.send_psn = given.send_psn & roce::Psn::kMask;
  if (mask & kMaxDestRdAtomic) context.max_dest_rd_atomic = given.max_dest_rd_atomic;
  if (mask & kRemoteQpn) context.remote_qpn = given.remote_qpn & 0xffffff;
  if (mask & kRateLimit) {
    context.rate_limit = given.rate_limit;
    context.max_burst = given.max_burst;
  }
  if (mask & kStripVlan) context.strip_vlan = given.strip_vlan;
}

// Largest payload of a packet.
std::uint32_t most_payload(const QpContext& context, const QpLimits& limits) {
  return context.transport == roce::Transport::raw ? limits.max_frame : roce::mtu_bytes(context.path_mtu);
}

roce::LossRecovery recovery_of(const QpContext& context, const QpLimits& limits) {
  return roce::is_reliable(context.transport) ? limits.transport.loss_recovery() : roce::LossRecovery{};
}

}  // namespace

roce::SendAttributes send_attributes(Qpn qpn, const QpContext& context, const QpLimits& limits) {
  return {.transport = context.transport,
          .local = context.source_qpn != 0 ? Qpn{context.source_qpn} : qpn,
          .remote = {context.remote_qpn},
          .mtu = most_payload(context, limits),
          .max_rd_atomic = context.max_rd_atomic,
          .retry_count = context.retry_count,
          .rnr_retry = context.rnr_retry,
          .timeout = context.timeout,
          .recovery = recovery_of(context, limits)};
}

std::uint32_t max_message(const QpContext& context, const QpLimits& limits) {
  const auto mtu = roce::mtu_bytes(std::max(context.path_mtu, kLeastMtu));  // 0 while no path MTU is set
  const auto psns = std::uint64_t{roce::SendWindow::kMostPsns - 1} * mtu;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.max_message, psns));
}

SendRules send_rules(const QpContext& context, const QpLimits& limits) {
  const auto transport = context.transport;
  const bool raw = transport == roce::Transport::raw;
  const bool one_packet = raw || transport == roce::Transport::ud;
  return {.transport = transport,
          .least_message = raw ? std::uint32_t{roce::kEthernetBytes} : 0,
          .max_message = one_packet ? most_payload(context, limits) : max_message(context, limits),
          .max_tso = limits.max_tso,
          .max_headers = limits.max_tso_header,
          .qkey = context.qkey,
          .invalidate = limits.invalidate,
          .windows = limits.windows,
          .fast_register = limits.fast_register,
          .atomic_write = limits.atomic_write};
}

roce::ResponderAttributes responder_attributes(const QpContext& context, const QpLimits& limits) {
  return {.transport = context.transport,
          .remote = {context.remote_qpn},
          .mtu = most_payload(context, limits),
          .qkey = context.qkey,
          .access = context.access_flags,
          .max_dest_rd_atomic = context.max_dest_rd_atomic,
          .min_rnr_timer = context.min_rnr_timer,
          .max_message = max_message(context, limits),
          .invalidate = limits.invalidate,
          .atomic_write = limits.atomic_write,
          .recovery = recovery_of(context, limits)};
}

bool came_by_path(const PacketIn& packet, const QpContext& context) {
  // Called for each packet: a comparison of std::array would be a function call.
  const auto same = [](const roce::Gid& a, const roce::Gid& b) {
    return std::memcmp(a.data(), b.data(), sizeof(a)) == 0;
  };
  if (context.transport == roce::Transport::ud || context.transport == roce::Transport::raw) return true;
  return packet.gid_index == context.path.sgid_index && same(packet.packet->addresses.source, context.path.remote_gid);
}

void address(roce::FrameAddresses& addresses, const Path& path) {
  addresses.destination = path.remote_gid;
  addresses.destination_mac = path.remote_mac;
  addresses.traffic_class = path.traffic_class;
  addresses.hop_limit = path.hop_limit == 0 ? kDefaultHopLimit : path.hop_limit;
  addresses.flow_label = path.flow_label;
  addresses.service_level = path.service_level;
}

CommandStatus status_of(QpSyndrome syndrome) {
  switch (syndrome) {
    case QpSyndrome::none: return CommandStatus::ok;
    case QpSyndrome::transport:
    case QpSyndrome::migration: return CommandStatus::not_supported;
    default: return CommandStatus::bad_parameter;
  }
}

QpSyndrome check_fixed(const QpContext& context, const QpLimits& limits) {
  switch (context.transport) {
    case roce::Transport::rc: break;
    case roce::Transport::uc:
      if (!limits.uc) return QpSyndrome::transport;
      break;
    case roce::Transport::ud:
      if (!limits.ud) return QpSyndrome::transport;
      break;
    case roce::Transport::raw:
      if (!limits.raw) return QpSyndrome::transport;
      break;
    case roce::Transport::xrc_send:
    case roce::Transport::xrc_recv:
      if (!limits.xrc) return QpSyndrome::transport;
      break;
    default: return QpSyndrome::transport;
  }
  if (context.inline_receive > limits.max_inline_receive) return QpSyndrome::inline_receive;
  const bool send = context.has_send;
  const bool receive = context.has_receive;
  if (send && (context.log_send_blocks > kMaxLogRing || context.send_ring % kRingAlignment != 0))
    return QpSyndrome::ring;
  if (context.has_srq) {
    const bool has_one = context.transport == roce::Transport::rc || context.transport == roce::Transport::ud;
    if (receive || !has_one || !limits.srq) return QpSyndrome::shared_receives;
  }
  const bool receiver = context.transport == roce::Transport::xrc_recv;
  const bool extended = receiver || context.transport == roce::Transport::xrc_send;
  if (extended && (receive || (receiver && (send || context.inline_receive != 0)))) return QpSyndrome::xrc_queues;
  const bool raw = context.transport == roce::Transport::raw;
  if (const auto source = context.source_qpn; source != 0) {
    const bool has_one = context.transport == roce::Transport::ud && limits.source_qpn;
    if (!has_one || source > kMostQpn) return QpSyndrome::source_qpn;
  }
  if (!raw && (context.strip_vlan || context.scatter_fcs || context.pad_writes)) return QpSyndrome::frame_options;
  if (!receive) return QpSyndrome::none;
  const bool stride =
      context.log_receive_stride >= kLeastLogStride && context.log_receive_stride <= kMostLogReceiveStride;
  return context.log_receive_wqes <= kMaxLogRing && stride ? QpSyndrome::none : QpSyndrome::ring;
}

QpSyndrome check_values(const QpContext& given, std::uint32_t mask, const QpLimits& limits) {
  using namespace roce::attr;
  if ((mask & kPathMtu) && (given.path_mtu < 1 || given.path_mtu > limits.max_mtu)) return QpSyndrome::path_mtu;
  if ((mask & kMaxRdAtomic) && given.max_rd_atomic > limits.max_rd_atomic) return QpSyndrome::rd_atomic;
  if ((mask & kMaxDestRdAtomic) && given.max_dest_rd_atomic > limits.max_rd_atomic) return QpSyndrome::rd_atomic;
  if ((mask & kTimeout) && given.timeout > kMaxTimeout) return QpSyndrome::timeout;
  if ((mask & kMinRnrTimer) && given.min_rnr_timer > kMaxRnrTimer) return QpSyndrome::rnr_timer;
  if ((mask & kRetryCount) && given.retry_count > kMaxRetry) return QpSyndrome::retry_count;
  if ((mask & kRnrRetry) && given.rnr_retry > kMaxRetry) return QpSyndrome::retry_count;
  if ((mask & kPort) && given.port != kOnlyPort) return QpSyndrome::port;
  if (mask & kRateLimit) {
    const bool burst_alone = given.rate_limit == 0 && given.max_burst != 0;
    if (burst_alone || given.rate_limit > limits.max_rate_limit) return QpSyndrome::rate_limit;
  }
  // Automatic path migration is for subnets whose manager knows alternate paths; IP networks reroute below the NIC.
  const bool leaves = (mask & kMigration) && given.path_migration_state != kMigrated;
  if ((mask & kAlternatePath) || leaves) return QpSyndrome::migration;
  return QpSyndrome::none;
}

Modification validate_modify(const QpCommand& command, const QpContext& context, roce::QpState from, bool draining,
                             const QpLimits& limits) {
  using roce::QpState;
  using namespace roce::attr;
  const auto mask = command.attributes;
  const auto to = mask & kState ? command.context.state : from;
  if ((mask & kCurrentState) && command.current != from) return {QpSyndrome::current_state};
  switch (roce::check_transition(context.transport, from, to, mask)) {
    case roce::Transition::not_allowed: return {QpSyndrome::transition};
    case roce::Transition::missing_attribute: return {QpSyndrome::missing_attribute};
    case roce::Transition::extra_attribute: return {QpSyndrome::extra_attribute};
    case roce::Transition::ok: break;
  }
  if (draining && to != QpState::error && to != QpState::reset && to != QpState::sqd) return {QpSyndrome::draining};
  if (const auto bad = check_values(command.context, mask, limits); bad != QpSyndrome::none) return {bad};
  Modification modification{QpSyndrome::none, to, context};
  merge(modification.context, command.context, mask);
  // The request for the drain event holds for one drain only.
  if (to == QpState::sqd && from != to && !(mask & kSqdNotify)) modification.context.sqd_notify = 0;
  return modification;
}

}  // namespace rnicsim::nic
