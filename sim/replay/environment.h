// SPDX-License-Identifier: Apache-2.0
// Facts about the NIC at one address that a capture implies. As a responder and receiver: queue pairs, their
// attributes, memory regions, and resources that were missing when a request was refused. As a requester: the posted
// work requests.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/replay/capture/wire_capture.h"
#include "sim/replay/requester_environment.h"
#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

// Role of a captured packet in the replay of one address.
enum class Role : std::uint8_t {
  request,  // replayed
  answer,   // compared
  own_request,
  answer_to_own,
  connection_management,
  uc,
  ud,
  xrc,        // not replayed
  corrupt,    // wrong ICRC: a NIC drops it
  foreign,    // a request from another peer or with another transport than the QP's
  elsewhere,  // neither from nor to the address
};

struct RoleRow {
  Role role;
  const char* name;
  const char* meaning;
};

inline constexpr std::array<RoleRow, 11> kRoles{{
    {Role::request, "requests", "requests to the NIC: replayed"},
    {Role::answer, "answers", "answers of the NIC: compared"},
    {Role::own_request, "own_requests", "requests of the NIC: compared"},
    {Role::answer_to_own, "answers_to_own", "answers to the NIC's requests: replayed"},
    {Role::connection_management, "connection_management", "connection management (QP1), both ways"},
    {Role::uc, "uc", "UC, both ways"},
    {Role::ud, "ud", "UD, both ways"},
    {Role::xrc, "xrc", "XRC, both ways: not replayed"},
    {Role::corrupt, "corrupt", "wrong ICRC"},
    {Role::foreign, "foreign", "from another peer or transport than that of the QP"},
    {Role::elsewhere, "elsewhere", "neither from nor to the NIC"},
}};

struct Environment {
  roce::Gid address{};
  std::vector<QpEnvironment> qps;  // in order of their first request
  std::vector<RequesterEnvironment> requesters;
  std::vector<RemoteRegion> regions;      // regions that granted requests name
  std::vector<const WirePacket*> strays;  // answers of the address that match no QP, or are corrupt
  std::array<std::size_t, kRoles.size()> roles{};

  std::size_t count(Role role) const { return roles[static_cast<std::size_t>(role)]; }
};

// Features of an engine beside RC.
struct Abilities {
  bool uc = true;
  bool ud = true;
  std::uint8_t rd_atomic = 16;  // READs and atomics of a queue pair in flight

  bool has(roce::Transport transport) const {
    return transport == roce::Transport::rc || (transport == roce::Transport::uc ? uc : ud);
  }
};

// The result points into `capture`. ConfigError: the capture does not have the address, or nothing that can be
// replayed.
Environment implied_environment(const WireCapture& capture, const roce::Gid& address, Abilities abilities = {});

}  // namespace rnicsim::sim::replay
