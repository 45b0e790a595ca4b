// SPDX-License-Identifier: Apache-2.0
// System V semaphores and message queues: order of service, and ends of waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sim/attached/ipc/message_queues.h"
#include "sim/attached/ipc/semaphores.h"

namespace rnicsim::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr IpcCaller kFirst{1000, 500}, kSecond{1001, 500}, kRoot{1002, 0}, kStranger{1003, 501};
constexpr int kNew = IPC_CREAT | 0600;

sembuf change(unsigned short which, short by, short flags = 0) { return {which, by, flags}; }

class SemaphoresTest : public testing::Test {
 protected:
  SemaphoresTest() {
    semaphores.goes_on = [this](IpcWait wait) { return !over.contains(wait); };
    semaphores.ended = [this](IpcWait wait, int error) { ended.emplace_back(wait, error); };
    EXPECT_EQ(semaphores.get(7, 2, kNew, kFirst, set), 0);
  }
  int operate(std::vector<sembuf> operations, IpcWait wait = 0, const IpcCaller& caller = kFirst) {
    return semaphores.operate(set, operations, caller, wait);
  }
  std::uint64_t value(std::uint64_t which, int what = GETVAL) {
    std::uint64_t value = 0;
    EXPECT_EQ(semaphores.value(set, which, what, kFirst, value), 0);
    return value;
  }

  Semaphores semaphores;
  std::set<IpcWait> over;
  std::vector<std::pair<IpcWait, int>> ended;
  std::uint64_t set = 0;
};

TEST_F(SemaphoresTest, NumbersCountUpAndKeysAreFound) {
  std::uint64_t number = 0;
  EXPECT_EQ(semaphores.get(IPC_PRIVATE, 1, 0600, kFirst, number), 0);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(semaphores.get(7, 2, 0, kSecond, number), 0);
  EXPECT_EQ(number, 0u);
  EXPECT_EQ(semaphores.get(7, 3, 0, kFirst, number), EINVAL);
  EXPECT_EQ(semaphores.get(7, 2, kNew | IPC_EXCL, kFirst, number), EEXIST);
  EXPECT_EQ(semaphores.get(7, 2, 0600, kStranger, number), EACCES);
  EXPECT_EQ(semaphores.remove(0, kStranger), EPERM);
  EXPECT_EQ(semaphores.remove(0, kRoot), 0);
  EXPECT_EQ(semaphores.get(7, 2, 0, kFirst, number), ENOENT);
  EXPECT_EQ(semaphores.get(7, 2, kNew, kFirst, number), 0);
  EXPECT_EQ(number, 2u);
}

TEST_F(SemaphoresTest, AllOrNothingFirstComeFirstServed) {
  EXPECT_EQ(operate({change(0, -1), change(1, -1)}, 1), Semaphores::kWaits);
  EXPECT_EQ(operate({change(0, -2)}, 2), Semaphores::kWaits);
  EXPECT_EQ(operate({change(0, -1)}, 3), Semaphores::kWaits);
  EXPECT_EQ(operate({change(0, 1)}), 0);
  EXPECT_THAT(ended, ElementsAre(Pair(3, 0)));
  EXPECT_EQ(value(0, GETNCNT), 2u);  // the first waiter waits for semaphore 0
  EXPECT_EQ(operate({change(1, 1), change(0, 3)}), 0);
  EXPECT_THAT(ended, ElementsAre(Pair(3, 0), Pair(1, 0), Pair(2, 0)));
  EXPECT_EQ(value(0), 0u);
}

TEST_F(SemaphoresTest, AWaitThatIsOverIsPassedOver) {
  EXPECT_EQ(operate({change(0, -1)}, 1), Semaphores::kWaits);
  EXPECT_EQ(operate({change(0, 0), change(0, -1)}, 2), Semaphores::kWaits);
  over.insert(1);
  EXPECT_EQ(value(0, GETNCNT), 1u);
  EXPECT_EQ(operate({change(0, 1)}), 0);
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_EQ(value(0, GETZCNT), 1u);
}

TEST_F(SemaphoresTest, TheDeadGiveBackWhatTheyTook) {
  EXPECT_EQ(semaphores.set_value(set, 0, 2, kFirst), 0);
  EXPECT_EQ(operate({change(0, -2, SEM_UNDO)}, 0, kSecond), 0);
  EXPECT_EQ(operate({change(0, -1)}, 1), Semaphores::kWaits);
  semaphores.process_ended(kSecond.process, 0);
  EXPECT_THAT(ended, ElementsAre(Pair(1, 0)));
  EXPECT_EQ(value(0), 1u);
  // Setting a value discards SEM_UNDO records.
  EXPECT_EQ(operate({change(0, 5, SEM_UNDO)}, 0, kSecond), 0);
  EXPECT_EQ(semaphores.set_value(set, 0, 1, kFirst), 0);
  semaphores.process_ended(kSecond.process, 0);
  EXPECT_EQ(value(0), 1u);
}

TEST_F(SemaphoresTest, LimitsAndRemoval) {
  EXPECT_EQ(operate({change(0, 32767), change(0, 1)}), ERANGE);
  EXPECT_EQ(operate({change(2, 1)}), EFBIG);
  EXPECT_EQ(operate({change(0, -1, IPC_NOWAIT)}), EAGAIN);
  EXPECT_EQ(operate(std::vector(501, change(0, 1))), E2BIG);
  EXPECT_EQ(operate({change(0, -1)}, 1), Semaphores::kWaits);
  EXPECT_EQ(semaphores.remove(set, kFirst), 0);
  EXPECT_THAT(ended, ElementsAre(Pair(1, EIDRM)));
  EXPECT_EQ(operate({change(0, 1)}), EINVAL);
}

class MessageQueuesTest : public testing::Test {
 protected:
  MessageQueuesTest() {
    queues.goes_on = [this](IpcWait wait) { return !over.contains(wait); };
    queues.ended = [this](IpcWait wait, int error, const MessageQueues::Message* message) {
      ended.emplace_back(wait, message != nullptr ? int(message->type) : -error);
    };
    EXPECT_EQ(queues.get(7, kNew, kFirst, queue), 0);
  }
  int send(std::int64_t type, std::size_t bytes = 1, IpcWait wait = 0, int flags = 0) {
    return queues.send(queue, {type, std::vector<std::byte>(bytes)}, flags, kFirst, wait);
  }
  // Returns the message's type, or a negative errno.
  std::int64_t receive(std::int64_t type, IpcWait wait = 0, int flags = 0, std::uint64_t most = 100) {
    MessageQueues::Message message;
    const int error = queues.receive(queue, {type, most, flags}, kFirst, wait, message);
    return error == 0 ? message.type : -error;
  }

  MessageQueues queues;
  std::set<IpcWait> over;
  std::vector<std::pair<IpcWait, int>> ended;
  std::uint64_t queue = 0;
};

TEST_F(MessageQueuesTest, ByType) {
  for (const int type : {5, 3, 4, 3}) EXPECT_EQ(send(type), 0);
  EXPECT_EQ(receive(-4), 3);
  EXPECT_EQ(receive(5, 0, MSG_EXCEPT), 4);
  EXPECT_EQ(receive(9, 0, IPC_NOWAIT), -ENOMSG);
  EXPECT_EQ(receive(0), 5);
  EXPECT_EQ(receive(3), 3);
}

TEST_F(MessageQueuesTest, WaitingReceiversGetWhatTheyWaitFor) {
  EXPECT_EQ(receive(1, 1), -MessageQueues::kWaits);
  EXPECT_EQ(receive(2, 2), -MessageQueues::kWaits);
  EXPECT_EQ(receive(2, 3), -MessageQueues::kWaits);
  EXPECT_EQ(receive(0, 4, 0, 0), -MessageQueues::kWaits);
  over.insert(2);
  EXPECT_EQ(send(2), 0);
  EXPECT_THAT(ended, ElementsAre(Pair(3, 2)));
  EXPECT_EQ(send(7), 0);  // too long for the fourth receiver; left for others
  EXPECT_THAT(ended, ElementsAre(Pair(3, 2), Pair(4, -E2BIG)));
  EXPECT_EQ(receive(7), 7);
}

TEST_F(MessageQueuesTest, SendersWaitForRoom) {
  EXPECT_EQ(send(1, 8192), 0);
  EXPECT_EQ(send(2, 8192), 0);
  EXPECT_EQ(send(3, 1, 0, IPC_NOWAIT), EAGAIN);
  EXPECT_EQ(send(3, 8192, 1), MessageQueues::kWaits);
  EXPECT_EQ(send(4, 1, 2), MessageQueues::kWaits);
  EXPECT_EQ(send(5, 8193), EINVAL);
  EXPECT_EQ(receive(1, 0, 0, 8192), 1);
  EXPECT_THAT(ended, ElementsAre(Pair(1, 0)));
  EXPECT_EQ(queues.remove(queue, kFirst), 0);
  EXPECT_THAT(ended, ElementsAre(Pair(1, 0), Pair(2, -EIDRM)));
}

}  // namespace
}  // namespace rnicsim::sim
