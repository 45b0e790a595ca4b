// SPDX-License-Identifier: Apache-2.0
// Strict priority: the highest priority that may send goes first.
#include "model/base/policy.h"
#include "model/base/ports/queue_discipline.h"

namespace rnicsim {
namespace {

std::unique_ptr<QueueDiscipline> make(const PolicyParams*) { return nullptr; }
const PolicyEntry<QueueDiscipline> kEntry{"strict", make};

}  // namespace
}  // namespace rnicsim
