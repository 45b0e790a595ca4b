// SPDX-License-Identifier: Apache-2.0
// Report of an import: the hosts and queue pairs, the omitted requests, and the requests that ended as in the capture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/replay/capture/wire_capture.h"
#include "sim/wire_workload/wire_host.h"
#include "sim/wire_workload/workload.h"

namespace rnicsim::sim::wire_workload {

// Result of `replay --wire` for one address.
struct Assessment {
  roce::Gid address{};
  std::uint64_t compared = 0;
  std::uint64_t differences = 0;
};

std::string import_text(const std::string& file, const replay::WireCapture& capture, const Workload& workload,
                        const std::vector<std::unique_ptr<WireHost>>& hosts,
                        const std::vector<Assessment>& assessments);

}  // namespace rnicsim::sim::wire_workload
