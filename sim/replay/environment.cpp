#include "sim/replay/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/replay/pairing.h"

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;
using roce::Operation;

constexpr std::uint32_t kGeneralServicesQp = 1;
constexpr std::uint32_t kFirstQp = 2;
constexpr std::uint32_t kAmpleReceive = 0x7fffffff;

bool is_group(const roce::Gid& gid) {
  constexpr std::uint8_t kIpv6Group = 0xff, kIpv4Group = 0xe0, kIpv4GroupMask = 0xf0;
  return gid[0] == kIpv6Group || (roce::is_ipv4_mapped(gid) && (gid[12] & kIpv4GroupMask) == kIpv4Group);
}

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
  if (row.response()) return ours ? Role::answer : Role::answer_to_own;
  return ours ? Role::own_request : Role::request;
}

bool takes_receive(const roce::OpcodeInfo& row) {
  if (row.operation == Operation::send) return row.begins();
  return row.operation == Operation::write && row.has(roce::header::kImmediate);
}

bool refuses(const WirePacket& answer) {
  const auto& aeth = answer.headers.aeth;
  if (!aeth || aeth->syndrome == Aeth::kSequenceError) return false;
  return (aeth->syndrome & Aeth::kClassMask) != Aeth::kAck;
}

// Each NAK refuses the newest request of its PSN before it.
void mark_refusals(QpEnvironment& qp) {
  for (const auto* answer : qp.answers) {
    if (!refuses(*answer)) continue;
    const auto syndrome = answer->headers.aeth->syndrome;
    const auto names = [&](const Request& request) {
      const auto ahead = distance(request.first_psn(), answer->psn());
      return request.packet->frame < answer->frame && ahead >= 0 && ahead < static_cast<std::int32_t>(request.packets);
    };
    const auto refused = std::find_if(qp.requests.rbegin(), qp.requests.rend(), names);
    if (refused == qp.requests.rend()) continue;
    refused->refusal = syndrome;
    refused->refused_psn = answer->psn();
    if ((syndrome & Aeth::kClassMask) == Aeth::kRnrNak && qp.min_rnr_timer == 0)
      qp.min_rnr_timer = syndrome & Aeth::kValueMask;
  }
}

// Follows the expected PSN and the messages, as far as to know which requests the real NIC executed.
class Follower {
 public:
  explicit Follower(QpEnvironment& qp) : qp_(qp), expected_(qp.first_psn) {}

  void run() {
    for (auto& request : qp_.requests) {
      const auto ahead = distance(expected_, request.first_psn());
      request.duplicate = ahead < 0;
      if (ahead == 0 && !dead_) in_sequence(request);
    }
  }

 private:
  void in_sequence(Request& request) {
    const auto& row = request.packet->row();
    const bool not_ready = (request.refusal & Aeth::kClassMask) == Aeth::kRnrNak || refused_later(request);
    if (row.begins()) received_ = 0;
    if (takes_receive(row) && !not_ready) {
      request.receive = kAmpleReceive;
      taker_ = &request;
    }
    if (not_ready) return;
    const auto bytes = request.packet->payload.size();
    if (request.refusal != 0) {
      dead_ = true;
      // An invalid SEND in sequence: its receive WQE was too short.
      const bool too_long = row.operation == Operation::send && request.refusal == Aeth::kInvalidRequest;
      if (too_long && taker_ != nullptr && bytes != 0) taker_->receive = received_ + bytes - 1;
      return;
    }
    received_ += bytes;
    request.executed = true;
    expected_ = expected_ + request.packets;
    if (row.ends()) msn_ = (msn_ + 1) & roce::Psn::kMask;
    request.msn = msn_;
  }

  // What is found not to be ready later on was not executed before, even if this answer is missing.
  bool refused_later(const Request& request) const {
    auto at = std::ranges::upper_bound(qp_.answers, request.packet->frame, {}, &WirePacket::frame);
    for (; at != qp_.answers.end(); ++at) {
      const auto syndrome = (*at)->headers.aeth ? (*at)->headers.aeth->syndrome : Aeth::kAck;
      if (syndrome == Aeth::kSequenceError || before((*at)->psn(), request.first_psn())) continue;
      return (syndrome & Aeth::kClassMask) == Aeth::kRnrNak && (*at)->psn() == request.first_psn();
    }
    return false;
  }

  QpEnvironment& qp_;
  roce::Psn expected_;
  std::uint32_t msn_ = 0;
  std::uint32_t received_ = 0;  // of the message so far
  Request* taker_ = nullptr;    // the request that took the newest receive WQE
  bool dead_ = false;
};

std::optional<RemoteRegion> named_region(const roce::Headers& headers) {
  if (headers.reth) return RemoteRegion{headers.reth->rkey.value, headers.reth->address, headers.reth->length};
  if (headers.atomic) return RemoteRegion{headers.atomic->rkey.value, headers.atomic->address, roce::kAtomicBytes};
  return std::nullopt;
}

void refuse_useless(const Environment& environment, const WireCapture& capture) {
  if (!environment.qps.empty() || !environment.requesters.empty()) return;
  std::vector<std::string> known;
  for (const auto& gid : capture.addresses()) known.push_back(address_text(gid));
  const auto listed = fmt::format("{}", fmt::join(known, ", "));
  const auto asked = address_text(environment.address);
  if (std::ranges::find(known, asked) == known.end())
    throw ConfigError(fmt::format("{} is not in the capture; its RoCEv2 packets are between {}", asked, listed));
  throw ConfigError(
      fmt::format("no packet of {}, or to it, with the right ICRC is of a transport that the engine has: nothing to "
                  "replay",
                  asked));
}

// Sorts the packets of a capture by what they are to the address.
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

// A path has one MTU for both directions.
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

// The engine's numbers are given out from low ones up, as by a driver.
void number_queue_pairs(Environment& environment) {
  std::uint32_t next = kFirstQp;
  for (auto& qp : environment.qps) qp.number = {next++};
}

std::uint32_t usual_qkey(const QpEnvironment& qp) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& request : qp.requests) ++counts[request.packet->headers.deth->qkey];
  const auto& first = qp.requests.front().packet->headers.deth->qkey;
  const auto usual = std::ranges::max_element(counts, {}, [](const auto& each) { return each.second; });
  return counts[first] == usual->second ? first : usual->first;
}

void imply_datagrams(QpEnvironment& qp) {
  if (qp.transport == roce::Transport::ud) qp.qkey = usual_qkey(qp);
  for (auto& request : qp.requests)
    if (takes_receive(request.packet->row())) request.receive = kAmpleReceive;
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
    if (qp.reliable()) {
      mark_refusals(qp);
      Follower(qp).run();
    } else {
      imply_datagrams(qp);
    }
    qp.deliveries = implied_deliveries(qp);
    for (const auto& request : qp.requests) {
      const auto region = named_region(request.packet->headers);
      if (region && request.refusal != Aeth::kRemoteAccessError) environment.regions.push_back(*region);
    }
  }
  for (auto& own : environment.requesters) imply_requests(own);
  return environment;
}

}  // namespace rnicsim::sim::replay
