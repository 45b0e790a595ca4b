// Who hears of which event: the channels that processes opened, and what they bound to them. A CQ's completions go to
// the channel that its owner chose; an object's asynchronous events to the one that it was made with, or to that of
// each process that opened it; those of port and device to every channel that listens to them.
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
  // False: there is no room now. The record is kept until refill().
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
  // The asynchronous events of an object that exists go there.
  void bind_object(abi::IcmTable table, std::uint32_t number, std::uint32_t channel);
  // An object is gone, and its number may live on: what is kept of it goes.
  void forget_object(abi::IcmTable table, std::uint32_t number);

  // To whom it concerns, if he listens.
  void deliver(const abi::Eqe& eqe);
  // There is one more event of an rdma_cm_id, or there are none any more, of those that wait here.
  void deliver_connection(std::uint32_t channel, std::uint32_t id);
  void forget_connection(std::uint32_t channel, std::uint32_t id);

 private:
  struct Channel {
    Pasid owner;
    Sink sink;
    bool listens = false;                  // to port and device
    std::deque<abi::EventRecord> kept{};   // that the sink had no room for, in order
  };

  std::optional<std::uint32_t> asynchronous_channel(abi::IcmTable table, std::uint32_t number) const;
  void deliver_asynchronous(abi::IcmTable table, const abi::EventRecord& record);
  void deliver_to(std::optional<std::uint32_t> channel, const abi::EventRecord& record);

  Objects& objects_;
  std::map<std::uint32_t, Channel> channels_;
  std::uint32_t next_channel_ = 1;
};

}  // namespace rnicsim::host
