// SPDX-License-Identifier: Apache-2.0
// Enumerations that the NIC's blocks share, independent of a device's layouts. Recordings contain these numbers.
#pragma once

#include <cstdint>

#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Cqn;
using roce::Qpn;

enum class SendOpcode : std::uint8_t {
  nop = 0x00,
  send_with_inv = 0x01,
  write = 0x08,
  write_with_imm = 0x09,
  send = 0x0a,
  send_with_imm = 0x0b,
  tso = 0x0e,
  atomic_write = 0x0f,
  read = 0x10,
  compare_swap = 0x11,
  fetch_add = 0x12,
  bind_window = 0x18,
  fast_register = 0x19,
  local_inv = 0x1b,
};

enum class CqeOpcode : std::uint8_t {
  requester = 0x0,
  receive_write_with_imm = 0x1,
  receive_send = 0x2,
  receive_send_with_imm = 0x3,
  receive_send_with_inv = 0x4,
  requester_error = 0xd,
  responder_error = 0xe,
};

enum class EventType : std::uint8_t {
  completion = 0x00,
  communication_established = 0x01,
  send_queue_drained = 0x02,
  last_wqe_reached = 0x03,
  srq_limit = 0x04,
  cq_error = 0x10,
  qp_fatal = 0x11,
  qp_request_error = 0x12,
  qp_access_error = 0x13,
  srq_error = 0x14,
  port_active = 0x20,
  port_error = 0x21,
  device_fatal = 0x22,
};

inline constexpr std::uint32_t kPortNumber = 1;

enum class HealthSyndrome : std::uint32_t {
  none = 0,
  injected = 1,              // by a fault rule of the simulation
  icm_access = 2,            // host memory refused a context write, other than a queue pair's
  event_queue_access = 3,    // host memory refused an event queue entry
  command_queue_access = 4,  // host memory refused the completion of a command
};

enum class CommandOpcode : std::uint16_t {
  query_device = 0x0100,
  initialize = 0x0101,
  teardown = 0x0102,
  map_icm = 0x0110,
  unmap_icm = 0x0111,
  query_port = 0x0120,
  set_gid = 0x0121,
  query_port_counters = 0x0122,
  create_eq = 0x0200,
  destroy_eq = 0x0201,
  create_cq = 0x0210,
  destroy_cq = 0x0211,
  query_cq = 0x0212,
  modify_cq = 0x0213,
  resize_cq = 0x0214,
  create_mpt = 0x0220,
  destroy_mpt = 0x0221,
  query_mpt = 0x0222,
  modify_mpt = 0x0223,
  create_qp = 0x0230,
  destroy_qp = 0x0231,
  modify_qp = 0x0232,
  query_qp = 0x0233,
  create_srq = 0x0240,
  destroy_srq = 0x0241,
  query_srq = 0x0242,
  modify_srq = 0x0243,
  attach_multicast = 0x0250,
  detach_multicast = 0x0251,
  create_rss = 0x0260,
  destroy_rss = 0x0261,
  create_flow = 0x0270,
  destroy_flow = 0x0271,
  create_counter = 0x0280,
  destroy_counter = 0x0281,
  query_counter = 0x0282,
};

enum class CommandStatus : std::uint8_t {
  ok = 0x00,
  internal_error = 0x01,
  bad_opcode = 0x02,
  bad_parameter = 0x03,
  bad_resource = 0x04,
  resource_busy = 0x05,
  exceeds_limit = 0x06,
  bad_state = 0x07,
  bad_input_length = 0x08,
  bad_output_length = 0x09,
  not_supported = 0x0a,
  bad_mailbox = 0x0b,
};

enum class DeviceStatus : std::uint32_t { initializing = 0, ready = 1, fatal = 2 };

// Tables of contexts in memory that the driver has lent.
enum class IcmTable : std::uint32_t { qpc = 0, cqc = 1, eqc = 2, mpt = 3, mtt = 4, srqc = 5 };
inline constexpr std::size_t kIcmTables = 6;

// Access rights of a key or a queue pair, as in enum ibv_access_flags.
namespace access {
inline constexpr std::uint32_t kLocalWrite = 1u << 0;
inline constexpr std::uint32_t kRemoteWrite = 1u << 1;
inline constexpr std::uint32_t kRemoteRead = 1u << 2;
inline constexpr std::uint32_t kRemoteAtomic = 1u << 3;
inline constexpr std::uint32_t kWindowBind = 1u << 4;
inline constexpr std::uint32_t kZeroBased = 1u << 5;
inline constexpr std::uint32_t kRelaxedOrdering = 1u << 20;
inline constexpr std::uint32_t kOnDemand = 1u << 6;
}  // namespace access

}  // namespace rnicsim::nic
