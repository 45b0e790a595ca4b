// --pcap FILE: everything that the cables carry. A frame is captured once, where it leaves, with a comment on what
// befalls it; a frame that a switch marked, once more with the mark, at an interface of the switch. Of several
// processes, the first writes it.
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
  // To be made before the simulation starts; stays as long as the system. ConfigError: the file cannot be made.
  Capture(System& system, const std::filesystem::path& path);
  // The run has ended, and its processes have met. ConfigError: not everything could be written.
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
