// SPDX-License-Identifier: Apache-2.0
// --pcap FILE: captures the frames of all cables. A frame is captured once, when it is sent, with a comment on the
// faults that strike it. A frame that a switch marked (ECN) is captured again at an interface of the switch. With
// several processes, the first one writes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "model/base/trace.h"
#include "model/fabric/fault_injector.h"
#include "model/fabric/pcapng.h"
#include "sim/processes/in_order.h"
#include "sim/system.h"

namespace rnicsim::sim {

class Capture {
 public:
  // Make the object before the simulation starts; it must live as long as the system. ConfigError: the file cannot be
  // created.
  Capture(System& system, const std::filesystem::path& path);
  // Call after the end of the run, when the processes have exchanged their frames. ConfigError: a write failed.
  void finish();

 private:
  void watch(std::uint32_t node, trace::Point<Frame>& point, const char* comment);
  void watch(std::uint32_t node, trace::Point<fabric::FaultTrace>& point);
  void add(std::uint32_t node, const Frame& frame, std::string_view comment);
  void see_to_it_that_all_is_well() const;

  std::optional<fabric::PcapngWriter> file_;
  std::vector<std::uint32_t> interfaces_;  // by node
  InOrder frames_;
};

}  // namespace rnicsim::sim
