// SPDX-License-Identifier: Apache-2.0
// A shared receive queue must not lose a receive or use it twice. Many QPs take receives from one SRQ, and threads post
// to it. Messages of one or several packets come over a lossy cable. QPs fail, are reset and are destroyed with partly
// received messages. The SRQ grows, and its limit event fires. At the end every posted receive has completed once or is
// still in the SRQ.
//
// RNICSIM_SOAK_MESSAGES: number of messages (default 4,000).
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "model/host/software_process.h"
#include "tests/support/qp_set.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing::srq_soak_test {
namespace {

constexpr std::size_t kQps = 6;
constexpr std::size_t kPosters = 2;
constexpr std::uint32_t kSlot = 4096;

std::uint64_t wanted_messages() {
  const char* given = std::getenv("RNICSIM_SOAK_MESSAGES");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 4000;
}

// Parameter: completions are polled before their QP is destroyed, so that each is seen.
class SharedSoak : public RcPair, public ::testing::WithParamInterface<bool> {
 protected:
  SharedSoak() : RcPair({}, {"drop=5e-3"}) {}

  void send();
  void receive();

 private:
  struct Reconnection {
    std::size_t qp;
    EndpointAddress address;
  };
  enum class Phase : std::uint8_t { walk, quiet, drain, over };

  void pump(Endpoint& end, QpSet& qps);
  void post();
  void take_completions();
  void take_events();
  void walk();
  void change_queue(std::uint64_t drawn);
  void restart(std::size_t qp, std::uint64_t drawn);
  void await_reconnection();
  void drain();
  std::uint64_t random() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }

  std::uint64_t state_ = 20240607;
  const EndpointOptions common_{.buffer_bytes = 64 * kSlot, .cq_entries = 2048, .timeout = 4, .rnr_retry = 7};
  Exchange<std::vector<EndpointAddress>> addresses_;
  // Messages between the two threads; each reads them in its turn.
  std::optional<Reconnection> asked_, answered_;
  Phase phase_ = Phase::walk;
  // State of the sender.
  std::vector<int> outstanding_ = std::vector<int>(kQps);
  std::vector<bool> broken_ = std::vector<bool>(kQps);
  std::uint64_t turn_ = 0;
  // State of the receiver.
  Endpoint* end_ = nullptr;
  QpSet* qps_ = nullptr;
  bool reconnecting_ = false;
  std::set<std::uint64_t> posted_;
  std::uint64_t next_id_ = 0, came_ = 0, flushed_ = 0, limits_ = 0, restarts_ = 0;
};

void SharedSoak::pump(Endpoint& end, QpSet& qps) {
  const std::size_t i = phase_ == Phase::drain ? 0 : ++turn_ % kQps;
  const std::uint32_t length = turn_ % 7 == 0 ? 3500 : 40;
  const bool may = phase_ == Phase::walk || phase_ == Phase::drain;
  if (may && !broken_[i] && outstanding_[i] < 4 && qps.post(i, end.request(IBV_WR_SEND, 0, length)) == 0)
    ++outstanding_[i];
  for (ibv_wc wc; ibv_poll_cq(end.cq, 1, &wc) == 1;) {
    const auto of = qps.index_of(wc.qp_num);
    --outstanding_[of];
    broken_[of] = broken_[of] || wc.status != IBV_WC_SUCCESS;
  }
}

void SharedSoak::send() {
  Endpoint end(common_);
  QpSet qps(end, kQps);
  qps.connect(addresses_.swap(1, qps.addresses()));
  while (phase_ != Phase::over) {
    pump(end, qps);
    if (!asked_) continue;
    const auto wanted = *asked_;
    asked_.reset();
    ASSERT_EQ(move(qps[wanted.qp], IBV_QPS_RESET), 0);
    outstanding_[wanted.qp] = 0;
    broken_[wanted.qp] = false;
    qps.connect(wanted.qp, wanted.address);
    answered_ = Reconnection{wanted.qp, qps.addresses()[wanted.qp]};
  }
}

void SharedSoak::post() {
  const auto id = next_id_++;
  posted_.insert(id);
  if (end_->receive(static_cast<std::uint32_t>(id % 64) * kSlot, kSlot, id) != 0) posted_.erase(id);
}

void SharedSoak::take_completions() {
  for (ibv_wc wc; ibv_poll_cq(end_->cq, 1, &wc) == 1;) {
    ASSERT_EQ(posted_.erase(wc.wr_id), 1u) << "receive " << wc.wr_id << " came a second time, or was never posted";
    ++(wc.status == IBV_WC_SUCCESS ? came_ : flushed_);
  }
}

void SharedSoak::take_events() {
  ibv_async_event event;
  while (ibv_get_async_event(end_->context, &event) == 0) {
    if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) ++limits_;
    EXPECT_NE(event.event_type, IBV_EVENT_SRQ_ERR);
    ibv_ack_async_event(&event);
  }
}

void SharedSoak::change_queue(std::uint64_t drawn) {
  ibv_srq_attr attributes;
  ASSERT_EQ(ibv_query_srq(end_->srq, &attributes), 0);
  if (drawn % 10 == 0 && attributes.max_wr < 200) {
    attributes.max_wr = 2 * attributes.max_wr + 1;
    ASSERT_EQ(ibv_modify_srq(end_->srq, &attributes, IBV_SRQ_MAX_WR), 0);
  }
  attributes.srq_limit = static_cast<std::uint32_t>(drawn / 16 % 24);
  ASSERT_EQ(ibv_modify_srq(end_->srq, &attributes, IBV_SRQ_LIMIT), 0);
}

void SharedSoak::restart(std::size_t qp, std::uint64_t drawn) {
  ++restarts_;
  if (GetParam() || drawn % 2 == 0) {
    ASSERT_EQ(move((*qps_)[qp], IBV_QPS_ERR), 0);
  }
  if (GetParam()) {
    pass(0, Duration{30'000'000});
    take_completions();
  }
  if (drawn / 2 % 2 == 0) {
    ASSERT_EQ(move((*qps_)[qp], IBV_QPS_RESET), 0);
  } else {
    qps_->destroy(qp);
    qps_->create(qp);
  }
  reconnecting_ = true;
  asked_ = Reconnection{qp, qps_->addresses()[qp]};
}

void SharedSoak::await_reconnection() {
  while (!answered_) pass(0, Duration{1'000'000});
  qps_->connect(answered_->qp, answered_->address);
  answered_.reset();
  reconnecting_ = false;
}

void SharedSoak::walk() {
  const auto messages = wanted_messages();
  while (came_ < messages && !HasFailure()) {
    take_completions();
    take_events();
    const auto drawn = random();
    if (drawn % 40 == 0) change_queue(drawn / 64);
    if (reconnecting_ && !answered_) continue;
    if (answered_) await_reconnection();
    if (drawn % 60 == 2) restart(drawn / 64 % kQps, drawn / 1024);
  }
  if (reconnecting_) await_reconnection();
}

// Fills and empties the SRQ: the device uses all receives that the library counts as posted.
void SharedSoak::drain() {
  phase_ = Phase::quiet;
  pass(0, Duration{5'000'000'000});
  take_completions();
  if (GetParam()) {
    ibv_srq_attr attributes;
    ASSERT_EQ(ibv_query_srq(end_->srq, &attributes), 0);
    EXPECT_LE(posted_.size(), attributes.max_wr) << "some were never given back";
  }
  restart(0, 1);
  await_reconnection();
  const auto seen = posted_;
  posted_.clear();
  ibv_srq_attr attributes;
  ASSERT_EQ(ibv_query_srq(end_->srq, &attributes), 0);
  std::uint32_t room = 0;
  for (; room <= attributes.max_wr; ++room) {
    const auto before = posted_.size();
    post();
    if (posted_.size() == before) break;
  }
  if (GetParam()) {
    EXPECT_EQ(seen.size() + room, attributes.max_wr);
  }
  posted_.insert(seen.begin(), seen.end());
  const auto wanted = came_ + attributes.max_wr;
  phase_ = Phase::drain;
  for (int look = 0; came_ < wanted && look < 100'000 && !HasFailure(); ++look) take_completions();
  EXPECT_EQ(came_, wanted);
  if (GetParam()) {
    EXPECT_TRUE(posted_.empty());
  }
}

void SharedSoak::receive() {
  auto options = common_;
  options.shared_wr = 31;
  Endpoint end(options);
  never_wait(end.context->async_fd);
  QpSet qps(end, kQps);
  end_ = &end;
  qps_ = &qps;
  qps.connect(addresses_.swap(0, qps.addresses()));
  std::size_t running = kPosters;
  bool stops = false;
  for (std::size_t p = 0; p < kPosters; ++p)
    process(0).spawn("poster" + std::to_string(p), [&, p] {
      for (std::uint64_t i = 0; !stops; ++i) {
        post();
        process(0).port().wait_until(now() + Duration{static_cast<std::int64_t>(300'000 + 700'000 * ((i + p) % 3))});
      }
      settle(0);
      --running;
    });
  walk();
  stops = true;
  while (running != 0) pass(0, Duration{10'000'000});
  if (!HasFailure()) drain();
  phase_ = Phase::over;
  take_events();
  EXPECT_GT(restarts_, 0u);
  EXPECT_GT(limits_, 0u);
}

TEST_P(SharedSoak, EveryReceiveComesOutOnceOrIsStillThere) {
  run([&] { receive(); }, [&] { send(); }, Duration{60'000'000'000'000});
}

INSTANTIATE_TEST_SUITE_P(PolledOrNot, SharedSoak, ::testing::Bool());

}  // namespace
}  // namespace rnicsim::testing::srq_soak_test
