// SPDX-License-Identifier: Apache-2.0
// The way of frames between this process and the world: a socket, or a TAP interface. No function waits.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace rnicsim::sim {

class WireLine {
 public:
  using Take = std::function<void(std::span<const std::byte> frame)>;

  virtual ~WireLine() = default;
  // `hears`: also wait for frames.
  virtual void watch(std::vector<pollfd>& watched, bool hears) const = 0;
  // Makes and ends connections, and sends queued bytes.
  virtual void work() = 0;
  // Passes the frames that have arrived, up to a limit, to `take`. A frame may have any length.
  virtual void receive(const Take& take) = 0;
  virtual bool is_connected() const = 0;
  // False: the frame is lost.
  virtual bool send(std::span<const std::byte> frame) = 0;
  // True: frames wait until the peer takes them.
  virtual bool has_outstanding() const = 0;
  // Number of connections so far. A new connection may be from another machine.
  virtual unsigned connections() const = 0;
};

}  // namespace rnicsim::sim
