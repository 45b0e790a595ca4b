// SPDX-License-Identifier: Apache-2.0
// Delivers events to channels that processes opened. Completion events of a CQ go to the channel that its owner bound.
// Asynchronous events of an object go to the channel that was named at its creation, or to the channel of each process
// that opened it. Events of port and device go to every channel that listens to them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "model/abi/attach.h"
#include "model/abi/context.h"
#include "model/abi/queue.h"
#include "model/host/objects.h"

namespace rnicsim::host {

class EventChannels {
 public:
  // False: no room now; the record is kept until refill().
  using Sink = std::function<bool(const abi::EventRecord&)>;

  explicit EventChannels(Objects& objects) : objects_(objects) {}

  std::uint32_t open(Pasid owner, Sink sink);
  // 0 or ENOENT.
  int close(Pasid owner, std::uint32_t channel);
  int bind_completions(Pasid owner, std::uint32_t cqn, std::uint32_t channel);
  int bind_events(Pasid owner, std::uint32_t channel);
  int refill(Pasid owner, std::uint32_t channel);
  void close_all(Pasid owner);

  bool owns(Pasid owner, std::uint32_t channel) const;
  // Sends the asynchronous events of an existing object to the channel.
  void bind_object(abi::IcmTable table, std::uint32_t number, std::uint32_t channel);
  // Drops the kept events of a destroyed object, whose number may be used again.
  void forget_object(abi::IcmTable table, std::uint32_t number);

  // Delivers an event to its channels; an event without a channel is dropped.
  void deliver(const abi::Eqe& eqe);
  // Delivers an event of an rdma_cm_id, or drops the kept events of the id.
  void deliver_connection(std::uint32_t channel, std::uint32_t id);
  void forget_connection(std::uint32_t channel, std::uint32_t id);

 private:
  struct Channel {
    Pasid owner;
    Sink sink;
    bool listens = false;                 // to events of port and device
    std::deque<abi::EventRecord> kept{};  // records for which the sink had no room, in order
  };

  std::optional<std::uint32_t> asynchronous_channel(abi::IcmTable table, std::uint32_t number) const;
  void deliver_asynchronous(abi::IcmTable table, const abi::EventRecord& record);
  void deliver_to(std::optional<std::uint32_t> channel, const abi::EventRecord& record);

  Objects& objects_;
  std::map<std::uint32_t, Channel> channels_;
  std::uint32_t next_channel_ = 1;
};

}  // namespace rnicsim::host
