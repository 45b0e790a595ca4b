// Finds deadlocks of priority-based flow control (PFC). A switch's buffer of one input port and priority that is full
// has its sender pause. Buffers are in deadlock when what each of them holds beyond XON waits for ports that others of
// them have paused: none of these pauses can end any more, whatever the hosts do. A ring of switches, or a route that
// goes down and up again, can come to that; up/down routes in a tree cannot.
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
  // Two looks apart, so that a frame on its way is no deadlock.
  static constexpr Duration kLook{20'000'000};

  struct End {
    std::uint32_t box = 0;                 // a switch, by its number
    std::uint32_t port = 0;
    bool operator==(const End&) const = default;
    auto operator<=>(const End&) const = default;
  };
  // Name of a switch's port, for people.
  using Name = std::function<std::string(End)>;

  explicit PauseDeadlock(Name name) : name_(std::move(name)) {}

  // Add the switches in the order of their numbers.
  void add(Switch& box);
  // A cable between two switches.
  void connect(End one, End other);
  // The deadlock that was found, as text for people; empty while there is none.
  const std::string& found() const { return found_; }

 private:
  using Buffer = std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>;  // switch, port, priority
  struct Held {
    StoppedBuffer buffer;
    std::vector<std::pair<Buffer, std::uint64_t>> waits;  // buffers whose pause stops so many bytes of this one
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
  std::set<Buffer> before_;                // found at the last look
  Duration before_since_{};                // the first look that found these
  std::string found_;
  bool armed_ = false;
  Alarm alarm_{[this] { look(); }};
};

}  // namespace rnicsim::fabric
