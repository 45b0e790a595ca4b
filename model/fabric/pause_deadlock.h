// SPDX-License-Identifier: Apache-2.0
// Finds deadlocks of priority-based flow control (PFC). A full input buffer of a switch pauses its sender. Buffers are
// deadlocked when the bytes that each holds above XON wait for output ports that other buffers of the set have paused:
// none of these pauses can end, whatever the hosts do. A ring of switches, or a route that goes down and up again, can
// deadlock; up/down routes in a tree cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/base/agenda.h"
#include "model/base/units.h"
#include "model/fabric/stopped_buffer.h"

namespace rnicsim::fabric {

class Switch;

class PauseDeadlock {
 public:
  // A deadlock must show in two checks at this distance, so that a frame on a cable is not taken for one.
  static constexpr Duration kLook{20'000'000};

  struct End {
    std::uint32_t box = 0;  // number of a switch
    std::uint32_t port = 0;
    bool operator==(const End&) const = default;
    auto operator<=>(const End&) const = default;
  };
  // Name of a switch's port for messages.
  using Name = std::function<std::string(End)>;

  explicit PauseDeadlock(Name name) : name_(std::move(name)) {}

  // Add the switches in the order of their numbers.
  void add(Switch& box);
  // Adds a cable between two switches.
  void connect(End one, End other);
  // Description of the deadlock that was found; empty: none.
  const std::string& found() const { return found_; }

 private:
  using Buffer = std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>;  // switch, port, priority
  struct Held {
    StoppedBuffer buffer;
    std::vector<std::pair<Buffer, std::uint64_t>> waits;  // buffers that block this one, with the blocked bytes
  };
  using Buffers = std::map<Buffer, Held>;

  void arm();
  void look();
  Buffers stopped() const;
  static std::set<Buffer> locked(const Buffers& buffers);
  bool watchdog_may_act() const;
  std::string text(const Buffers& buffers, const std::set<Buffer>& locked) const;

  const Name name_;
  std::vector<Switch*> boxes_;
  std::map<End, End> cables_;
  std::set<Buffer> before_;  // buffers deadlocked at the last check
  Duration before_since_{};  // time of the first check with this result
  std::string found_;
  bool armed_ = false;
  Alarm alarm_{[this] { look(); }};
};

}  // namespace rnicsim::fabric
