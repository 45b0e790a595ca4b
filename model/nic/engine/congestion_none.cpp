// Nothing holds a queue pair back.
#include "model/base/policy.h"
#include "model/roce/congestion.h"

namespace rnicsim::nic {
namespace {

using roce::CongestionControl;

const PolicyEntry<CongestionControl> kEntry{"none", []() -> std::unique_ptr<CongestionControl> { return nullptr; }};

}  // namespace
}  // namespace rnicsim::nic
