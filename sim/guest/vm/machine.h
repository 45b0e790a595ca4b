// SPDX-License-Identifier: Apache-2.0
// A guest: a QEMU process, the console, and the channel to the agent inside.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "sim/guest/agent/frames.h"
#include "sim/guest/vm/child.h"
#include "sim/guest/vm/console_log.h"
#include "sim/guest/vm/guest_devices.h"
#include "sim/guest/vm/guest_image.h"
#include "sim/os/descriptor.h"
#include "sim/os/labelled_lines.h"

namespace rnicsim::sim {

struct MachineParams {
  std::size_t number = 0;
  std::size_t count = 1;  // number of guests
  ByteCount memory;
  std::string kernel_words;  // additional parameters of the kernel
  std::string console_file;  // empty: none
};

class Machine {
 public:
  // Starts QEMU. ConfigError: QEMU cannot be started, or the console's file cannot be written.
  Machine(const MachineParams& params, const GuestImage& image, const DeviceArguments& devices);

  const std::string& name() const { return name_; }
  // The agent accepts commands.
  bool is_ready() const { return ready_; }
  // The reason if the guest is lost: QEMU has ended, or the agent sent something else than frames.
  const std::optional<std::string>& lost() const { return lost_; }
  const ConsoleLog& console() const { return console_; }

  void send(FrameKind kind, std::uint32_t command, std::string_view payload);
  void add_to(std::vector<pollfd>& watched) const;
  // Reads the guest's output. Returns the frames about commands in their order; prints the console's faults at once.
  std::vector<Frame> step();
  bool had_fault() const { return had_fault_; }
  void kill() { qemu_->kill(); }

 private:
  void flush();
  void read_console();
  void read_messages();
  void read_frames(std::vector<Frame>& frames);
  void lose(const std::string& why);

  const std::string name_;
  ConsoleLog console_;
  Descriptor agent_, console_end_, messages_;
  LabelledLines message_lines_;
  FrameReader reader_;
  std::string outgoing_;
  bool ready_ = false;
  bool had_fault_ = false;
  std::optional<std::string> lost_;
  std::unique_ptr<Child> qemu_;  // declared last, so that QEMU ends before this process closes its socket ends
};

}  // namespace rnicsim::sim
