// `rnicsim trace import --pcap FILE`: a capture of real hosts becomes a recorded run, which `rnicsim replay` takes.
// Simulated hosts post the requests that the capture implies, and that is recorded. docs/replay.md is its manual.
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim::wire_workload {

struct ImportOptions {
  std::string pcap;
  std::string output;
  std::string nic = "cx5-100g";  // of the run
  std::string host;              // what the hosts cost; empty: as the NIC's profile says
  std::vector<std::string> sets;
};

// 0: the recording is written. ConfigError: there is nothing to post, or it cannot be written; a file that was there
// stays.
int import_capture(const ImportOptions& options);

}  // namespace rnicsim::sim::wire_workload
