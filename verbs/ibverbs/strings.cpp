// SPDX-License-Identifier: Apache-2.0
// Names of enumerators.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

namespace {

constexpr std::array kNodeTypes{"invalid node type", "InfiniBand channel adapter",
                                "InfiniBand switch", "InfiniBand router",
                                "iWARP NIC",         "usNIC",
                                "usNIC UDP",         "unspecified"};

constexpr std::array kPortStates{"no state change (NOP)", "down", "init", "armed", "active", "active defer"};

constexpr std::array kEvents{"CQ error",
                             "local work queue catastrophic error",
                             "invalid request local work queue error",
                             "local access violation work queue error",
                             "communication established",
                             "send queue drained",
                             "path migrated",
                             "path migration request error",
                             "local catastrophic error",
                             "port active",
                             "port error",
                             "LID change",
                             "P_Key change",
                             "SM change",
                             "SRQ catastrophic error",
                             "SRQ limit reached",
                             "last WQE reached",
                             "client reregistration",
                             "GID table change",
                             "WQ fatal"};

constexpr std::array kStatuses{"success",
                               "local length error",
                               "local QP operation error",
                               "local EE context operation error",
                               "local protection error",
                               "Work Request Flushed Error",
                               "memory management operation error",
                               "bad response error",
                               "local access error",
                               "remote invalid request error",
                               "remote access error",
                               "remote operation error",
                               "transport retry counter exceeded",
                               "RNR retry counter exceeded",
                               "local RDD violation error",
                               "remote invalid RD request",
                               "aborted error",
                               "invalid EE context number",
                               "invalid EE context state",
                               "fatal error",
                               "response timeout error",
                               "general error",
                               "TM error",
                               "TM software rendezvous"};

template <std::size_t N>
const char* name(const std::array<const char*, N>& names, int value, const char* unknown) {
  return value >= 0 && std::size_t(value) < N ? names[std::size_t(value)] : unknown;
}

}  // namespace

extern "C" {

const char* ibv_node_type_str(ibv_node_type type) { return name(kNodeTypes, type, "unknown"); }
const char* ibv_port_state_str(ibv_port_state state) { return name(kPortStates, state, "unknown"); }
const char* ibv_event_type_str(ibv_event_type event) { return name(kEvents, event, "unknown"); }
const char* ibv_wc_status_str(ibv_wc_status status) { return name(kStatuses, status, "unknown"); }

}  // extern "C"
