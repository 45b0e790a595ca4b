// SPDX-License-Identifier: Apache-2.0
// Each event goes to the channels that it concerns, once and in order, with and without room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "model/host/event_channels.h"

namespace rnicsim::host::events_test {
namespace {

using abi::EventType;
using abi::IcmTable;
using ::testing::ElementsAre;

constexpr Pasid kMine = 7;
constexpr Pasid kOther = 8;

using Heard = std::vector<std::pair<EventType, std::uint32_t>>;

class HostEvents : public ::testing::Test {
 protected:
  // A channel, and the events that it received.
  struct Listener {
    std::uint32_t channel = 0;
    std::size_t room = ~std::size_t{0};
    Heard heard;
  };

  void open(Pasid owner, Listener& listener) {
    listener.channel = channels_.open(owner, [&listener](const abi::EventRecord& record) {
      if (listener.heard.size() == listener.room) return false;
      listener.heard.emplace_back(EventType(record.type), record.number);
      return true;
    });
  }
  void deliver(EventType type, std::uint32_t number) {
    abi::Eqe eqe;
    eqe.type = type;
    eqe.number = number;
    channels_.deliver(eqe);
  }
  // One object of each kind, with events for this channel.
  void make_objects(Pasid owner, std::uint32_t number, std::uint32_t channel) {
    objects_.cqs.emplace(number, CompletionQueue{.owner = owner, .uar = 0});
    objects_.srqs.emplace(number, SharedReceiveQueue{.owner = owner, .pd = 0});
    objects_.qps.emplace(number, QueuePair{.owner = owner, .pd = 0, .uar = 0, .send_cqn = 0, .receive_cqn = 0});
    for (const auto table : {IcmTable::cqc, IcmTable::srqc, IcmTable::qpc})
      channels_.bind_object(table, number, channel);
  }

  Objects objects_;
  EventChannels channels_{objects_};
};

TEST_F(HostEvents, AnObjectsGoToItsOwnChannel) {
  Listener first, second;
  open(kMine, first);
  open(kMine, second);
  EXPECT_EQ(channels_.bind_events(kMine, first.channel), 0);
  EXPECT_EQ(channels_.bind_events(kMine, second.channel), 0);
  make_objects(kMine, 5, first.channel);
  make_objects(kMine, 6, second.channel);
  deliver(EventType::qp_access_error, 5);
  deliver(EventType::cq_error, 6);
  deliver(EventType::srq_limit, 5);
  deliver(EventType::qp_fatal, 6);
  deliver(EventType::qp_fatal, 4);
  EXPECT_THAT(first.heard, ElementsAre(std::pair(EventType::qp_access_error, 5u), std::pair(EventType::srq_limit, 5u)));
  EXPECT_THAT(second.heard, ElementsAre(std::pair(EventType::cq_error, 6u), std::pair(EventType::qp_fatal, 6u)));
}

TEST_F(HostEvents, ThoseOfThePortGoToAllThatListen) {
  Listener first, second, other, completions;
  open(kMine, first);
  open(kMine, second);
  open(kOther, other);
  open(kMine, completions);
  for (auto* listener : {&first, &second}) EXPECT_EQ(channels_.bind_events(kMine, listener->channel), 0);
  EXPECT_EQ(channels_.bind_events(kMine, other.channel), ENOENT);
  EXPECT_EQ(channels_.bind_events(kOther, other.channel), 0);
  deliver(EventType::port_error, 1);
  EXPECT_EQ(channels_.close(kMine, second.channel), 0);
  deliver(EventType::port_active, 1);
  channels_.close_all(kMine);
  deliver(EventType::device_fatal, 0);
  EXPECT_THAT(first.heard, ElementsAre(std::pair(EventType::port_error, 1u), std::pair(EventType::port_active, 1u)));
  EXPECT_THAT(second.heard, ElementsAre(std::pair(EventType::port_error, 1u)));
  EXPECT_EQ(other.heard.size(), 3u);
  EXPECT_TRUE(completions.heard.empty());
}

TEST_F(HostEvents, AChannelThatIsClosedLeavesTheOthersTheirs) {
  Listener first, second;
  open(kMine, first);
  open(kMine, second);
  make_objects(kMine, 5, first.channel);
  make_objects(kMine, 6, second.channel);
  EXPECT_EQ(channels_.close(kMine, second.channel), 0);
  EXPECT_EQ(channels_.close(kMine, second.channel), ENOENT);
  deliver(EventType::qp_fatal, 5);
  deliver(EventType::qp_fatal, 6);
  EXPECT_THAT(first.heard, ElementsAre(std::pair(EventType::qp_fatal, 5u)));
  EXPECT_TRUE(second.heard.empty());
}

TEST_F(HostEvents, NoneIsLostForWantOfRoom) {
  Listener listener;
  open(kMine, listener);
  make_objects(kMine, 1, listener.channel);
  EXPECT_EQ(channels_.bind_completions(kMine, 1, listener.channel), 0);
  EXPECT_EQ(channels_.bind_events(kMine, listener.channel), 0);
  listener.room = 2;
  deliver(EventType::completion, 1);
  deliver(EventType::send_queue_drained, 1);
  deliver(EventType::srq_limit, 1);
  deliver(EventType::port_error, 1);
  deliver(EventType::completion, 1);
  EXPECT_EQ(listener.heard.size(), 2u);
  // Free room alone must not let a later event overtake.
  listener.room = 3;
  deliver(EventType::qp_fatal, 1);
  EXPECT_EQ(listener.heard.size(), 2u);
  EXPECT_EQ(channels_.refill(kOther, listener.channel), ENOENT);
  EXPECT_EQ(channels_.refill(kMine, listener.channel), 0);
  EXPECT_EQ(listener.heard.size(), 3u);
  listener.room = 100;
  EXPECT_EQ(channels_.refill(kMine, listener.channel), 0);
  deliver(EventType::cq_error, 1);
  EXPECT_THAT(listener.heard,
              ElementsAre(std::pair(EventType::completion, 1u), std::pair(EventType::send_queue_drained, 1u),
                          std::pair(EventType::srq_limit, 1u), std::pair(EventType::port_error, 1u),
                          std::pair(EventType::completion, 1u), std::pair(EventType::qp_fatal, 1u),
                          std::pair(EventType::cq_error, 1u)));
}

TEST_F(HostEvents, WhatIsKeptGoesWithItsObject) {
  Listener listener;
  open(kMine, listener);
  make_objects(kMine, 1, listener.channel);
  make_objects(kMine, 2, listener.channel);
  EXPECT_EQ(channels_.bind_events(kMine, listener.channel), 0);
  listener.room = 0;
  for (const std::uint32_t number : {1u, 2u})
    for (const auto type : {EventType::qp_fatal, EventType::srq_limit, EventType::cq_error, EventType::port_error})
      deliver(type, number);
  channels_.forget_object(IcmTable::qpc, 1);
  channels_.forget_object(IcmTable::cqc, 2);
  channels_.forget_object(IcmTable::mpt, 1);
  listener.room = 100;
  EXPECT_EQ(channels_.refill(kMine, listener.channel), 0);
  EXPECT_THAT(listener.heard, ElementsAre(std::pair(EventType::srq_limit, 1u), std::pair(EventType::cq_error, 1u),
                                          std::pair(EventType::port_error, 1u), std::pair(EventType::qp_fatal, 2u),
                                          std::pair(EventType::srq_limit, 2u), std::pair(EventType::port_error, 2u)));
}

}  // namespace
}  // namespace rnicsim::host::events_test
