// No congestion control: nothing holds a queue pair back.
#include "model/base/policy.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce {
namespace {

const PolicyEntry<CongestionControl> kEntry{
    "none", [](const PolicyParams*, BitRate) -> std::unique_ptr<CongestionControl> { return nullptr; }};

}  // namespace
}  // namespace rnicsim::roce
