// SPDX-License-Identifier: Apache-2.0
// Descriptors that accompany a call: no room for them, wrong numbers of them, and no end of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/unit/attached/scripted_programs.h"

namespace rnicsim::sim::test {
namespace {

using namespace literals;

// A process, and the process's end of the socket to the simulator.
class AttachedDescriptors : public testing::Test {
 protected:
  Process& attach(const Program::Body& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    program_end_ = Descriptor(ends[1]);
    return world_.attach(0, body, Descriptor(ends[0]));
  }
  // Sends `count` descriptors; the announcement says `announced`.
  void send(std::uint32_t count, std::uint32_t announced, std::uint32_t slot = 0) const {
    abi::DescriptorMessage announcement{announced, slot};
    iovec part{&announcement, sizeof announcement};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(abi::kMaxDescriptors * sizeof(int))> ancillary{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count != 0) {
      message.msg_control = ancillary.data();
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(count * sizeof(int));
      const std::vector<int> same(count, quiet_[0]);
      std::memcpy(CMSG_DATA(header), same.data(), count * sizeof(int));
    }
    EXPECT_EQ(::sendmsg(program_end_.get(), &message, MSG_DONTWAIT), ssize_t(sizeof announcement));
  }
  // Result of a program's wait for `count` descriptors until 5 us.
  int wait_for(std::uint32_t count) {
    int answer = -1;
    attach([this, count, &answer](Program& me) -> Script {
      send(count, count);
      answer = co_await me.call(Call::wait_descriptors, 5'000'000, count);
    });
    world_.run();
    return answer;
  }
  // Number of the next new descriptor: all lower numbers are in use.
  static int next_number() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }
  void SetUp() override { ASSERT_EQ(::pipe2(quiet_.data(), O_CLOEXEC), 0); }
  void TearDown() override {
    world_.clear();
    for (const int end : quiet_) ::close(end);
  }

  std::array<int, 2> quiet_{};
  Descriptor program_end_;
  TimeKeeperParams params_ = [] {
    TimeKeeperParams params;
    params.watched_end = next_number() + 40;
    return params;
  }();
  World world_{params_};
};

TEST_F(AttachedDescriptors, AreWaitedFor) {
  EXPECT_EQ(wait_for(8), ETIMEDOUT);
  EXPECT_TRUE(world_.keeper.disturbances().empty());
}

// The call returns at its own time, without the cost of a wake-up.
TEST_F(AttachedDescriptors, WhatIsReadyIsNotWaitedFor) {
  ASSERT_EQ(::write(quiet_[1], "x", 1), 1);
  Duration answered;
  Process& process = attach([&](Program& me) -> Script {
    send(1, 1);
    EXPECT_EQ(co_await me.call(Call::wait_descriptors, 5'000'000, 1), 0);
    answered = me.clock();
  });
  constexpr std::uint32_t kReadable = POLLIN;
  std::memcpy(process.slot(0).input, &kReadable, sizeof kReadable);
  world_.run();
  EXPECT_EQ(answered, Duration{});
}

TEST_F(AttachedDescriptors, AWaitLeavesSomeForWhatPasses) {
  EXPECT_EQ(wait_for(abi::kMaxDescriptors), ENOMEM);
  EXPECT_EQ(world_.keeper.disturbances().size(), 1u);
  EXPECT_EQ(wait_for(8), ETIMEDOUT);
}

// The kernel drops the descriptors.
TEST_F(AttachedDescriptors, AWaitForSomeOfThemIsRefused) {
  int answer = -1;
  attach([&](Program& me) -> Script {
    send(8, 8);
    rlimit given{};
    ::getrlimit(RLIMIT_NOFILE, &given);
    const rlimit few{rlim_t(next_number() + 4), given.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    answer = co_await me.call(Call::wait_descriptors, 5'000'000, 8);
    ::setrlimit(RLIMIT_NOFILE, &given);
  });
  world_.run();
  EXPECT_EQ(answer, ENOMEM);
  EXPECT_EQ(world_.keeper.disturbances().size(), 1u);
}

TEST_F(AttachedDescriptors, OfAnotherCallAreNotTaken) {
  Process& process = attach([](Program&) -> Script { co_return; });
  send(2, 2);
  send(1, 3);  // not all descriptors
  EXPECT_TRUE(process.receive_descriptors(0).empty());
  send(3, 3, 1);
  send(2, 2);
  EXPECT_EQ(process.receive_descriptors(0).size(), 2u);
  EXPECT_EQ(process.receive_descriptors(1).size(), 3u);
}

// Sends again whenever the simulator's read makes room.
struct Eager {
  static constexpr int kMost = 2000;
  static inline int end = -1;
  static inline volatile int refills = 0;
  static void refill(int) {
    static constexpr abi::DescriptorMessage kKick;
    if (refills == kMost) return;
    refills = refills + 1;
    while (::send(end, &kKick, sizeof kKick, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  }
  static void begin(int fd) {
    end = fd;
    refills = 0;
    ::signal(SIGIO, refill);
    ::fcntl(end, F_SETOWN, ::getpid());
    ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_ASYNC);
    refill(SIGIO);
  }
};

TEST_F(AttachedDescriptors, WhoNeverStopsSendingIsLeft) {
  Process& process = attach([](Program&) -> Script { co_return; });
  Eager::begin(program_end_.get());
  EXPECT_TRUE(process.receive_descriptors(0).empty());
  EXPECT_GT(Eager::refills, 1);
  EXPECT_LT(Eager::refills, 100);
  Eager::begin(program_end_.get());
  process.drain_kicks();
  EXPECT_LT(Eager::refills, 100);
  ::signal(SIGIO, SIG_IGN);
}

}  // namespace
}  // namespace rnicsim::sim::test
