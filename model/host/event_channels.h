// Which process hears of which event: the channels that processes opened, and what they bound to them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "model/abi/attach.h"
#include "model/abi/queue.h"
#include "model/host/objects.h"

namespace rnicsim::host {

class EventChannels {
 public:
  using Sink = std::function<void(const abi::EventRecord&)>;

  explicit EventChannels(Objects& objects) : objects_(objects) {}

  std::uint32_t open(Pasid owner, Sink sink);
  // 0 or ENOENT.
  int close(Pasid owner, std::uint32_t channel);
  int bind_completions(Pasid owner, std::uint32_t cqn, std::uint32_t channel);
  int bind_events(Pasid owner, std::uint32_t channel);
  void close_all(Pasid owner);

  // To whom it concerns, if he listens.
  void deliver(const abi::Eqe& eqe);

 private:
  struct Channel {
    Pasid owner;
    Sink sink;
  };

  bool owns(Pasid owner, std::uint32_t channel) const;
  void deliver_to(std::uint32_t channel, const abi::EventRecord& record);
  void deliver_asynchronous(Pasid owner, const abi::EventRecord& record);

  Objects& objects_;
  std::map<std::uint32_t, Channel> channels_;
  std::map<Pasid, std::uint32_t> asynchronous_;
  std::uint32_t next_channel_ = 1;
};

}  // namespace rnicsim::host
