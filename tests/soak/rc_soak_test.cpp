// SPDX-License-Identifier: Apache-2.0
// RC over a lossy cable must not lose or repeat a message, and the simulator must not grow. Each of two hosts sends the
// other a seeded sequence of messages of every operation. The cable loses 1% in each direction, and receivers are often
// not ready. Both hosts know the sequence, so each checks order, length, bytes, immediate data and the results of
// atomics.
//
// RNICSIM_SOAK_MESSAGES: number of messages in both directions together (default 20,000).
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <memory>

#include "model/host/software_process.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/engine_choice.h"
#include "sim/system.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing::rc_soak_test {
namespace {

constexpr std::uint32_t kMostBytes = 4000;  // bytes per message: up to four packets at MTU 1024
constexpr std::uint32_t kSlot = 4096;
constexpr std::uint64_t kWindow = 16;       // most incomplete messages of a sender
constexpr std::uint64_t kReceives = 3;      // most posted receives
constexpr std::uint64_t kWriteSlots = 128;  // a WRITE is checked long before its slot is used again
constexpr std::uint64_t kNoticeEvery = 16;
// Offsets in the buffer of each end.
constexpr std::uint32_t kLocal = 0;  // one slot for each incomplete message
constexpr std::uint32_t kReceive = kLocal + kWindow * kSlot;
constexpr std::uint32_t kWritten = kReceive + kReceives * kSlot;
constexpr std::uint32_t kRead = kWritten + kWriteSlots * kSlot;
constexpr std::uint32_t kReadBytes = 16 * kSlot;
constexpr std::uint32_t kCounter = kRead + kReadBytes;
constexpr std::uint32_t kSwapped = kCounter + 8;
constexpr std::uint32_t kBuffer = kSwapped + 8;

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// Message `number` in the sequence of one sender.
struct Planned {
  Planned(std::uint64_t sender, std::uint64_t message) : number(message), hash(mix(message * 2 + sender)) {
    constexpr std::array kOperations{IBV_WR_SEND,
                                     IBV_WR_SEND_WITH_IMM,
                                     IBV_WR_RDMA_WRITE,
                                     IBV_WR_RDMA_READ,
                                     IBV_WR_ATOMIC_FETCH_AND_ADD,
                                     IBV_WR_ATOMIC_CMP_AND_SWP,
                                     IBV_WR_RDMA_WRITE_WITH_IMM};
    operation =
        number % kNoticeEvery == kNoticeEvery - 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : kOperations[hash % kOperations.size()];
    const bool large = (hash >> 8) % 8 == 0;
    length = atomic() ? 8 : static_cast<std::uint32_t>((hash >> 16) % (large ? kMostBytes + 1 : 65));
    signaled = number % kNoticeEvery == kNoticeEvery - 1 || (hash >> 40) % 4 != 0;
    fence = (hash >> 48) % 16 == 0;
    is_inline = !atomic() && operation != IBV_WR_RDMA_READ && length <= 64 && (hash >> 52) % 2 == 0;
  }
  bool atomic() const { return operation == IBV_WR_ATOMIC_FETCH_AND_ADD || operation == IBV_WR_ATOMIC_CMP_AND_SWP; }
  bool writes() const { return operation == IBV_WR_RDMA_WRITE || operation == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool sends() const { return operation == IBV_WR_SEND || operation == IBV_WR_SEND_WITH_IMM; }
  bool has_immediate() const { return operation == IBV_WR_SEND_WITH_IMM || operation == IBV_WR_RDMA_WRITE_WITH_IMM; }
  bool takes_receive() const { return sends() || has_immediate(); }
  std::uint8_t byte(std::uint32_t at) const { return static_cast<std::uint8_t>(hash >> 24 ^ at * 37 ^ at >> 8); }
  std::uint32_t read_offset() const { return static_cast<std::uint32_t>(hash >> 32) % (kReadBytes - kMostBytes); }

  std::uint64_t number;
  std::uint64_t hash;
  ibv_wr_opcode operation;
  std::uint32_t length;
  bool signaled, fence, is_inline;
};

std::uint8_t static_byte(std::uint32_t at) { return static_cast<std::uint8_t>(mix(at) >> 5); }

EndpointOptions end_options() {
  EndpointOptions options;
  options.buffer_bytes = kBuffer;
  options.signal_all = false;
  options.min_rnr_timer = 1;
  options.timeout = 5;  // 131 us
  return options;
}

class Peer {
 public:
  Peer(std::uint64_t me, std::uint64_t messages) : me_(me), messages_(messages), end_(end_options()) {
    for (std::uint32_t i = 0; i < kReadBytes; ++i) end_.buffer[kRead + i] = static_byte(i);
  }
  EndpointAddress address() const { return end_.address(); }
  void connect(const EndpointAddress& remote) { end_.connect(remote); }

  // Runs until all messages of this side are complete and all messages of the other side have arrived.
  void run() {
    while (completed_ < messages_ || checked_ < messages_) {
      if (posted_ < messages_ && posted_ - completed_ < kWindow) post();
      // Sometimes the receiver posts nothing for a while, so that the sender gets RNR NAKs.
      const bool lags = mix(++looks_ / 64) % 8 == 0;
      if (!lags && posted_receives_ - received_ < kReceives) post_receive();
      ibv_wc wc;
      while (ibv_poll_cq(end_.cq, 1, &wc) == 1) wc.opcode& IBV_WC_RECV ? take_receive(wc) : take_completion(wc);
      if (::testing::Test::HasFailure()) return;
      // Messages behind the last one with a receive cannot be seen here; the other side's completions show them.
      if (expected_ >= messages_) checked_ = messages_;
    }
  }

 private:
  std::uint32_t slot(std::uint64_t number) const {
    return kLocal + static_cast<std::uint32_t>(number % kWindow) * kSlot;
  }

  void post() {
    const Planned plan(me_, posted_);
    auto wr = end_.request(plan.operation, slot(plan.number), plan.length, remote_offset(plan));
    if (plan.operation == IBV_WR_ATOMIC_FETCH_AND_ADD) wr = end_.fetch_add(slot(plan.number), plan.number, kCounter);
    if (plan.operation == IBV_WR_ATOMIC_CMP_AND_SWP)
      wr = end_.compare_swap(slot(plan.number), swapped_ + plan.hash % 2, plan.hash, kSwapped);
    if (plan.atomic()) expect_original(plan);
    if (plan.sends() || plan.writes())
      for (std::uint32_t i = 0; i < plan.length; ++i) end_.buffer[slot(plan.number) + i] = plan.byte(i);
    if (plan.length == 0) wr.num_sge = 0;
    wr.wr_id = plan.number;
    wr.imm_data = static_cast<std::uint32_t>(plan.number);
    wr.send_flags = (plan.signaled || plan.number + 1 == messages_ ? unsigned(IBV_SEND_SIGNALED) : 0u) |
                    (plan.fence ? unsigned(IBV_SEND_FENCE) : 0u) | (plan.is_inline ? unsigned(IBV_SEND_INLINE) : 0u);
    ASSERT_EQ(end_.post(wr), 0);
    ++posted_;
  }
  static std::uint32_t remote_offset(const Planned& plan) {
    if (plan.operation == IBV_WR_RDMA_READ) return kRead + plan.read_offset();
    return kWritten + static_cast<std::uint32_t>(plan.number % kWriteSlots) * kSlot;
  }
  // Atomics execute in order: the result is known when the atomic is posted.
  void expect_original(const Planned& plan) {
    if (plan.operation == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      originals_.push_back(added_);
      added_ += plan.number;
    } else {
      originals_.push_back(swapped_);
      if (plan.hash % 2 == 0) swapped_ = plan.hash;
    }
  }

  void post_receive() {
    ASSERT_EQ(end_.receive(kReceive + static_cast<std::uint32_t>(posted_receives_ % kReceives) * kSlot, kSlot,
                           posted_receives_),
              0);
    ++posted_receives_;
  }

  void take_completion(const ibv_wc& wc) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "message " << wc.wr_id;
    // An unsignalled message is complete when a later one is.
    for (bool last = false; !last; ++completed_) {
      const Planned plan(me_, completed_);
      last = completed_ == wc.wr_id;
      ASSERT_EQ(last, plan.signaled || completed_ + 1 == messages_) << "message " << completed_ << " skipped";
      const auto* local = end_.buffer.data() + slot(completed_);
      for (std::uint32_t i = 0; plan.operation == IBV_WR_RDMA_READ && i < plan.length; ++i)
        ASSERT_EQ(local[i], static_byte(plan.read_offset() + i)) << "READ " << completed_ << " at " << i;
      if (!plan.atomic()) continue;
      std::uint64_t original;
      std::memcpy(&original, local, sizeof original);
      ASSERT_EQ(original, originals_.front()) << "atomic " << completed_;
      originals_.pop_front();
    }
  }

  // The message of this receive, and the WRITEs before it, have arrived completely.
  void take_receive(const ibv_wc& wc) {
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, received_);
    for (;; ++expected_) {
      const Planned plan(1 - me_, expected_);
      if (plan.writes()) check(plan, kWritten + static_cast<std::uint32_t>(expected_ % kWriteSlots) * kSlot);
      if (!plan.takes_receive()) continue;
      if (plan.sends()) check(plan, kReceive + static_cast<std::uint32_t>(received_ % kReceives) * kSlot);
      ASSERT_EQ(wc.byte_len, plan.length) << "message " << expected_;
      ASSERT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, plan.has_immediate());
      if (plan.has_immediate()) {
        ASSERT_EQ(wc.imm_data, static_cast<std::uint32_t>(expected_));
      }
      break;
    }
    ++expected_;
    ++received_;
    // No later message consumes a receive: the remaining messages cannot be seen here.
    auto next = expected_;
    while (next < messages_ && !Planned(1 - me_, next).takes_receive()) ++next;
    if (next == messages_) expected_ = messages_;
  }
  void check(const Planned& plan, std::uint32_t at) {
    for (std::uint32_t i = 0; i < plan.length; ++i)
      ASSERT_EQ(end_.buffer[at + i], plan.byte(i)) << "message " << plan.number << " at " << i;
  }

  const std::uint64_t me_, messages_;
  Endpoint end_;
  std::uint64_t posted_ = 0, completed_ = 0;
  std::uint64_t posted_receives_ = 0, received_ = 0, looks_ = 0;
  std::uint64_t expected_ = 0;  // number of the next message of the other side
  std::uint64_t checked_ = 0;
  std::uint64_t added_ = 0, swapped_ = 0;
  std::deque<std::uint64_t> originals_;
};

std::uint64_t resident_bytes() {
  std::uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The number of frames that the first host sent shows the progress: a message is at least one frame.
TEST(RcSoak, NothingIsLostNothingTwice) {
  const char* wanted = std::getenv("RNICSIM_SOAK_MESSAGES");
  const std::uint64_t each = (wanted ? std::strtoull(wanted, nullptr, 10) : 20'000) / 2;
  sim::System system("system", sim::load_config("cx5-100g", "back-to-back", with_sets_of_environment(),
                                                std::vector<std::string>{"drop=1e-2"}));
  std::array<std::optional<EndpointAddress>, 2> addresses;
  std::array<bool, 2> done{};
  sc_core::sc_event changed("changed");
  std::vector<std::unique_ptr<host::SoftwareProcess>> processes;
  const auto await_other = [&](auto&& other) {
    wake(changed);
    while (!other()) sleep_on(changed);
  };
  const auto body = [&](std::size_t me) {
    Peer peer(me, each);
    addresses[me] = peer.address();
    await_other([&] { return addresses[1 - me].has_value(); });
    peer.connect(*addresses[1 - me]);
    peer.run();
    done[me] = true;
    await_other([&] { return done[1 - me]; });
  };
  for (std::size_t i = 0; i < 2; ++i)
    processes.push_back(std::make_unique<host::SoftwareProcess>(i == 0 ? "process0" : "process1", system.config().host,
                                                                system.adapter(i).agent(), [&, i] { body(i); }));
  system.start();
  std::uint64_t warm = 0;
  const auto frames = [&] { return system.adapter(0).nic().counters().port.tx_frames; };
  while (!processes[0]->finished() || !processes[1]->finished()) {
    ASSERT_TRUE(sc_core::sc_pending_activity()) << "nothing is to come";
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(system.engines().mismatch().empty()) << system.engines().mismatch();
    sc_core::sc_start(sc_core::sc_time(1, sc_core::SC_MS));
    if (warm == 0 && frames() > each / 5) warm = resident_bytes();
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const auto counters = system.adapter(i).nic().counters();
    EXPECT_GT(counters.engine.out_of_sequence, 0u);
    EXPECT_GT(counters.engine.duplicate_request, 0u);
    EXPECT_GT(counters.engine.packet_seq_err, 0u);
    EXPECT_GT(counters.engine.rnr_nak_retry_err, 0u);
    EXPECT_GT(counters.engine.local_ack_timeout_err, 0u);
    EXPECT_EQ(counters.engine.req_cqe_error, 0u);
    EXPECT_EQ(counters.engine.resp_cqe_error, 0u);
  }
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer keeps freed memory for a while
  EXPECT_LT(resident_bytes(), warm + (1u << 20)) << "the simulator grew";
#endif
}

}  // namespace
}  // namespace rnicsim::testing::rc_soak_test
