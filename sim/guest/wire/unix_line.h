// SPDX-License-Identifier: Apache-2.0
// Frames over a UNIX stream socket, in QEMU's framing. One side listens. The other side connects, and connects again
// after each end of the connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/guest/transactor/path_socket.h"
#include "sim/guest/wire/stream_framing.h"
#include "sim/guest/wire/wire_line.h"
#include "sim/guest/wire/wire_notices.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class UnixLine : public WireLine {
 public:
  enum class Role { listen, connect };
  // ConfigError: the path is too long, or this process cannot listen there.
  UnixLine(const std::string& path, Role role, WireNotices& notices);

  void watch(std::vector<pollfd>& watched, bool hears) const override;
  void work() override;
  void receive(const Take& take) override;
  bool is_connected() const override { return static_cast<bool>(socket_); }
  bool send(std::span<const std::byte> frame) override;
  bool has_outstanding() const override { return !outgoing_.empty(); }
  unsigned connections() const override { return connections_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool has_hung_up() const;
  void take_connection(Descriptor socket);
  void flush();
  void hang_up(WireTrouble kind, const std::string& why);

  const std::string path_;
  WireNotices& notices_;
  std::optional<PathListener> listener_;
  Descriptor socket_;
  StreamFraming incoming_;
  std::vector<std::byte> outgoing_;
  Clock::time_point next_attempt_{};
  unsigned connections_ = 0;
};

}  // namespace rnicsim::sim
