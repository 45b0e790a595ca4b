// SPDX-License-Identifier: Apache-2.0
#include "verbs/port/event_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>

#include "tests/unit/verbs/fake_port.h"

namespace rnicsim {
namespace {

using abi::EventRecord;

// The kernel writes to the given end; each wait calls `woken`.
class ChannelPort : public FakePort {
 public:
  int open_channel(int fd, std::uint32_t& channel) override { return write_end_ = fd, channel = 7, 0; }
  int close_channel(std::uint32_t) override { return 0; }
  int refill_channel(std::uint32_t) override { return ++refills, 0; }
  bool wait_for_event(std::uint32_t, int, bool found_nothing) override {
    if (found_nothing) ++waits;
    return !found_nothing || woken();
  }
  bool write(std::uint32_t number) const {
    const EventRecord record{0, number};
    return ::write(write_end_, &record, sizeof record) == sizeof record;
  }

  std::function<bool()> woken = [] { return false; };
  int waits = 0, refills = 0;

 private:
  int write_end_ = -1;
};

// Parameter: the pipe has its own open file description, or, if no more descriptors can be opened, shares the
// program's.
class EventPipeTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    rlimit before;
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    if (!GetParam()) allow_two_more(before);
    EXPECT_EQ(pipe_.open(), 0);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  }
  std::uint32_t next() {
    EventRecord record{};
    EXPECT_EQ(pipe_.next(record), 0);
    return record.number;
  }
  int error_of_next() {
    EventRecord record{};
    return pipe_.next(record);
  }

  ChannelPort port_;
  EventPipe pipe_{port_};

 private:
  static void allow_two_more(const rlimit& limit) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const rlimit low{rlim_t(ends[1]) + 1, limit.rlim_max};
    ::close(ends[0]);
    ::close(ends[1]);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  }
};

TEST_P(EventPipeTest, GivesWhatIsThereWithoutAWait) {
  ASSERT_TRUE(port_.write(1));
  ASSERT_TRUE(port_.write(2));
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next(), 2u);
  EXPECT_EQ(port_.waits, 0);
}

TEST_P(EventPipeTest, WaitsAgainWhenAnotherThreadTookTheRecord) {
  port_.woken = [this] { return port_.waits < 3 || port_.write(3); };
  EXPECT_EQ(next(), 3u);
  EXPECT_EQ(port_.waits, 3);
}

TEST_P(EventPipeTest, IsEndedByASignal) { EXPECT_EQ(error_of_next(), EINTR); }

TEST_P(EventPipeTest, DoesNotWaitAtAnEndThatDoesNotBlock) {
  ASSERT_EQ(::fcntl(pipe_.fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(error_of_next(), EAGAIN);
  ASSERT_TRUE(port_.write(4));
  EXPECT_EQ(next(), 4u);
  EXPECT_EQ(error_of_next(), EAGAIN);
  EXPECT_EQ(port_.waits, 0);
}

TEST_P(EventPipeTest, GivesNothingAtAnEndThatWasClosed) {
  ASSERT_TRUE(port_.write(5));
  ASSERT_EQ(::close(pipe_.fd()), 0);
  EXPECT_EQ(error_of_next(), EBADF);
  ASSERT_EQ(::open("/dev/null", O_RDONLY | O_CLOEXEC), pipe_.fd());  // the pipe closes its number again
}

// The program's flags on its end must not make the other end block.
TEST_P(EventPipeTest, IsFullWithoutBlocking) {
  ASSERT_EQ(::fcntl(pipe_.fd(), F_SETFL, 0), 0);
  std::uint32_t written = 0;
  while (port_.write(written)) ++written;
  EXPECT_EQ(errno, EAGAIN);
  for (std::uint32_t number = 0; number < written; ++number) ASSERT_EQ(next(), number);
  EXPECT_EQ(port_.waits, 0);
  EXPECT_GE(port_.refills, 2);
}

TEST_P(EventPipeTest, PurgesTheStaleAndKeepsTheOrder) {
  for (std::uint32_t number = 0; number < 6; ++number) ASSERT_TRUE(port_.write(number));
  pipe_.purge([](const EventRecord& record) { return record.number % 3 == 0; });
  for (const std::uint32_t kept : {1u, 2u, 4u, 5u}) EXPECT_EQ(next(), kept);
  EXPECT_EQ(error_of_next(), EINTR);
}

INSTANTIATE_TEST_SUITE_P(All, EventPipeTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "of_its_own" : "shared"; });

}  // namespace
}  // namespace rnicsim
