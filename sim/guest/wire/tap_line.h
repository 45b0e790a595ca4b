// SPDX-License-Identifier: Apache-2.0
// Frames of a TAP interface of this machine.
#pragma once

#include <string>

#include "sim/guest/wire/wire_line.h"
#include "sim/guest/wire/wire_notices.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class TapLine : public WireLine {
 public:
  // Attaches to the interface, or creates it. ConfigError: not possible; the text has the reason.
  TapLine(const std::string& name, WireNotices& notices);

  void watch(std::vector<pollfd>& watched, bool hears) const override;
  void work() override {}
  void receive(const Take& take) override;
  bool is_connected() const override { return tap_ && !down_; }
  bool send(std::span<const std::byte> frame) override;
  bool has_outstanding() const override { return false; }
  unsigned connections() const override { return 1; }

 private:
  const std::string name_;
  WireNotices& notices_;
  Descriptor tap_;
  bool down_ = false;  // the last send() found the interface down
};

}  // namespace rnicsim::sim
