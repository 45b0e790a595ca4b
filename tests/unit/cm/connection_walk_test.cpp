// SPDX-License-Identifier: Apache-2.0
// Many connections and lookups at once, over a wire that loses, repeats and reorders messages. Owners make random calls
// in random order. Every event must be possible after the earlier events. After all are destroyed and time has passed,
// nothing is left.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/unit/cm/cm_pair.h"

namespace rnicsim::cm {
namespace {

using enum EventKind;

class Walk : public ::testing::TestWithParam<unsigned> {
 protected:
  using Id = std::pair<std::size_t, ConnectionId>;

  Walk() : random_(GetParam()) {
    pair.wire = [this](std::size_t, const Envelope&) -> Pair::Fate {
      const Duration late = percent(20) ? millis(12'000) : millis(2);
      return {.lost = percent(20), .late = late, .copy = percent(15) ? std::optional(millis(9'000)) : std::nullopt};
    };
    for (std::size_t side = 0; side < 2; ++side)
      pair.sides[side].program = [this, side](const Event& event) { on(side, event); };
  }

  unsigned below(unsigned limit) { return unsigned(random_() % limit); }
  bool percent(unsigned chance) { return below(100) < chance; }
  Duration millis(unsigned limit) { return Duration{std::int64_t{below(limit)} * 1'000'000'000}; }
  ConnectionManager& manager(std::size_t side) { return pair.manager(side); }

  // Events that may follow the last event of an id. The owner's own calls cause no event.
  static bool may_follow(EventKind before, EventKind event) {
    static const std::map<EventKind, std::set<EventKind>> kNext{
        {request_received, {established, reply_failed, rejected, disconnect_requested, timewait_over}},
        {reply_received, {rejected, disconnect_requested, disconnected, timewait_over}},
        {established, {rejected, disconnect_requested, disconnected}},
        {rejected, {timewait_over}},
        {disconnect_requested, {disconnected, timewait_over}},
        {disconnected, {timewait_over}},
    };
    const auto next = kNext.find(before);
    return next != kNext.end() && next->second.contains(event);
  }
  static bool may_begin(EventKind event) {
    return event == request_failed || event == reply_received || event == rejected || event == service_answered ||
           event == service_failed;
  }

  void on(std::size_t side, const Event& event) {
    const Id id{side, event.id};
    const auto known = heard_.find(id);
    if (event.kind == request_received || event.kind == service_requested) {
      EXPECT_EQ(known, heard_.end()) << "a new id is one that there is";
    } else if (known == heard_.end()) {
      ADD_FAILURE() << name_of(event.kind) << " of an id that has gone";
    } else if (!known->second) {
      EXPECT_TRUE(may_begin(event.kind)) << name_of(event.kind) << " first of all";
    } else {
      EXPECT_TRUE(may_follow(*known->second, event.kind))
          << name_of(event.kind) << " after " << name_of(*known->second);
    }
    heard_[id] = event.kind;
    ++events_[event.kind];
    if (percent(60)) answer(id);
  }

  // Answers an event as most owners do.
  void answer(Id id) {
    auto& local = manager(id.first);
    switch (*heard_.at(id)) {
      case request_received:
        if (percent(50)) local.promise(id.second, 21);
        if (percent(80)) local.reply(id.second, {.qpn = below(40), .private_data = {}});
        break;
      case reply_received:
        if (percent(50)) local.promise(id.second, 21);
        if (percent(80)) local.ready(id.second);
        break;
      case disconnect_requested: local.confirm_disconnect(id.second); break;
      case service_requested: local.answer_service(id.second, ServiceIdStatus(below(3)), 1, 2); break;
      default: break;
    }
  }

  void begin() {
    const std::size_t side = below(2);
    const Id id{side, manager(side).create()};
    heard_[id] = std::nullopt;
    // Also connections to itself: one manager has both ends.
    const std::size_t peer = percent(10) ? side : 1 - side;
    if (percent(25)) {
      auto params = Pair::service_of(peer);
      params.route.local = Pair::gid(side);
      params.max_retries = std::uint8_t(below(16));
      EXPECT_EQ(manager(side).resolve_service(id.second, params), 0);
    } else {
      auto params = Pair::to(peer, below(40));
      params.path.local_gid = Pair::gid(side);
      params.max_retries = std::uint8_t(below(16));
      EXPECT_EQ(manager(side).connect(id.second, params), 0);
    }
  }

  // A random call for a random id.
  void meddle() {
    if (heard_.empty()) return;
    const auto at = std::next(heard_.begin(), below(unsigned(heard_.size())));
    const Id id = at->first;
    auto& local = manager(id.first);
    switch (below(12)) {
      case 0: local.reply(id.second, {.qpn = below(40), .private_data = {}}); break;
      case 1: local.ready(id.second); break;
      case 2: local.reject(id.second, RejectReason::consumer); break;
      case 3: local.promise(id.second, 22); break;
      case 4:
      case 5: local.disconnect(id.second); break;
      case 6: local.confirm_disconnect(id.second); break;
      case 7: local.establish(id.second); break;
      case 8: local.answer_service(id.second, ServiceIdStatus::valid, 3, 4); break;
      case 9:
        if (!at->second || *at->second != request_received) break;
        heard_.erase(at);
        local.forget(id.second);
        break;
      case 10:
        heard_.erase(at);
        local.destroy(id.second);
        break;
      default:
        if (percent(50))
          local.unlisten(Pair::kService);
        else
          local.listen(Pair::kService);
        break;
    }
  }

  // Destroys everything and lets time pass.
  void expect_an_end() {
    for (std::size_t side = 0; side < 2; ++side) manager(side).unlisten(Pair::kService);
    while (!heard_.empty()) {
      const Id id = heard_.begin()->first;
      heard_.erase(heard_.begin());
      manager(id.first).destroy(id.second);
      pair.take();
    }
    EXPECT_TRUE(pair.run_out());
    for (std::size_t side = 0; side < 2; ++side) {
      EXPECT_EQ(manager(side).connections(), 0u);
      EXPECT_EQ(manager(side).next_deadline(), std::nullopt);
    }
    EXPECT_TRUE(heard_.empty());
  }

  Pair pair;
  std::map<Id, std::optional<EventKind>> heard_;  // by existing id: its last event
  std::map<EventKind, unsigned> events_;

 private:
  std::mt19937 random_;
};

TEST_P(Walk, EndsWithNothing) {
  constexpr int kSteps = 3'000;
  for (std::size_t side = 0; side < 2; ++side) manager(side).listen(Pair::kService);
  for (int step = 0; step < kSteps && !HasFailure(); ++step) {
    percent(35) ? begin() : meddle();
    pair.run_until(pair.now + millis(percent(5) ? 20'000 : 500));
  }
  // Every kind of event must occur; otherwise the walk covers too little.
  EXPECT_EQ(events_.size(), std::size_t(service_failed) + 1);

  expect_an_end();
}

// A peer that sends random messages, about ids and QPs that may exist.
class HostilePeer : public Walk {
 protected:
  std::uint32_t some_id() {
    if (heard_.empty() || percent(30)) return below(8);
    return std::next(heard_.begin(), below(unsigned(heard_.size())))->first.second;
  }
  Message some_message() {
    const auto subject = Subject(below(4));
    const auto reason = percent(50) ? RejectReason::timeout : RejectReason(below(30));
    const std::uint64_t guid = percent(50) ? 0xa1 : 0xb2;
    ConnectReject reject{.local_id = some_id(), .remote_id = some_id(), .subject = subject, .reason = reason};
    reject.information[7] = std::uint8_t(guid);
    switch (below(11)) {
      case 0:
        return ConnectRequest{.local_id = some_id(),
                              .service_id = Pair::kService,
                              .local_ca_guid = guid,
                              .local_qpn = below(6),
                              .local_response_timeout = std::uint8_t(below(32)),
                              .max_cm_retries = std::uint8_t(below(16)),
                              .primary = {.local_gid = Pair::gid(below(3)), .remote_gid = Pair::gid(below(2))}};
      case 1:
        return MessageReceiptAck{.local_id = some_id(),
                                 .remote_id = some_id(),
                                 .subject = subject,
                                 .service_timeout = std::uint8_t(below(32))};
      case 2: return reject;
      case 3:
        return ConnectReply{
            .local_id = some_id(), .remote_id = some_id(), .local_qpn = below(6), .local_ca_guid = guid};
      case 4: return ReadyToUse{.local_id = some_id(), .remote_id = some_id()};
      case 5: return DisconnectRequest{.local_id = some_id(), .remote_id = some_id(), .remote_qpn = below(6)};
      case 6: return DisconnectReply{.local_id = some_id(), .remote_id = some_id()};
      case 7: return ServiceIdRequest{.request_id = some_id(), .service_id = Pair::kService};
      case 8: return ServiceIdReply{.request_id = some_id(), .status = ServiceIdStatus(below(8))};
      case 9: return LoadAlternatePath{.local_id = some_id(), .remote_id = some_id()};
      default: return AlternatePathResponse{.local_id = some_id(), .remote_id = some_id()};
    }
  }
};

TEST_P(HostilePeer, HarmsNobodyElse) {
  for (std::size_t side = 0; side < 2; ++side) {
    manager(side).listen(Pair::kService);
    pair.sides[side].program = [this, side](const Event& event) {
      heard_[{side, event.id}] = event.kind;
      if (percent(60)) answer({side, event.id});
    };
  }
  for (int step = 0; step < 5'000; ++step) {
    const std::size_t side = below(2);
    if (percent(20)) begin();
    if (percent(20)) meddle();
    manager(side).receive({.local = Pair::gid(side), .remote = Pair::gid(below(3))}, {below(8), some_message()});
    pair.run_until(pair.now + millis(200));
  }
  expect_an_end();
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostilePeer, ::testing::Range(1u, 5u));
INSTANTIATE_TEST_SUITE_P(Seeds, Walk, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace rnicsim::cm
