// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/requester_environment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/replay/progress.h"
#include "sim/replay/timers.h"

namespace rnicsim::sim::replay {
namespace {

using roce::Aeth;

constexpr std::uint8_t kMostRetries = 7;  // for RNR retries: without limit
constexpr std::uint8_t kLargestMtu = 5;

std::vector<std::pair<const WirePacket*, bool>> in_order(const RequesterEnvironment& qp) {
  std::vector<std::pair<const WirePacket*, bool>> all;
  for (const auto* packet : qp.sent) all.emplace_back(packet, true);
  for (const auto* packet : qp.answers) all.emplace_back(packet, false);
  std::ranges::sort(all, {}, [](const auto& each) { return each.first->frame; });
  return all;
}

// Number of retries in succession.
struct Row {
  std::uint32_t now = 0;
  std::uint32_t longest = 0;  // longest succession that ended in progress
  void progress() { longest = std::max(longest, std::exchange(now, 0)); }
};

// Walks through the conversation and determines the reason of each packet.
class Narrator {
 public:
  explicit Narrator(RequesterEnvironment& qp)
      : qp_(qp), progress_(qp.posted, qp.posted.front().first), acked_(qp.posted.front().first) {}

  void run() {
    for (const auto& [packet, sent] : in_order(qp_)) {
      if (qp_.hole && packet->frame >= *qp_.hole) break;
      qp_.events.push_back({.packet = packet, .sent = sent, .rnr_timer = std::nullopt});
      sent ? send(qp_.events.back()) : answer(qp_.events.back());
    }
    find_timeout();
    find_end();
  }

 private:
  void send(WireEvent& event) {
    const auto& packet = *event.packet;
    const auto psn = packet.psn();
    const auto end = psn + psns_of(packet, roce::mtu_bytes(qp_.path_mtu));
    if (next_ < qp_.posted.size() && qp_.posted[next_].frame == packet.frame) event.posts = true, ++next_;
    if (at_ && *at_ != psn) go_elsewhere(event, before(psn, *at_));
    event.acknowledged = refused_ && before(psn, *refused_);
    if (!event.acknowledged) refused_ = std::nullopt;
    at_ = end;
    progress_.sent(end);
    if (psn == progress_.oldest() || !counts_from_) counts_from_ = packet.time;
  }

  void go_elsewhere(WireEvent& event, bool back) {
    event.cause = Cause::skip;
    if (std::exchange(refused_, std::nullopt)) forget_run();
    if (!back) return;
    if (const auto refusal = std::exchange(refusal_, nullptr)) {
      event.cause = Cause::rnr;
      event.since = refusal->time;
      event.least = least_rnr_wait(refusal->headers.aeth->syndrome & Aeth::kValueMask);
      // Soft-RoCE retransmits from the last ACK, as if the RNR NAK had acknowledged nothing.
      if (event.packet->psn() == acked_) refused_ = refusal->psn();
    } else if (missing_ != Missing::nothing) {
      event.cause = Cause::nak;
      gap_asked_for_ = missing_ == Missing::answer;
      ++retries_.now;
    } else {
      event.cause = Cause::timeout;
      event.since = *counts_from_;
      gap_asked_for_ = false;
      ++retries_.now;
      ++timeouts_;
    }
    missing_ = Missing::nothing;
  }

  // The preceding packets did not lead up to the PSN that the RNR NAK refused, so the RNR NAK does not explain them.
  void forget_run() {
    for (auto event = std::next(qp_.events.rbegin()); event != qp_.events.rend(); ++event) {
      if (!event->sent) continue;
      if (!std::exchange(event->acknowledged, false)) break;
    }
  }

  void answer(WireEvent& event) {
    const auto oldest = progress_.oldest();
    const auto taken = progress_.take(*event.packet);
    event.in_order = taken == Progress::Answer::taken;
    if (oldest != progress_.oldest()) {
      counts_from_ = event.packet->time;
      retries_.progress(), refusals_.progress();
      timeouts_ = 0;
      gap_asked_for_ = false;
      if (event.in_order) missing_ = Missing::nothing, refusal_ = nullptr;
    }
    if (taken == Progress::Answer::not_ready) {
      event.rnr_timer = event.packet->headers.aeth->syndrome & Aeth::kValueMask;
      if (refusal_ == nullptr) refusal_ = event.packet, ++refusals_.now;
    } else {
      acked_ = progress_.oldest();
    }
    if (taken == Progress::Answer::missing && refusal_ == nullptr) miss(*event.packet);
  }

  // Answers after a gap continue to arrive after the request for the gap was retransmitted. They do not show whether
  // the retransmission was lost; only the local ACK timeout does. A sequence NAK names the PSN that its responder
  // expects.
  void miss(const WirePacket& answer) {
    const bool named = answer.headers.aeth && answer.headers.aeth->syndrome == Aeth::kSequenceError &&
                       answer.psn() == progress_.oldest();
    if (named)
      missing_ = Missing::request;
    else if (!gap_asked_for_ && missing_ == Missing::nothing)
      missing_ = Missing::answer;
  }

  // The longest timeout for which no retransmission came too early.
  void find_timeout() {
    for (const auto& event : qp_.events) {
      if (event.cause != Cause::timeout) continue;
      std::uint8_t code = kMostTimeout;
      while (code > 1 && least_ack_timeout(code) > event.packet->time - event.since) --code;
      qp_.timeout = qp_.timeout == 0 ? code : std::min(qp_.timeout, code);
    }
    for (auto& event : qp_.events)
      if (event.cause == Cause::timeout) event.least = least_ack_timeout(qp_.timeout);
  }

  // Unanswered requests at the end were given up if there were more retries than ever before; otherwise the capture
  // ends too early.
  void find_end() {
    if (progress_.all_answered()) return;
    if (refusal_ != nullptr) {
      if (refusals_.now <= refusals_.longest || refusals_.now > kMostRetries) return void(qp_.unfinished = true);
      qp_.rnr_retry = static_cast<std::uint8_t>(refusals_.now - 1);
      return progress_.give_up(roce::Status::rnr_retry_exceeded);
    }
    if (missing_ != Missing::nothing) return void(qp_.unfinished = true);
    if (timeouts_ == 0 || retries_.now <= retries_.longest || retries_.now > kMostRetries) return;
    qp_.gives_up = true;
    qp_.retry_count = static_cast<std::uint8_t>(retries_.now);
    progress_.give_up(roce::Status::transport_retry_exceeded);
  }

  RequesterEnvironment& qp_;
  Progress progress_;
  std::size_t next_ = 0;                 // index of the next message to post
  std::optional<roce::Psn> at_;          // one past the PSN of the last sent packet
  std::optional<Duration> counts_from_;  // time when the oldest packet was sent, or of the last progress
  const WirePacket* refusal_ = nullptr;  // RNR NAK whose timer runs
  enum class Missing : std::uint8_t { nothing, request, answer };
  Missing missing_ = Missing::nothing;  // reported as lost by an answer
  bool gap_asked_for_ = false;          // an answer was missing, and its request was retransmitted
  roce::Psn acked_;                     // oldest PSN without an ACK, response or sequence NAK
  std::optional<roce::Psn> refused_;    // PSN that an RNR NAK refused, while packets before it are retransmitted
  Row retries_, refusals_;
  std::uint32_t timeouts_ = 0;  // timeouts since the last progress
};

// UC and UD have no answers: a message completes when it is sent.
void follow_unanswered(RequesterEnvironment& qp) {
  std::size_t next = 0;
  for (const auto* packet : qp.sent) {
    if (qp.hole && packet->frame >= *qp.hole) break;
    const bool posts = next < qp.posted.size() && qp.posted[next].frame == packet->frame;
    next += posts;
    qp.events.push_back({.packet = packet, .sent = true, .posts = posts, .rnr_timer = std::nullopt});
  }
  for (auto& request : qp.posted)
    if (request.tail != nullptr) request.outcome = roce::Status::success;
}

}  // namespace

std::size_t RequesterEnvironment::count(Cause cause) const {
  return static_cast<std::size_t>(std::ranges::count(events, cause, &WireEvent::cause));
}

std::vector<RequesterEnvironment> requester_streams(std::span<const WirePacket* const> own_requests) {
  std::vector<RequesterEnvironment> streams;
  for (const auto* packet : own_requests) {
    const auto transport = packet->row().transport;
    const bool datagram = transport == roce::Transport::ud;
    const auto same = [&](const RequesterEnvironment& qp) {
      if (qp.transport != transport) return false;
      if (datagram) return qp.qpn == packet->headers.deth->source;
      return qp.peer == packet->addresses.destination && qp.peer_qpn == packet->headers.bth.destination;
    };
    auto qp = std::ranges::find_if(streams, same);
    if (qp == streams.end()) {
      streams.push_back({.transport = transport,
                         .qpn = datagram ? packet->headers.deth->source : roce::Qpn{},
                         .peer_qpn = datagram ? roce::Qpn{} : packet->headers.bth.destination,
                         .peer = packet->addresses.destination,
                         .peer_mac = packet->addresses.destination_mac,
                         .sent = {},
                         .answers = {},
                         .posted = {},
                         .events = {},
                         .hole = std::nullopt});
      qp = streams.end() - 1;
    }
    qp->sent.push_back(packet);
  }
  return streams;
}

void imply_requests(RequesterEnvironment& qp) {
  auto found = implied_requests(qp.sent, roce::mtu_bytes(qp.path_mtu));
  // A READ uses one PSN for each packet of its answer: with a larger MTU the PSNs may become contiguous.
  for (auto mtu = qp.path_mtu; found.hole && mtu < kLargestMtu;) {
    auto other = implied_requests(qp.sent, roce::mtu_bytes(++mtu));
    if (other.hole) continue;
    found = std::move(other);
    qp.path_mtu = mtu;
  }
  qp.posted = std::move(found.requests);
  qp.unfinished = found.unfinished;
  qp.hole = found.hole;
  if (qp.posted.empty()) return;
  qp.transport == roce::Transport::rc ? Narrator(qp).run() : follow_unanswered(qp);
}

}  // namespace rnicsim::sim::replay
