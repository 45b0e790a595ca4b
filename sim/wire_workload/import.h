// SPDX-License-Identifier: Apache-2.0
// `rnicsim trace import --pcap FILE`: converts a capture of real hosts into a recorded run for `rnicsim replay`.
// Simulated hosts post the requests that the capture implies, and the run is recorded (docs/replay.md).
#pragma once

#include <string>
#include <vector>

namespace rnicsim::sim::wire_workload {

struct ImportOptions {
  std::string pcap;
  std::string output;
  std::string nic = "cx5-100g";  // NIC profile of the run
  std::string host;              // host profile; empty: the NIC profile's
  std::vector<std::string> sets;
};

// Returns 0 after writing the recording. ConfigError: nothing to post, or the file cannot be written; an existing file
// is then kept.
int import_capture(const ImportOptions& options);

}  // namespace rnicsim::sim::wire_workload
