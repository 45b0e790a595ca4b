// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/implied_workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/group_mac.h"
#include "sim/config/config_error.h"
#include "sim/replay/environment.h"
#include "sim/wire_workload/first_packets.h"
#include "sim/wire_workload/initial_memory.h"

namespace rnicsim::sim::wire_workload {
namespace {

using replay::Environment;
using replay::Posted;
using replay::QpEnvironment;
using replay::RequesterEnvironment;
using replay::WirePacket;
using roce::Aeth;
using roce::Transport;

// Upper limit of the memory of all hosts: a forged capture may name any amount.
constexpr std::uint64_t kMostMemory = std::uint64_t{4} << 30;

const char* transport_text(Transport transport) {
  return transport == Transport::rc ? "RC" : transport == Transport::uc ? "UC" : "UD";
}

// The simulated hosts post these kinds of requests as other kinds.
nic::SendOpcode postable(nic::SendOpcode opcode) {
  if (opcode == nic::SendOpcode::send_with_inv) return nic::SendOpcode::send;
  return opcode == nic::SendOpcode::atomic_write ? nic::SendOpcode::write : opcode;
}

Request request_of(Posted& posted) {
  const auto& headers = posted.head->headers;
  Request request{.frame = posted.frame,
                  .at = posted.head->time,
                  .opcode = postable(posted.opcode),
                  .length = posted.length,
                  .payload = std::move(posted.payload),
                  .immediate = posted.tail->headers.immediate.value_or(0),
                  .outcome = posted.outcome,
                  .brought = std::move(posted.brought)};
  if (headers.reth) {
    request.rkey = headers.reth->rkey.value;
    request.address = headers.reth->address;
  }
  if (headers.atomic) {
    request.rkey = headers.atomic->rkey.value;
    request.address = headers.atomic->address;
    request.compare = headers.atomic->compare;
    request.swap_add = headers.atomic->swap_add;
  }
  if (headers.deth) {
    request.destination = posted.head->addresses.destination;
    request.destination_qp = headers.bth.destination;
    request.qkey = headers.deth->qkey;
  }
  return request;
}

// Removes the ECN bits, which switches and congestion control set.
std::uint8_t without_ecn(const Posted& posted) {
  constexpr int kEcnBits = 3;
  return static_cast<std::uint8_t>(posted.head->addresses.traffic_class & ~kEcnBits);
}

bool is_not_ready(const replay::Request& request) { return (request.refusal & Aeth::kClassMask) == Aeth::kRnrNak; }

// Only RNR NAKs show that a receive was missing. All other receives count as posted early enough.
std::vector<Receive> receives_of(const QpEnvironment& qp, std::optional<roce::Psn> from, std::uint32_t largest) {
  std::vector<Receive> receives;
  std::optional<Duration> at;
  bool was_refused = false;
  for (const auto& request : qp.requests) {
    was_refused = was_refused || is_not_ready(request);
    if (!request.receive || (from && before(request.first_psn(), *from))) continue;
    if (std::exchange(was_refused, false)) at = request.packet->time;
    receives.push_back({at, std::min(*request.receive, largest)});
  }
  return receives;
}

class Builder {
 public:
  explicit Builder(const replay::WireCapture& capture) : capture_(capture) {}

  Workload build() {
    for (const auto& address : capture_.addresses())
      if (!is_group(address)) add_host(address);
    add_missing_member();
    for (std::uint32_t host = 0; host < environments_.size(); ++host)
      for (const auto& requester : environments_[host].requesters)
        requester.transport == Transport::ud ? add_datagrams(host, requester) : add_connection(host, requester);
    add_group_members();
    if (workload_.requests() == 0) throw ConfigError("the capture implies no request: there is nothing to post");
    add_memory();
    count_rest();
    from_first_request();
    return std::move(workload_);
  }

 private:
  void add_host(const roce::Gid& address) {
    workload_.hosts.push_back({.address = address});
    try {
      environments_.push_back(replay::implied_environment(capture_, address));
    } catch (const ConfigError& error) {
      environments_.push_back({.address = address});
      workload_.left_out.emplace_back(error.what());
    }
  }

  // A group needs a member, but the capture of one host's port shows no member.
  void add_missing_member() {
    const auto addresses = capture_.addresses();
    if (workload_.hosts.size() == 1 && std::ranges::any_of(addresses, [](const auto& gid) { return is_group(gid); }))
      add_host({});
  }

  std::uint32_t host_of(const roce::Gid& address) const {
    const auto found = std::ranges::find(workload_.hosts, address, &Host::address);
    return static_cast<std::uint32_t>(found - workload_.hosts.begin());
  }

  std::size_t add_qp(QueuePair qp) {
    workload_.qps.push_back(std::move(qp));
    return workload_.qps.size() - 1;
  }

  // The queue pair with this number, or a new queue pair.
  std::size_t endpoint(std::uint32_t host, Transport transport, roce::Qpn number) {
    const auto same = [&](const QueuePair& qp) {
      return qp.host == host && qp.transport == transport && qp.number == number && !qp.group;
    };
    const auto found = std::ranges::find_if(workload_.qps, same);
    if (number.value != 0 && found != workload_.qps.end())
      return static_cast<std::size_t>(found - workload_.qps.begin());
    return add_qp({.host = host, .transport = transport, .number = number});
  }

  // The answers contain a requester's own number; without answers the requests of its peer contain the number.
  roce::Qpn own_number(std::uint32_t host, const RequesterEnvironment& requester) const {
    if (requester.qpn.value != 0) return requester.qpn;
    for (const auto& back : environments_[host_of(requester.peer)].requesters)
      if (back.transport == requester.transport && back.qpn == requester.peer_qpn && back.qpn.value != 0 &&
          back.peer == workload_.hosts[host].address)
        return back.peer_qpn;
    return {};
  }

  const QpEnvironment* responder_of(std::uint32_t host, const RequesterEnvironment& requester) const {
    for (const auto& qp : environments_[host_of(requester.peer)].qps)
      if (qp.qpn == requester.peer_qpn && qp.transport == requester.transport && !qp.group &&
          qp.peer == workload_.hosts[host].address)
        return &qp;
    return nullptr;
  }

  void add_connection(std::uint32_t host, const RequesterEnvironment& requester) {
    const auto* responder = responder_of(host, requester);
    const auto own = endpoint(host, requester.transport, own_number(host, requester));
    const auto peer =
        responder != nullptr ? endpoint(host_of(requester.peer), requester.transport, requester.peer_qpn) : own;
    auto& qps = workload_.qps;
    const bool known_otherwise = qps[own].peer.value_or(peer) != peer || qps[peer].peer.value_or(own) != own;
    if (own == peer || known_otherwise) {
      leave_out(fmt::format("{}: {} packets to QP {:#08x} of {}, a number that another connection uses", name(own),
                            requester.sent.size(), requester.peer_qpn.value, replay::address_text(requester.peer)));
      return;
    }
    qps[own].peer = peer;
    qps[peer].peer = own;
    auto mtu = std::max({requester.path_mtu, responder->path_mtu, qps[own].path_mtu, qps[peer].path_mtu});
    auto messages = requester.transport == Transport::rc ? reliable_messages(requester, mtu)
                                                         : unreliable_messages(requester.sent, roce::mtu_bytes(mtu));
    qps[own].path_mtu = qps[peer].path_mtu = mtu;
    if (requester.timeout != 0) qps[own].timeout = requester.timeout;
    qps[own].retry_count = requester.retry_count;
    qps[own].rnr_retry = requester.rnr_retry;
    if (responder->min_rnr_timer != 0) qps[peer].min_rnr_timer = responder->min_rnr_timer;
    if (!messages.whole.empty()) qps[own].sq_psn = qps[peer].rq_psn = messages.whole.front().first;
    const auto largest = post(own, messages);
    std::optional<roce::Psn> from;
    if (requester.transport == Transport::rc) from = qps[own].sq_psn;
    qps[peer].receives = receives_of(*responder, from, largest);
  }

  void add_datagrams(std::uint32_t host, const RequesterEnvironment& requester) {
    const auto own = endpoint(host, Transport::ud, requester.qpn);
    auto messages = datagrams(requester.sent, roce::mtu_bytes(requester.path_mtu));
    workload_.qps[own].path_mtu = requester.path_mtu;
    if (!messages.whole.empty()) workload_.qps[own].sq_psn = messages.whole.front().first;
    post(own, messages);
  }

  // Returns the bytes of the largest SEND.
  std::uint32_t post(std::size_t number, Messages& messages) {
    auto& qp = workload_.qps[number];
    std::uint32_t largest = 0;
    Duration latest{};
    std::size_t invalidates = 0, atomic_writes = 0;
    for (auto& posted : messages.whole) {
      if (qp.requests.empty()) qp.traffic_class = without_ecn(posted);
      invalidates += posted.opcode == nic::SendOpcode::send_with_inv;
      atomic_writes += posted.opcode == nic::SendOpcode::atomic_write;
      if (posted.head->row().operation == roce::Operation::send) largest = std::max(largest, posted.length);
      qp.requests.push_back(request_of(posted));
      latest = qp.requests.back().at = std::max(latest, qp.requests.back().at);
    }
    say_what_is_otherwise(number, messages, invalidates, atomic_writes);
    return largest;
  }

  void say_what_is_otherwise(std::size_t number, const Messages& messages, std::size_t invalidates,
                             std::size_t atomic_writes) {
    workload_.sent_again += messages.packets_again;
    workload_.seen_in_part += messages.in_part;
    const auto qp = name(number);
    if (messages.packets_again != 0)
      leave_out(fmt::format("{}: {} retransmitted packets do not count as requests", qp, messages.packets_again));
    if (messages.in_part != 0)
      leave_out(fmt::format("{}: {} requests are incomplete, and are left out", qp, messages.in_part));
    for (const auto frame : messages.holes)
      leave_out(fmt::format("{}: packets are missing before frame {}{}", qp, frame,
                            workload_.qps[number].transport == Transport::rc
                                ? ", and later packets are left out"
                                : ": the PSNs of later requests are smaller than in the capture"));
    if (invalidates != 0)
      leave_out(fmt::format("{}: {} SENDs with invalidate become SENDs: the memory is not a window", qp, invalidates));
    if (atomic_writes != 0) leave_out(fmt::format("{}: {} atomic WRITEs are WRITEs of 8 bytes", qp, atomic_writes));
  }

  // Adds the receivers of datagrams to groups, for any sender.
  void add_group_members() {
    for (std::uint32_t host = 0; host < environments_.size(); ++host)
      for (const auto& receiver : environments_[host].qps) {
        if (receiver.transport != Transport::ud) continue;
        const auto own = receiver.group ? add_qp({.host = host, .transport = Transport::ud, .group = receiver.group})
                                        : endpoint(host, Transport::ud, receiver.qpn);
        std::uint32_t largest = 0;
        for (const auto& request : receiver.requests) largest = std::max(largest, request.packet->payload.size());
        workload_.qps[own].qkey = receiver.qkey;
        workload_.qps[own].receives = receives_of(receiver, std::nullopt, largest);
      }
  }

  void add_memory() {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      std::vector<Region> named;
      for (const auto& region : environments_[i].regions) named.push_back({region.rkey, region.address, region.length});
      auto& host = workload_.hosts[i];
      host.regions = joined_regions(std::move(named));
      for (const auto& region : host.regions) bytes = std::min(kMostMemory + 1, bytes + region.length);
      if (bytes > kMostMemory)
        throw ConfigError(fmt::format("the requests of the capture name more memory than {} bytes", kMostMemory));
      host.contents = contents_of(environments_[i]);
    }
    check_reads();
  }

  // Limits the bytes of READs, because the run executes each READ, also one whose length no answer confirms.
  void check_reads() const {
    constexpr std::uint64_t kAlways = std::uint64_t{64} << 20;
    std::uint64_t held = 0, asked = 0;
    for (const auto& packet : capture_.packets) held += packet.payload.size();
    for (const auto& qp : workload_.qps)
      for (const auto& request : qp.requests)
        if (request.opcode == nic::SendOpcode::read) asked += request.length;
    if (asked > kAlways + 4 * held)
      throw ConfigError(fmt::format("the capture's READs request {} bytes, but all its packets hold {}", asked, held));
  }

  void count_rest() {
    std::size_t xrc = 0, corrupt = 0;
    for (const auto& packet : capture_.packets) {
      const auto& row = packet.row();
      if (!packet.icrc_right)
        ++corrupt;
      else if (row.transport == Transport::ud && packet.headers.bth.destination.value == replay::kGeneralServicesQp)
        ++workload_.management;
      else if (row.transport == Transport::xrc_send || row.transport == Transport::xrc_recv)
        ++xrc;
    }
    const auto unparsed = capture_.unparsed.size();
    if (corrupt != 0) leave_out(fmt::format("{} packets have a wrong ICRC: left out", corrupt));
    if (unparsed != 0) leave_out(fmt::format("{} packets are of an unknown kind: left out", unparsed));
    if (xrc != 0) leave_out(fmt::format("{} packets of XRC: left out", xrc));
    if (workload_.management != 0)
      leave_out(fmt::format("{} messages of connection management are left out: queue pairs are connected without them",
                            workload_.management));
  }

  void from_first_request() {
    std::optional<Duration> first;
    for (const auto& qp : workload_.qps)
      if (!qp.requests.empty()) first = std::min(first.value_or(qp.requests.front().at), qp.requests.front().at);
    for (auto& qp : workload_.qps) {
      for (auto& request : qp.requests) request.at -= *first;
      for (auto& receive : qp.receives)
        if (receive.at) *receive.at -= *first;
    }
  }

  std::string name(std::size_t number) const { return wire_workload::name_of(workload_.qps[number]); }
  void leave_out(std::string sentence) { workload_.left_out.push_back(std::move(sentence)); }

  const replay::WireCapture& capture_;
  std::vector<Environment> environments_;  // by host
  Workload workload_;
};

}  // namespace

std::size_t Workload::requests() const {
  std::size_t count = 0;
  for (const auto& qp : qps) count += qp.requests.size();
  return count;
}

std::string name_of(const QueuePair& qp) {
  if (qp.group) return fmt::format("h{} QP of group {} (UD)", qp.host, replay::address_text(*qp.group));
  const auto number = qp.number.value == 0 ? std::string("?") : fmt::format("{:#08x}", qp.number.value);
  return fmt::format("h{} QP {} ({})", qp.host, number, transport_text(qp.transport));
}

Workload implied_workload(const replay::WireCapture& capture) { return Builder(capture).build(); }

}  // namespace rnicsim::sim::wire_workload
