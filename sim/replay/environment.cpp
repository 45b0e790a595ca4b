#include "sim/replay/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
constexpr std::uint32_t kAmpleReceive = 0x7fffffff;

Role role_of(const WirePacket& packet, const roce::Gid& address) {
  const bool ours = packet.addresses.source == address;
  if (!ours && packet.addresses.destination != address) return Role::elsewhere;
  if (!packet.icrc_right) return Role::corrupt;
  const auto& row = packet.row();
  if (row.transport == roce::Transport::uc) return Role::uc;
  if (row.transport == roce::Transport::ud)
    return packet.headers.bth.destination.value == kGeneralServicesQp ? Role::connection_management : Role::ud;
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
    const bool not_ready = (request.refusal & Aeth::kClassMask) == Aeth::kRnrNak;
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
  if (!environment.qps.empty()) return;
  std::vector<std::string> known;
  for (const auto& gid : capture.addresses()) known.push_back(address_text(gid));
  const auto listed = fmt::format("{}", fmt::join(known, ", "));
  const auto asked = address_text(environment.address);
  if (std::ranges::find(known, asked) == known.end())
    throw ConfigError(fmt::format("{} is not in the capture; its RoCEv2 packets are between {}", asked, listed));
  throw ConfigError(fmt::format("nobody sent {} an RC request with the right ICRC: nothing to replay", asked));
}

}  // namespace

Environment implied_environment(const WireCapture& capture, const roce::Gid& address) {
  Environment environment{.address = address};
  std::vector<const WirePacket*> answers, own_requests;
  for (const auto& packet : capture.packets) {
    auto role = role_of(packet, address);
    if (role == Role::request) {
      const auto of = [&](const QpEnvironment& qp) { return qp.qpn == packet.headers.bth.destination; };
      auto qp = std::ranges::find_if(environment.qps, of);
      if (qp == environment.qps.end()) {
        environment.qps.push_back({.qpn = packet.headers.bth.destination,
                                   .peer = packet.addresses.source,
                                   .peer_mac = packet.addresses.source_mac,
                                   .first_psn = packet.psn()});
        qp = environment.qps.end() - 1;
      }
      if (qp->peer != packet.addresses.source)
        role = Role::foreign;
      else
        qp->requests.push_back({.packet = &packet});
    }
    if (role == Role::answer) answers.push_back(&packet);
    if (role == Role::own_request) own_requests.push_back(&packet);
    if (role == Role::corrupt && packet.addresses.source == address && packet.row().response())
      environment.strays.push_back(&packet);
    ++environment.roles[static_cast<std::size_t>(role)];
  }
  refuse_useless(environment, capture);
  pair_answers(environment, answers, own_requests);
  for (auto& qp : environment.qps) {
    mark_refusals(qp);
    Follower(qp).run();
    for (const auto& request : qp.requests) {
      const auto region = named_region(request.packet->headers);
      if (region && request.refusal != Aeth::kRemoteAccessError) environment.regions.push_back(*region);
    }
  }
  return environment;
}

}  // namespace rnicsim::sim::replay
