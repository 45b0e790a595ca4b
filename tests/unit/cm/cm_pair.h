// SPDX-License-Identifier: Apache-2.0
// Two communication managers in the same simulated time, and a wire that can lose, delay and duplicate messages.
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model/cm/connection_manager.h"

namespace rnicsim::cm {

inline const char* name_of(EventKind kind) {
  constexpr const char* kNames[] = {"request_received", "request_failed",    "reply_received",       "reply_failed",
                                    "established",      "rejected",          "disconnect_requested", "disconnected",
                                    "timewait_over",    "service_requested", "service_answered",     "service_failed"};
  return kNames[std::size_t(kind)];
}

// Kind and time of an event, without its message.
struct Told {
  EventKind kind;
  Duration at;
  bool operator==(const Told&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << name_of(told.kind) << " at " << told.at.ps / 1'000'000 << " us";
  }
};

class Pair {
 public:
  static constexpr Duration kWire{1'000'000};  // delay from one side to the other
  static constexpr TimeCode kAckDelay = 15;
  static constexpr TimeCode kLifeTime = 18;
  static constexpr TimeCode kResponse = 20;
  static constexpr std::uint8_t kRetries = 15;
  static constexpr std::uint64_t kService = 0x01061c06;
  // Resulting time-outs: between messages of the active side, between messages of the passive side, and timewait. The
  // ACK timeout in timewait is twice the life time, and exceeds the ACK delay.
  static constexpr Duration kActive = 2 * duration_of(kLifeTime) + duration_of(kResponse);
  static constexpr Duration kPassive = duration_of(kResponse);
  static constexpr Duration kTimewait = duration_of(kLifeTime + 1);

  struct Fate {
    bool lost = false;
    Duration late{};
    std::optional<Duration> copy{};  // delay of a duplicate after the original
  };
  struct Side {
    explicit Side(std::uint64_t guid) : manager({guid, kAckDelay, std::uint32_t(guid << 24)}) {}
    std::vector<Told> told() const {
      std::vector<Told> all;
      for (const auto& [at, event] : events) all.push_back({event.kind, at});
      return all;
    }
    const Event& last() const { return events.back().second; }

    ConnectionManager manager;
    std::vector<std::pair<Duration, Event>> events;
    std::function<void(const Event&)> program;  // called at each event
  };

  // Every message takes at least kWire, whatever `wire` returns.
  std::function<Fate(std::size_t from, const Envelope& envelope)> wire;
  std::array<Side, 2> sides{Side(0xa1), Side(0xb2)};
  std::map<std::string, unsigned> sent;               // count of messages, by name
  std::map<std::string, std::uint64_t> transactions;  // transaction ID of the last message, by name
  Duration now{};

  static Gid gid(std::size_t side) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, std::uint8_t(side + 1)};
  }
  ConnectionManager& manager(std::size_t side) { return sides[side].manager; }

  static ConnectParams to(std::size_t peer, std::uint32_t qpn = 0x11) {
    ConnectParams params;
    params.service_id = kService;
    params.path.local_gid = gid(1 - peer);
    params.path.remote_gid = gid(peer);
    params.packet_life_time = kLifeTime;
    params.qpn = qpn;
    params.response_timeout = kResponse;
    params.max_retries = kRetries;
    return params;
  }
  static ServiceParams service_of(std::size_t peer) {
    return {.service_id = kService,
            .route = {.local = gid(1 - peer), .remote = gid(peer)},
            .response_timeout = kResponse,
            .max_retries = kRetries,
            .private_data = {}};
  }

  // Runs `action` at time `when`, after the managers' timers of the same time.
  void at(Duration when, std::function<void()> action) { agenda_.emplace(when, std::move(action)); }
  void run_until(Duration end) {
    take();
    for (auto next = next_time(); next && *next <= end; next = next_time()) step(*next);
    advance(end);
  }
  // Runs until no event is pending. False: events did not end.
  bool run_out() {
    take();
    for (int steps = 0; steps < 1'000'000; ++steps) {
      const auto next = next_time();
      if (!next) return true;
      step(*next);
    }
    return false;
  }
  // Takes messages and events from both managers.
  void take() {
    for (bool more = true; more;) {
      more = false;
      for (std::size_t side = 0; side < 2; ++side) {
        while (const auto message = manager(side).next_message()) carry(side, *message);
        while (const auto event = manager(side).next_event()) {
          more = true;
          sides[side].events.push_back({now, *event});
          if (sides[side].program) sides[side].program(*event);
        }
      }
    }
  }

 private:
  void carry(std::size_t from, const Outgoing& message) {
    const std::string name(cm::name_of(message.envelope.message));
    ++sent[name];
    transactions[name] = message.envelope.transaction_id;
    const std::size_t to = message.route.remote == gid(0) ? 0 : 1;
    const Fate fate = wire ? wire(from, message.envelope) : Fate{};
    const auto arrive = [this, to, route = Route{.local = message.route.remote, .remote = message.route.local},
                         mad = encode(message.envelope)] { manager(to).receive(route, *decode(mad)); };
    const Duration when = now + kWire + fate.late;
    if (!fate.lost) agenda_.emplace(when, arrive);
    if (fate.copy) agenda_.emplace(when + *fate.copy, arrive);
  }
  std::optional<Duration> next_time() const {
    std::optional<Duration> next;
    const auto consider = [&](std::optional<Duration> time) {
      if (time && (!next || *time < *next)) next = time;
    };
    for (const Side& side : sides) consider(side.manager.next_deadline());
    if (!agenda_.empty()) consider(agenda_.begin()->first);
    return next;
  }
  void advance(Duration to) {
    now = to;
    for (Side& side : sides) side.manager.advance(now);
    take();
  }
  void step(Duration to) {
    advance(to);
    while (!agenda_.empty() && agenda_.begin()->first <= now) {
      const auto action = std::move(agenda_.begin()->second);
      agenda_.erase(agenda_.begin());
      action();
      take();
    }
  }

  std::multimap<Duration, std::function<void()>> agenda_;
};

}  // namespace rnicsim::cm
