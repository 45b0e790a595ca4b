// SPDX-License-Identifier: Apache-2.0
// No congestion control: a queue pair is not limited.
#include "model/base/policy.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce {
namespace {

const PolicyEntry<CongestionControl> kEntry{
    "none", [](const PolicyParams*, BitRate) -> std::unique_ptr<CongestionControl> { return nullptr; }};

}  // namespace
}  // namespace rnicsim::roce
