// What a capture implies of the NIC at one address: as a responder and receiver, its queue pairs, their attributes, its
// memory regions, and what it lacked when it refused a request; and as a requester, what was posted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/replay/capture/wire_capture.h"
#include "sim/replay/requester_environment.h"
#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

// What a packet of the capture is to the replay of one address.
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
  foreign,    // a request from another peer, or of another transport, than its QP's
  elsewhere,  // neither from nor to the address
};

struct RoleRow {
  Role role;
  const char* name;
  const char* meaning;
};

inline constexpr std::array<RoleRow, 11> kRoles{{
    {Role::request, "requests", "requests to it: replayed"},
    {Role::answer, "answers", "its answers: compared"},
    {Role::own_request, "own_requests", "requests of its own: compared"},
    {Role::answer_to_own, "answers_to_own", "answers to its own requests: replayed"},
    {Role::connection_management, "connection_management", "connection management (QP1), both ways"},
    {Role::uc, "uc", "UC, both ways"},
    {Role::ud, "ud", "UD, both ways"},
    {Role::xrc, "xrc", "XRC, both ways: not replayed"},
    {Role::corrupt, "corrupt", "wrong ICRC"},
    {Role::foreign, "foreign", "from another peer or transport than its QP's"},
    {Role::elsewhere, "elsewhere", "neither from nor to it"},
}};

struct Environment {
  roce::Gid address{};
  std::vector<QpEnvironment> qps;  // in order of their first request
  std::vector<RequesterEnvironment> requesters;
  std::vector<RemoteRegion> regions;      // named by requests that were granted
  std::vector<const WirePacket*> strays;  // answers of the address that belong to no QP, or are corrupt
  std::array<std::size_t, kRoles.size()> roles{};

  std::size_t count(Role role) const { return roles[static_cast<std::size_t>(role)]; }
};

// What an engine has, beside RC.
struct Abilities {
  bool uc = true;
  bool ud = true;
  std::uint8_t rd_atomic = 16;  // READs and atomics of a queue pair in flight

  bool has(roce::Transport transport) const {
    return transport == roce::Transport::rc || (transport == roce::Transport::uc ? uc : ud);
  }
};

// The environment points into `capture`. ConfigError: the address is not in it, or nothing there can be replayed.
Environment implied_environment(const WireCapture& capture, const roce::Gid& address, Abilities abilities = {});

}  // namespace rnicsim::sim::replay
