// SPDX-License-Identifier: Apache-2.0
// The kernel's state of an rdma_cm_id (rdma_cm(7)).
#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstdint>
#include <map>
#include <optional>

#include "model/base/pcie.h"
#include "model/cm/connection.h"
#include "model/host/cm/ip_address.h"

namespace rnicsim::host {

enum class IdState : std::uint8_t {
  idle,
  address_bound,
  address_query,
  address_resolved,
  route_query,
  route_resolved,
  connect,
  disconnect,
  listen,
};

// Values of enum ibv_qp_type, as commands carry them.
enum class IdQpType : std::uint8_t { rc = 2, uc = 3, ud = 4, xrc_send = 9, xrc_recv = 10 };

// The path of a resolved route or of a received request.
struct IdPath {
  cm::Route route;
  std::uint8_t mtu = 0;   // enum ibv_mtu
  std::uint8_t rate = 0;  // enum ibv_rate
  cm::TimeCode packet_life_time = 0;
};

struct IdGroup {
  std::uint64_t uid = 0;
  IpAddress address;
  Gid gid{};
  std::uint32_t events_reported = 0;
};

inline constexpr std::uint8_t kHopLimit = 64;  // hop limit of paths, and of answers to peers without a connection

struct RdmaId {
  std::uint32_t number = 0;
  Pasid owner = 0;
  std::uint32_t channel = 0;
  std::uint64_t uid = 0;  // the program's value for the id
  bool accepted = true;   // false: a peer's request that is not accepted yet; `uid` is not set
  rdma_ucm_port_space port_space = RDMA_PS_TCP;
  IdQpType qp_type = IdQpType::rc;
  IdState state = IdState::idle;

  IpAddress source;
  std::optional<IpAddress> destination;
  std::optional<std::uint32_t> device{};  // number of the host's device to whose address the id is bound; nullopt:
                                          // bound to a wildcard
  std::optional<IdPath> path;
  std::optional<cm::ConnectionId> connection;
  std::uint32_t psn = 0;  // first PSN that the id's QP expects
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  bool srq = false;

  bool reuse_address = false;
  std::optional<bool> one_family;  // RDMA_OPTION_ID_AFONLY: a wildcard takes requests of its own address family
                                   // only; nullopt: not set
  std::uint8_t traffic_class = 0;
  std::optional<cm::TimeCode> ack_timeout;

  std::uint32_t backlog = 0;   // requests that may still be queued
  std::uint32_t listener = 0;  // listener of a request that the program has not received yet; else 0
  std::uint32_t events_reported = 0;
  std::map<std::uint32_t, IdGroup> groups;
};

}  // namespace rnicsim::host
