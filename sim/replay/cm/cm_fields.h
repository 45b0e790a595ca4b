// SPDX-License-Identifier: Apache-2.0
// Compares two messages of connection management of the same kind, field by field.
#pragma once

#include <vector>

#include "model/cm/messages.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

std::vector<FieldDifference> fields_of(const cm::Envelope& ours, const cm::Envelope& theirs);

}  // namespace rnicsim::sim::replay
