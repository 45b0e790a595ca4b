// SPDX-License-Identifier: Apache-2.0
// Files with a port's counters below /sys/class/infiniband/DEVICE/ports/1, the same files as mlx5's.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "model/abi/command.h"

namespace rnicsim::abi {

struct PortCounterFile {
  std::string_view folder;
  std::string_view name;
  Be64 PortCounters::*counter = nullptr;  // nullptr: the device has no such counter
  Be64 PortCounters::*less = nullptr;     // counter to subtract; nullptr: none
  std::uint32_t unit = 1;                 // unit in which the file counts
  std::uint64_t constant = 0;             // value without a counter

  std::uint64_t value(const PortCounters& counters) const {
    if (counter == nullptr) return constant;
    const std::uint64_t all = counters.*counter;
    return (all - (less != nullptr ? std::uint64_t(counters.*less) : 0)) / unit;
  }
};

inline constexpr std::string_view kPortCounterFolder = "counters", kHardwareCounterFolder = "hw_counters";
inline constexpr std::uint32_t kDataUnit = 4;  // bytes; unit of IBTA's PortXmitData and PortRcvData

inline constexpr PortCounterFile kPortCounterFiles[] = {
    {kPortCounterFolder, "VL15_dropped"},
    {kPortCounterFolder, "excessive_buffer_overrun_errors"},
    {kPortCounterFolder, "link_downed"},
    {kPortCounterFolder, "link_error_recovery"},
    {kPortCounterFolder, "local_link_integrity_errors"},
    {kPortCounterFolder, "multicast_rcv_packets", &PortCounters::received_from_groups},
    {kPortCounterFolder, "multicast_xmit_packets", &PortCounters::transmitted_to_groups},
    {kPortCounterFolder, "port_rcv_constraint_errors"},
    {kPortCounterFolder, "port_rcv_data", &PortCounters::received_bytes, nullptr, kDataUnit},
    {kPortCounterFolder, "port_rcv_errors", &PortCounters::receive_errors},
    {kPortCounterFolder, "port_rcv_packets", &PortCounters::received_packets},
    {kPortCounterFolder, "port_rcv_remote_physical_errors"},
    {kPortCounterFolder, "port_rcv_switch_relay_errors"},
    {kPortCounterFolder, "port_xmit_constraint_errors"},
    {kPortCounterFolder, "port_xmit_data", &PortCounters::transmitted_bytes, nullptr, kDataUnit},
    {kPortCounterFolder, "port_xmit_discards", &PortCounters::transmit_discards},
    {kPortCounterFolder, "port_xmit_packets", &PortCounters::transmitted_packets},
    {kPortCounterFolder, "port_xmit_wait"},
    {kPortCounterFolder, "symbol_error"},
    {kPortCounterFolder, "unicast_rcv_packets", &PortCounters::received_packets, &PortCounters::received_from_groups},
    {kPortCounterFolder, "unicast_xmit_packets", &PortCounters::transmitted_packets,
     &PortCounters::transmitted_to_groups},
    {kHardwareCounterFolder, "duplicate_request", &PortCounters::duplicate_request},
    {kHardwareCounterFolder, "implied_nak_seq_err", &PortCounters::implied_nak_seq_err},
    {.folder = kHardwareCounterFolder, .name = "lifespan", .constant = 10},  // ms: how old mlx5's values may be
    {kHardwareCounterFolder, "local_ack_timeout_err", &PortCounters::local_ack_timeout_err},
    {kHardwareCounterFolder, "np_cnp_sent", &PortCounters::np_cnp_sent},
    {kHardwareCounterFolder, "np_ecn_marked_roce_packets", &PortCounters::np_ecn_marked_roce_packets},
    {kHardwareCounterFolder, "out_of_buffer", &PortCounters::out_of_buffer},
    {kHardwareCounterFolder, "out_of_sequence", &PortCounters::out_of_sequence},
    {kHardwareCounterFolder, "packet_seq_err", &PortCounters::packet_seq_err},
    {kHardwareCounterFolder, "req_cqe_error", &PortCounters::req_cqe_error},
    {kHardwareCounterFolder, "req_cqe_flush_error", &PortCounters::req_cqe_flush_error},
    {kHardwareCounterFolder, "req_remote_access_errors", &PortCounters::req_remote_access_errors},
    {kHardwareCounterFolder, "req_remote_invalid_request", &PortCounters::req_remote_invalid_request},
    {kHardwareCounterFolder, "req_rnr_retries_exceeded", &PortCounters::req_rnr_retries_exceeded},
    {kHardwareCounterFolder, "req_transport_retries_exceeded", &PortCounters::req_transport_retries_exceeded},
    {kHardwareCounterFolder, "resp_cqe_error", &PortCounters::resp_cqe_error},
    {kHardwareCounterFolder, "resp_cqe_flush_error", &PortCounters::resp_cqe_flush_error},
    {kHardwareCounterFolder, "resp_local_length_error", &PortCounters::resp_local_length_error},
    {kHardwareCounterFolder, "resp_remote_access_errors", &PortCounters::resp_remote_access_errors},
    {kHardwareCounterFolder, "rnr_nak_retry_err", &PortCounters::rnr_nak_retry_err},
    {kHardwareCounterFolder, "roce_adp_retrans", &PortCounters::roce_adp_retrans},
    {kHardwareCounterFolder, "roce_adp_retrans_to"},
    {kHardwareCounterFolder, "roce_slow_restart"},
    {kHardwareCounterFolder, "roce_slow_restart_cnps", &PortCounters::roce_slow_restart_cnps},
    {kHardwareCounterFolder, "roce_slow_restart_trans"},
    {kHardwareCounterFolder, "rp_cnp_handled", &PortCounters::rp_cnp_handled},
    {kHardwareCounterFolder, "rp_cnp_ignored", &PortCounters::rp_cnp_ignored},
    {kHardwareCounterFolder, "rx_atomic_requests", &PortCounters::rx_atomic_requests},
    {kHardwareCounterFolder, "rx_icrc_encapsulated", &PortCounters::rx_icrc_encapsulated},
    {kHardwareCounterFolder, "rx_read_requests", &PortCounters::rx_read_requests},
    {kHardwareCounterFolder, "rx_write_requests", &PortCounters::rx_write_requests},
};

// Index in kPortCounterFiles; its size if there is no such file.
constexpr std::size_t find_port_counter_file(std::string_view folder, std::string_view name) {
  std::size_t at = 0;
  while (at < std::size(kPortCounterFiles) &&
         (kPortCounterFiles[at].folder != folder || kPortCounterFiles[at].name != name))
    ++at;
  return at;
}

}  // namespace rnicsim::abi
