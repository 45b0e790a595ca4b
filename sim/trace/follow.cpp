// SPDX-License-Identifier: Apache-2.0
#include "sim/trace/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "model/roce/opcode.h"
#include "sim/config/config_error.h"
#include "sim/trace/queue_pair_events.h"

namespace rnicsim::sim {
namespace {

std::uint32_t number_of(const TraceEvent& event, const NamedField& field) {
  return static_cast<std::uint32_t>(value_of(event, field));
}

// Packets carry no number of their WQE. Messages are sent in the order of the WQEs, so the n-th first packet belongs to
// the n-th message; its PSNs end before the first PSN of the next message.
class Follower {
 public:
  Follower(const TraceHeader& header, const FollowedWqe& followed, std::uint32_t host)
      : header_(header), followed_(followed), host_(host) {}

  // False: the WQE is complete.
  bool add(const TraceEvent& event) {
    if (event.host == host_ && qp_of(event) == followed_.qp) return add_own(event);
    if (peer_ && event.host == *peer_ && qp_of(event) == peer_qp_) return add_peers(event);
    if (!peer_ && event.kind == EventKind::packet_received && in_message(event) && is_request(event) &&
        qp_of(event) == peer_qp_) {
      peer_ = event.host;
      return add_peers(event);
    }
    return true;
  }

  // True: the block may have events of the WQE. Packets of a peer matter only behind the first packet of the message,
  // which tells the peer's queue pair.
  bool wants(const TraceIndex& index, std::size_t block) const {
    if (index.has(block, host_, followed_.qp)) return true;
    if (!peer_qp_) return false;
    if (peer_) return index.has(block, *peer_, *peer_qp_);
    for (std::uint32_t host = 0; host < header_.hosts.size(); ++host)
      if (index.has(block, host, *peer_qp_)) return true;
    return false;
  }

  bool found() const { return index_.has_value(); }
  const std::string& text() const { return text_; }

 private:
  bool add_own(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::posted:
        if (is_send_queue(event)) postings_.push_back(event);
        break;
      case EventKind::doorbell: doorbell_ = event; break;
      case EventKind::wqe_fetch:
        if (is_send_queue(event)) fetch_ = event;
        break;
      case EventKind::wqe: add_wqe(event); break;
      case EventKind::packet_sent: add_sent(event); break;
      case EventKind::packet_received:
        if (in_message(event) && is_response(event)) print(event);
        break;
      case EventKind::cqe: return add_cqe(event);
      case EventKind::qp_state:
        if (index_) print(event);
        break;
      default: break;
    }
    return true;
  }

  void add_wqe(const TraceEvent& event) {
    if (!is_send_queue(event)) return;
    const bool is_it = wqes_++ == followed_.number;
    // The last posting that does not begin behind the WQE.
    while (postings_.size() > 1 && !begins_behind(postings_[1], event)) postings_.pop_front();
    if (is_it) {
      index_ = number_of(event, field::index);
      print_before(event);
      print(event);
      if (sends_packets(event)) message_ = messages_;
    }
    if (sends_packets(event)) ++messages_;
  }

  // Posting, doorbell and fetch, in the order of time. A fetch before the posting was that of an earlier WQE: a WQE
  // that a doorbell carries needs none.
  void print_before(const TraceEvent& wqe) {
    std::vector<TraceEvent> events;
    if (!postings_.empty() && !begins_behind(postings_.front(), wqe)) events.push_back(postings_.front());
    const auto posted_at = events.empty() ? Duration{} : events.front().at;
    if (doorbell_) events.push_back(*doorbell_);
    if (fetch_ && fetch_->at >= posted_at) events.push_back(*fetch_);
    std::ranges::stable_sort(events, {}, &TraceEvent::at);
    for (const auto& event : events) print(event);
  }

  // Indices count modulo 2^16.
  static bool begins_behind(const TraceEvent& posting, const TraceEvent& wqe) {
    const auto distance = number_of(posting, field::index) - number_of(wqe, field::index);
    return static_cast<std::int16_t>(distance) > 0;
  }

  void add_sent(const TraceEvent& event) {
    if (!is_request(event)) return;
    const auto psn = number_of(event, field::psn);
    if (psns_.add(psn) && opcode_row(event)->begins()) {
      if (message_ && begun_ == *message_) {
        first_ = psn;
        peer_qp_ = number_of(event, field::destination_qp);
      } else if (first_ && !next_) {
        next_ = psn;
      }
      ++begun_;
    }
    if (in_message(event)) print(event);
  }

  bool add_cqe(const TraceEvent& event) {
    if (!index_ || !is_requesters(event)) return true;
    constexpr std::uint32_t kIndexMask = 0xffff, kHalf = 0x8000;
    if (((number_of(event, field::wqe_counter) - *index_) & kIndexMask) >= kHalf) return true;
    print(event);
    return false;
  }

  bool add_peers(const TraceEvent& event) {
    if (event.kind == EventKind::packet_received && in_message(event) && is_request(event)) {
      ended_at_peer_ |= opcode_row(event)->ends();
      print(event);
    } else if (event.kind == EventKind::packet_sent && in_message(event) && is_response(event)) {
      print(event);
    } else if (event.kind == EventKind::cqe && ended_at_peer_ && !is_requesters(event)) {
      ended_at_peer_ = false;
      print(event);
    }
    return true;
  }

  bool in_message(const TraceEvent& event) const {
    if (!first_) return false;
    const auto psn = number_of(event, field::psn);
    return psn_distance(psn, *first_) >= 0 && (!next_ || psn_distance(psn, *next_) < 0);
  }

  void print(const TraceEvent& event) {
    if (!start_) start_ = event.at;
    text_ += fmt::format("{:>14}  {}\n", "+" + to_string(event.at - *start_), to_text(event, header_.hosts));
  }

  const TraceHeader& header_;
  const FollowedWqe& followed_;
  const std::uint32_t host_;
  std::uint64_t wqes_ = 0, messages_ = 0, begun_ = 0;
  std::deque<TraceEvent> postings_;             // of WQEs that the engine has not taken, and the last one before
  std::optional<TraceEvent> doorbell_, fetch_;  // the last ones so far
  std::optional<std::uint32_t> index_;          // index of the followed WQE in its ring
  std::optional<std::uint64_t> message_;        // number of its message among the QP's messages
  std::optional<std::uint32_t> first_, next_;   // first PSNs of the message and of the next message
  std::optional<std::uint32_t> peer_, peer_qp_;
  bool ended_at_peer_ = false;
  NewPsns psns_;
  std::optional<Duration> start_;
  std::string text_;
};

}  // namespace

std::string follow_wqe(TraceSource& trace, const FollowedWqe& followed) {
  const auto& hosts = trace.header().hosts;
  const auto host = std::ranges::find(hosts, followed.host);
  if (host == hosts.end()) throw ConfigError(fmt::format("--host: the trace has no host '{}'", shown(followed.host)));
  Follower follower(trace.header(), followed, static_cast<std::uint32_t>(host - hosts.begin()));
  trace.read_only([&follower](const TraceIndex& index, std::size_t block) { return follower.wants(index, block); });
  for (TraceEvent event; trace.next(event);)
    if (!follower.add(event)) return follower.text();
  if (!follower.found())
    throw ConfigError(
        fmt::format("--wqe: QP {:#x} of {} executes no WQE number {}", followed.qp, followed.host, followed.number));
  return follower.text() + "the trace ends before the WQE completes\n";
}

}  // namespace rnicsim::sim
