// SPDX-License-Identifier: Apache-2.0
// Compares a packet of the engine with a packet of the real NIC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/payload.h"
#include "model/roce/headers.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

struct SentPacket {
  std::uint32_t frame = 0;  // real NIC: the packet's own frame; engine: frame of the packet that caused it
  roce::Headers headers;
  Payload payload;

  roce::Psn psn() const { return headers.bth.psn; }
  const roce::OpcodeInfo& row() const { return roce::info(headers.bth.opcode); }
};
using Answer = SentPacket;

// The packet as one line.
std::string decoded(const SentPacket& packet);

// Differing fields, and equivalences that the pair needs.
struct PairVerdict {
  std::vector<FieldDifference> fields;
  std::vector<Equivalence> freedoms;
  bool same() const { return fields.empty(); }
};

// Further conditions of the comparison.
struct PairRules {
  bool answers = true;   // the packets are answers: the real NIC's cannot precede its request
  bool resumed = false;  // rest of a READ: the real NIC may continue the old answer
};

PairVerdict validate(const SentPacket& ours, const SentPacket& theirs, PairRules rules);
// Same PSN and same kind of packet; other fields may differ.
bool same_kind(const SentPacket& a, const SentPacket& b);

}  // namespace rnicsim::sim::replay
