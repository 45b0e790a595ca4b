// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/responder_environment.h"

#include <algorithm>
#include <map>

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;
using roce::Operation;

constexpr std::uint32_t kAmpleReceive = 0x7fffffff;

bool takes_receive(const roce::OpcodeInfo& row) {
  if (row.operation == Operation::send) return row.begins();
  return row.operation == Operation::write && row.has(roce::header::kImmediate);
}

bool refuses(const WirePacket& answer) {
  const auto& aeth = answer.headers.aeth;
  if (!aeth || aeth->syndrome == Aeth::kSequenceError) return false;
  return (aeth->syndrome & Aeth::kClassMask) != Aeth::kAck;
}

// A NAK refuses the newest request with its PSN before it.
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

// Follows the expected PSN and the messages to determine which requests the real NIC executed.
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
      // An invalid SEND in sequence means that its receive WQE was too short.
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

  // True: a later RNR NAK refuses this request, so it was not executed before, even if its first answer is missing.
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
  std::uint32_t received_ = 0;  // bytes of the message so far
  Request* taker_ = nullptr;    // request that took the newest receive WQE
  bool dead_ = false;
};

std::optional<RemoteRegion> named_region(const roce::Headers& headers) {
  if (headers.reth) return RemoteRegion{headers.reth->rkey.value, headers.reth->address, headers.reth->length};
  if (headers.atomic) return RemoteRegion{headers.atomic->rkey.value, headers.atomic->address, roce::kAtomicBytes};
  return std::nullopt;
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

void imply_answers(QpEnvironment& qp) {
  if (qp.reliable()) {
    mark_refusals(qp);
    Follower(qp).run();
  } else {
    imply_datagrams(qp);
  }
}

std::vector<RemoteRegion> granted_regions(const QpEnvironment& qp) {
  std::vector<RemoteRegion> regions;
  for (const auto& request : qp.requests) {
    const auto region = named_region(request.packet->headers);
    if (region && request.refusal != Aeth::kRemoteAccessError) regions.push_back(*region);
  }
  return regions;
}

}  // namespace rnicsim::sim::replay
