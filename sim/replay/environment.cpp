// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "model/base/group_mac.h"
#include "sim/config/config_error.h"
#include "sim/replay/capture/pairing.h"
#include "sim/replay/implied_deliveries.h"

namespace rnicsim::sim::replay {
namespace {

constexpr std::uint32_t kFirstQp = 2;

Role role_of(const WirePacket& packet, const roce::Gid& address) {
  const bool ours = packet.addresses.source == address;
  const bool to_group = is_group(packet.addresses.destination);
  if (!ours && !to_group && packet.addresses.destination != address) return Role::elsewhere;
  if (!packet.icrc_right) return Role::corrupt;
  const auto& row = packet.row();
  if (row.transport == roce::Transport::uc) return to_group ? Role::elsewhere : Role::uc;
  if (row.transport == roce::Transport::ud)
    return packet.headers.bth.destination.value == kGeneralServicesQp ? Role::connection_management : Role::ud;
  if (to_group) return Role::elsewhere;
  if (row.transport == roce::Transport::xrc_send || row.transport == roce::Transport::xrc_recv) return Role::xrc;
  if (row.response()) return ours ? Role::answer : Role::answer_to_own;
  return ours ? Role::own_request : Role::request;
}

void refuse_useless(const Environment& environment, const WireCapture& capture) {
  if (!environment.qps.empty() || !environment.requesters.empty()) return;
  if (environment.count(Role::connection_management) != 0) return;
  std::vector<std::string> known;
  for (const auto& gid : capture.addresses()) known.push_back(address_text(gid));
  const auto listed = fmt::format("{}", fmt::join(known, ", "));
  const auto asked = address_text(environment.address);
  if (std::ranges::find(known, asked) == known.end())
    throw ConfigError(fmt::format("{} is not in the capture; its RoCEv2 packets are between {}", asked, listed));
  if (environment.count(Role::xrc) != 0)
    throw ConfigError(fmt::format("the packets of {} are of XRC, which is not replayed", asked));
  throw ConfigError(fmt::format(
      "no packet from or to {} has a correct ICRC and a transport that the engine supports: nothing to replay", asked));
}

// Sorts the packets of a capture by their role for the address.
class Sorter {
 public:
  Sorter(Environment& environment, Abilities abilities) : environment_(environment), abilities_(abilities) {}

  void take(const WirePacket& packet) {
    auto role = role_of(packet, environment_.address);
    const bool ours = packet.addresses.source == environment_.address;
    const bool datagram_or_uc = role == Role::uc || role == Role::ud;
    if (role == Role::request || (datagram_or_uc && !ours)) role = receive(packet, role);
    if (role == Role::answer) answers.push_back(&packet);
    if (role == Role::answer_to_own) answers_to_own.push_back(&packet);
    if ((role == Role::own_request || (datagram_or_uc && ours)) && abilities_.has(packet.row().transport))
      own_requests.push_back(&packet);
    if (role == Role::corrupt && ours && packet.row().response()) environment_.strays.push_back(&packet);
    ++environment_.roles[static_cast<std::size_t>(role)];
  }

  std::vector<const WirePacket*> answers, own_requests, answers_to_own;

 private:
  Role receive(const WirePacket& packet, Role role) {
    const auto transport = packet.row().transport;
    if (!abilities_.has(transport)) return role;
    auto& qp = qp_of(packet);
    const bool same_peer = qp.peer == packet.addresses.source || transport == roce::Transport::ud;
    if (qp.transport != transport || !same_peer) return Role::foreign;
    qp.requests.push_back({.packet = &packet, .receive = std::nullopt});
    return role;
  }

  QpEnvironment& qp_of(const WirePacket& packet) {
    const auto qpn = packet.headers.bth.destination;
    std::optional<roce::Gid> group;
    if (is_group(packet.addresses.destination)) group = packet.addresses.destination;
    for (auto& qp : environment_.qps)
      if (qp.qpn == qpn && qp.group == group) return qp;
    environment_.qps.push_back({.transport = packet.row().transport,
                                .qpn = qpn,
                                .peer = packet.addresses.source,
                                .peer_mac = packet.addresses.source_mac,
                                .group = group,
                                .first_psn = packet.psn(),
                                .requests = {},
                                .answers = {},
                                .deliveries = {}});
    return environment_.qps.back();
  }

  Environment& environment_;
  const Abilities abilities_;
};

std::vector<const WirePacket*> packets_of(const QpEnvironment& qp) {
  std::vector<const WirePacket*> packets;
  for (const auto& request : qp.requests) packets.push_back(request.packet);
  return packets;
}

void pair_own_answers(Environment& environment, std::span<const WirePacket* const> answers) {
  std::vector<RequestStream> requests;
  for (const auto& qp : environment.qps)
    requests.push_back({qp.peer, qp.reliable() ? packets_of(qp) : std::vector<const WirePacket*>{}});
  const auto streams = answer_streams(answers, true);
  const auto paired = pair_answers(requests, streams);
  std::vector<bool> taken(streams.size());
  for (std::size_t i = 0; i < paired.size(); ++i) {
    if (!paired[i]) continue;
    taken[*paired[i]] = true;
    environment.qps[i].peer_qpn = streams[*paired[i]].to;
    environment.qps[i].answers = streams[*paired[i]].packets;
  }
  for (std::size_t j = 0; j < streams.size(); ++j)
    if (!taken[j])
      environment.strays.insert(environment.strays.end(), streams[j].packets.begin(), streams[j].packets.end());
  std::ranges::sort(environment.strays, {}, &WirePacket::frame);
}

void pair_answers_to_own(Environment& environment, std::span<const WirePacket* const> answers) {
  std::vector<RequestStream> requests;
  for (const auto& qp : environment.requesters)
    requests.push_back({qp.peer, qp.transport == roce::Transport::rc ? qp.sent : std::vector<const WirePacket*>{}});
  const auto streams = answer_streams(answers, false);
  const auto paired = pair_answers(requests, streams);
  for (std::size_t i = 0; i < paired.size(); ++i) {
    if (!paired[i]) continue;
    environment.requesters[i].qpn = streams[*paired[i]].to;
    environment.requesters[i].answers = streams[*paired[i]].packets;
  }
}

// The path MTU is the same in both directions.
void find_mtus(Environment& environment) {
  for (auto& qp : environment.qps) {
    auto bytes = std::max(largest_payload(packets_of(qp)), largest_payload(qp.answers));
    for (const auto& own : environment.requesters)
      if (qp.reliable() && own.transport == qp.transport && own.peer == qp.peer && own.peer_qpn == qp.peer_qpn)
        bytes = std::max({bytes, largest_payload(own.sent), largest_payload(own.answers)});
    qp.path_mtu = mtu_for(bytes);
    for (auto& request : qp.requests) request.packets = psns_of(*request.packet, roce::mtu_bytes(qp.path_mtu));
  }
  for (auto& own : environment.requesters) {
    own.path_mtu = mtu_for(std::max(largest_payload(own.sent), largest_payload(own.answers)));
    for (const auto& qp : environment.qps)
      if (own.transport == roce::Transport::rc && qp.reliable() && own.peer == qp.peer && own.peer_qpn == qp.peer_qpn)
        own.path_mtu = std::max(own.path_mtu, qp.path_mtu);
  }
}

// QP numbers of the engine count up from kFirstQp, as a driver would assign them.
void number_queue_pairs(Environment& environment) {
  std::uint32_t next = kFirstQp;
  for (auto& qp : environment.qps) qp.number = {next++};
}

}  // namespace

Environment implied_environment(const WireCapture& capture, const roce::Gid& address, Abilities abilities) {
  Environment environment{.address = address};
  Sorter sorter(environment, abilities);
  for (const auto& packet : capture.packets) sorter.take(packet);
  environment.requesters = requester_streams(sorter.own_requests);
  refuse_useless(environment, capture);
  pair_own_answers(environment, sorter.answers);
  pair_answers_to_own(environment, sorter.answers_to_own);
  find_mtus(environment);
  number_queue_pairs(environment);
  for (auto& qp : environment.qps) {
    imply_answers(qp);
    qp.deliveries = implied_deliveries(qp);
    const auto regions = granted_regions(qp);
    environment.regions.insert(environment.regions.end(), regions.begin(), regions.end());
  }
  for (auto& own : environment.requesters) imply_requests(own);
  return environment;
}

}  // namespace rnicsim::sim::replay
