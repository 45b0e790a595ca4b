// SPDX-License-Identifier: Apache-2.0
// UC and UD over a bad cable. Each of two hosts sends the other a seeded sequence over a UC and a UD queue pair.
// Messages that arrive are complete. Over a cable that only loses packets, they arrive once and in order. Over a cable
// that duplicates, they arrive at most as often as the cable delivered them. Sends complete whatever happens to the
// packets.
//
// RNICSIM_SOAK_MESSAGES: number of messages in both directions together (default 8,000).
#include <cstdlib>
#include <cstring>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing::unreliable_soak_test {
namespace {

constexpr std::uint32_t kGrh = 40;
constexpr std::uint32_t kNumber = 8;        // bytes; a SEND begins with its message number
constexpr std::uint32_t kMostBytes = 4000;  // bytes per message: up to four packets at MTU 1024, or one datagram
constexpr std::uint32_t kSlot = 4096;
constexpr std::uint64_t kWindow = 16;
constexpr std::uint64_t kReceives = 64;
constexpr std::uint64_t kWriteSlots = 128;  // a WRITE is checked long before its slot is used again
constexpr std::uint32_t kReceive = kWindow * kSlot;
constexpr std::uint32_t kWritten = kReceive + kReceives * kSlot;
constexpr std::uint32_t kBuffer = kWritten + kWriteSlots * kSlot;
constexpr Duration kCatchUp{30'000'000};  // time for the other side after each window
constexpr Duration kQuiet{200'000'000};   // longer than any packet is delayed

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// Message `number` in the sequence of one sender and queue pair.
struct Planned {
  Planned(std::uint64_t sender, bool datagram, std::uint64_t message)
      : number(message), hash(mix(message * 4 + sender * 2 + datagram)) {
    constexpr ibv_wr_opcode kOperations[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
                                             IBV_WR_RDMA_WRITE};
    operation = kOperations[hash % (datagram ? 2 : 4)];
    const bool large = (hash >> 8) % 2 == 0;
    length = kNumber + static_cast<std::uint32_t>((hash >> 16) % (large ? kMostBytes - kNumber : 57));
    is_inline = length <= 64 && (hash >> 52) % 2 == 0;
  }
  bool writes() const { return operation == IBV_WR_RDMA_WRITE || operation == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool has_immediate() const { return operation == IBV_WR_SEND_WITH_IMM || operation == IBV_WR_RDMA_WRITE_WITH_IMM; }
  std::uint8_t byte(std::uint32_t at) const {
    return static_cast<std::uint8_t>(at < kNumber && !writes() ? number >> (8 * at) : hash >> 24 ^ at * 37 ^ at >> 8);
  }
  std::uint32_t write_offset() const { return kWritten + static_cast<std::uint32_t>(number % kWriteSlots) * kSlot; }

  std::uint64_t number;
  std::uint64_t hash;
  ibv_wr_opcode operation;
  std::uint32_t length;
  bool is_inline;
};

EndpointOptions options_of(bool datagram) {
  EndpointOptions options;
  options.type = datagram ? IBV_QPT_UD : IBV_QPT_UC;
  options.buffer_bytes = kBuffer;
  options.max_wr = kReceives;
  options.cq_entries = 256;
  options.max_inline = 64;
  return options;
}

// One end of one queue pair; it sends and receives.
class Line {
 public:
  Line(std::uint64_t me, bool datagram, std::uint64_t messages)
      : end(options_of(datagram)), me_(me), datagram_(datagram), times_(messages) {}

  // Posts the receives of a connected QP.
  void offer() {
    for (std::uint64_t i = 0; i < kReceives; ++i) receive(i);
  }

  void post() {
    const Planned plan(me_, datagram_, posted_);
    const auto slot = static_cast<std::uint32_t>(posted_ % kWindow) * kSlot;
    for (std::uint32_t i = 0; i < plan.length; ++i) end.buffer[slot + i] = plan.byte(i);
    auto wr = end.request(plan.operation, slot, plan.length, plan.write_offset());
    wr.wr_id = posted_++;
    wr.imm_data = static_cast<std::uint32_t>(plan.number);
    wr.send_flags = plan.is_inline ? unsigned(IBV_SEND_INLINE) : 0u;
    ASSERT_EQ(end.post(wr), 0);
  }
  // Polls one completion; false: none.
  bool poll() {
    ibv_wc wc;
    if (ibv_poll_cq(end.cq, 1, &wc) != 1) return false;
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    if (wc.opcode & IBV_WC_RECV) {
      take(wc);
      receive(wc.wr_id);
    } else {
      EXPECT_EQ(wc.wr_id, completed_++);
    }
    return true;
  }
  bool window_open() const { return posted_ - completed_ < kWindow; }
  bool all_completed() const { return posted_ == completed_; }

  // Counts arrivals of each message that consumes a receive.
  struct Tally {
    std::uint64_t sent = 0, lost = 0, repeated = 0, most = 0, late = 0;
  };
  Tally tally() const {
    Tally sum;
    sum.late = late_;
    for (std::uint64_t i = 0; i < times_.size(); ++i) {
      const Planned plan(1 - me_, datagram_, i);
      if (plan.operation == IBV_WR_RDMA_WRITE) continue;
      ++sum.sent;
      sum.lost += times_[i] == 0;
      sum.repeated += times_[i] > 1;
      sum.most = std::max<std::uint64_t>(sum.most, times_[i]);
    }
    return sum;
  }

  Endpoint end;

 private:
  void receive(std::uint64_t slot) {
    ASSERT_EQ(end.receive(kReceive + static_cast<std::uint32_t>(slot) * kSlot, kSlot, slot), 0);
  }
  void take(const ibv_wc& wc) {
    const auto* at = end.buffer.data() + kReceive + wc.wr_id * kSlot + (datagram_ ? kGrh : 0);
    const auto bytes = wc.byte_len - (datagram_ ? kGrh : 0);
    std::uint64_t number = wc.imm_data;
    const bool writes = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    if (!writes) std::memcpy(&number, at, kNumber);
    ASSERT_LT(number, times_.size());
    const Planned plan(1 - me_, datagram_, number);
    if (writes) at = end.buffer.data() + plan.write_offset();
    ASSERT_EQ(plan.writes(), writes) << number;
    ASSERT_EQ(bytes, plan.length) << number;
    ASSERT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, plan.has_immediate()) << number;
    if (plan.has_immediate()) {
      ASSERT_EQ(wc.imm_data, static_cast<std::uint32_t>(number));
    }
    for (std::uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(at[i], plan.byte(i)) << "message " << number << " at " << i;
    ++times_[number];
    late_ += number < next_;
    next_ = std::max(next_, number + 1);
  }

  const std::uint64_t me_;
  const bool datagram_;
  std::vector<std::uint32_t> times_;
  std::uint64_t posted_ = 0, completed_ = 0;
  std::uint64_t next_ = 0, late_ = 0;
};

class UnreliableSoak : public RcPair {
 protected:
  explicit UnreliableSoak(const std::vector<std::string>& faults = {"drop=1e-2", "corrupt=5e-3"})
      : RcPair({}, faults) {}

  void converse() {
    const char* wanted = std::getenv("RNICSIM_SOAK_MESSAGES");
    const std::uint64_t each = (wanted ? std::strtoull(wanted, nullptr, 10) : 8000) / 4;
    using Addresses = std::array<EndpointAddress, 2>;
    Exchange<Addresses> addresses;
    const auto body = [&](std::size_t me) {
      Line uc(me, false, each), ud(me, true, each);
      const auto remote = addresses.swap(me, {uc.end.address(), ud.end.address()});
      uc.end.connect(remote[0]);
      ud.end.connect(remote[1]);
      for (auto* line : {&uc, &ud}) line->offer();
      meet(me);
      for (std::uint64_t posted = 0; posted < each && !HasFailure(); ++posted) {
        for (auto* line : {&uc, &ud}) {
          while (!line->window_open()) line->poll();
          line->post();
        }
        if (posted % kWindow == kWindow - 1) catch_up(me, {&uc, &ud}, kCatchUp);
      }
      while (!uc.all_completed() || !ud.all_completed()) uc.poll(), ud.poll();
      meet(me);
      catch_up(me, {&uc, &ud}, kQuiet);
      tallies[me] = {uc.tally(), ud.tally()};
      meet(me);
    };
    run([&] { body(0); }, [&] { body(1); }, Duration{1'000'000'000'000'000});
  }
  void catch_up(std::size_t me, std::array<Line*, 2> lines, Duration time) {
    for (const auto end = now() + time; now() < end && !HasFailure();) {
      pass(me, Duration{2'000'000});
      for (auto* line : lines)
        while (line->poll()) {}
    }
  }
  nic::EngineCounters counters(std::size_t index) { return host(index).nic().counters().engine; }

  std::array<std::array<Line::Tally, 2>, 2> tallies;
};

TEST_F(UnreliableSoak, ALossyCableLosesAndNoMore) {
  converse();
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto& tally : tallies[i]) {
      EXPECT_GT(tally.lost, tally.sent / 200);
      EXPECT_LT(tally.lost, tally.sent / 10);
      EXPECT_EQ(tally.repeated, 0u);
      EXPECT_EQ(tally.late, 0u);
    }
    EXPECT_GT(counters(i).out_of_sequence, 0u);
    EXPECT_EQ(counters(i).out_of_buffer, 0u);
    EXPECT_EQ(counters(i).req_cqe_error, 0u);
    EXPECT_EQ(counters(i).resp_cqe_error, 0u);
  }
}

class DisorderlySoak : public UnreliableSoak {
 protected:
  DisorderlySoak() : UnreliableSoak({"drop=5e-3", "duplicate=2e-2", "delay=1e-2,by=20us", "reorder=2e-2,by=2"}) {}
};
TEST_F(DisorderlySoak, WhatArrivesIsWhole) {
  converse();
  for (std::size_t i = 0; i < 2; ++i) {
    for (const auto& tally : tallies[i]) {
      EXPECT_LT(tally.lost, tally.sent / 4);
      EXPECT_LE(tally.most, 2u);
    }
    EXPECT_GT(tallies[i][1].repeated, 0u);
    EXPECT_GT(tallies[i][1].late, 0u);
    EXPECT_EQ(counters(i).resp_cqe_error, 0u);
  }
}

}  // namespace
}  // namespace rnicsim::testing::unreliable_soak_test
