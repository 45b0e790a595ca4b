// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/connections_walk/walker.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <sstream>

#include "model/base/kernel.h"
#include "model/host/software_process.h"

namespace rnicsim::testing {
namespace {

constexpr std::size_t kMovesKept = 150;
constexpr std::int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

}  // namespace

ConnectionWalker::ConnectionWalker(ConnectionTown& town, std::uint32_t index, std::uint32_t host, bool synchronous)
    : town_(town),
      index_(index),
      host_(host),
      synchronous_(synchronous),
      dice_(town.seed * 1000 + index),
      next_token_((std::uint64_t{index} + 1) << 48),
      cells_(kCell * kCells) {}

void ConnectionWalker::note(const std::string& move) {
  ++town_.calls;
  std::ostringstream line;
  line << to_string(now()) << " walker " << index_ << ", step " << step_ << ": " << move;
  town_.moves.push_back(line.str());
  if (town_.moves.size() > kMovesKept) town_.moves.pop_front();
}

void ConnectionWalker::fail(const std::string& what) {
  if (std::exchange(town_.broken, true)) return;
  std::string moves;
  for (const auto& move : town_.moves) moves += move + "\n";
  ADD_FAILURE() << "seed " << town_.seed << ", walker " << index_ << ", step " << step_ << ": " << what
                << "\nthe last moves:\n"
                << moves;
}

bool ConnectionWalker::expect(const std::string& call, int answer, const std::set<int>& allowed) {
  note(call + ": " + std::to_string(answer));
  if (allowed.contains(answer)) return true;
  std::string wanted;
  for (const int one : allowed) wanted += " " + std::to_string(one);
  fail(call + " answered " + std::to_string(answer) + ", not" + wanted);
  return false;
}

bool ConnectionWalker::validate(Ident& ident, const std::string& call, int answer, const Rule& rule) {
  note(call + " of " + name(ident) + ": " + std::to_string(answer));
  ident.shapes.wander(ident.surroundings());
  if (!ident.shapes.answered(answer, rule)) {
    std::string wanted;
    for (const int one : ident.shapes.errors(rule)) wanted += " " + std::to_string(one);
    fail(call + " of " + name(ident) + " answered " + std::to_string(answer) + ", not" + wanted + ";" +
         ident.shapes.text());
    return false;
  }
  ident.shapes.wander(ident.surroundings());
  return true;
}

// The id holds the event that ended the call. The call's result follows from the event.
bool ConnectionWalker::validate_waiting(const Known& ident, const std::string& call, int answer, const Rule& rule) {
  if (!ident->synchronous || ident->id->event == nullptr) {
    if (ident->synchronous && answer == 0) fail(call + " did not wait");
    return validate(*ident, call, answer, rule);
  }
  if (!validate(*ident, call, 0, rule)) return false;
  const rdma_cm_event& event = *ident->id->event;
  const int outcome = event.status == 0                       ? 0
                      : event.event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED
                                                              : std::abs(event.status);
  hear(ident, *ident->id->event);
  return expect(call + " of " + name(*ident) + ", which waited", answer, {outcome});
}

// True: a call of a synchronous id will return. Asynchronous ids never wait.
bool ConnectionWalker::may_wait(Ident& ident, const Rule& rule) {
  if (!ident.synchronous) return true;
  ident.shapes.wander(ident.surroundings());
  if (!ident.shapes.will_hear_after(rule, 0)) return false;
  if (ident.id->event != nullptr) rdma_ack_cm_event(std::exchange(ident.id->event, nullptr));
  return true;
}

void ConnectionWalker::pass(std::int64_t nanoseconds) {
  process_->port().settle();
  sleep_until(now() + Duration{nanoseconds * 1000});
}

void ConnectionWalker::step() {
  ++step_;
  const auto draw = dice_.below(100);
  const Known ident = any();
  if (!ident || (draw < 5 && idents_.size() < kMostIdents)) return make_ident();
  if (draw < 6) return dice_.once_in(2) ? make_endpoint() : renew_channel();
  if (draw < 8 || idents_.size() > kMostIdents + 4) return destroy(dispensable());
  if (draw < 40) return progress(ident);
  if (draw < 70) return take_events();
  if (draw < 78) return call_anything(ident);
  if (draw < 84) return post(*ident);
  if (draw < 90) return poll(*ident);
  if (draw < 92) return acknowledge_some();
  if (dice_.once_in(400)) return pass(dice_.between(1, 9) * kSecond);
  pass(dice_.once_in(20) ? dice_.between(1, 5) * kMillisecond : dice_.between(1, 100) * kMicrosecond);
}

// Prefers an id whose connection has ended. Sometimes returns a listener with unread requests.
ConnectionWalker::Known ConnectionWalker::dispensable() {
  Known chosen = any();
  if (dice_.once_in(4)) return chosen;
  for (int i = 0; i < 4 && !chosen->shapes.can_be(Shape::Link::over); ++i) chosen = any();
  return chosen;
}

void ConnectionWalker::open(host::SoftwareProcess& process) {
  process_ = &process;
  ibv_context** list = rdma_get_devices(nullptr);
  if (list == nullptr) return fail("rdma_get_devices");
  context_ = list[0];
  rdma_free_devices(list);
  pd_ = ibv_alloc_pd(context_);
  mr_ = ibv_reg_mr(pd_, cells_.data(), cells_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (pd_ == nullptr || mr_ == nullptr) return fail("no memory region");
  if (synchronous_) return;
  channels_.resize(kChannels);
  for (auto& channel : channels_) make_channel(channel);
}

// All walkers are idle for longer than any timer, and then read their events. Reading events sends messages, too.
void ConnectionWalker::settle() {
  walks_ = false;
  pass(4000 * kSecond);
  for (bool more = true; more && !town_.broken;) {
    more = false;
    if (synchronous_) {
      for (std::size_t i = 0; i < idents_.size() && !town_.broken; ++i) {
        const Known ident = idents_[i];
        while (!town_.broken && read_event(ident->id->channel, {ident})) more = true;
      }
    } else {
      for (std::size_t i = 0; i < channels_.size() && !town_.broken; ++i)
        while (!town_.broken && read_event(channels_[i], on_channel(i))) more = true;
    }
  }
}

// No further event may be pending or possible.
void ConnectionWalker::expect_settled() {
  for (const Known& ident : idents_) {
    if (town_.broken) return;
    ident->shapes.wander(ident->surroundings());
    if (!ident->shapes.settled() || !ident->shapes.silent())
      fail(name(*ident) + " has not heard what was to come;" + ident->shapes.text());
    for (const auto& joined : ident->groups)
      if (!joined->told) fail(name(*ident) + " has not heard of its group");
  }
}

void ConnectionWalker::destroy_all() {
  while (!idents_.empty() && !town_.broken) destroy(idents_.back());
}

void ConnectionWalker::close() {
  if (!held_.empty()) return fail("an event of nobody's");
  for (rdma_event_channel* channel : channels_) rdma_destroy_event_channel(channel);
  expect("ibv_dereg_mr", ibv_dereg_mr(mr_), {0});
  expect("ibv_dealloc_pd", ibv_dealloc_pd(pd_), {0});
}

}  // namespace rnicsim::testing
