// One packet of an engine's beside one of the real NIC's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/payload.h"
#include "model/roce/headers.h"
#include "sim/replay/difference.h"

namespace rnicsim::sim::replay {

struct SentPacket {
  std::uint32_t frame = 0;  // the real NIC's: its own; an engine's: of the packet that brought it about
  roce::Headers headers;
  Payload payload;

  roce::Psn psn() const { return headers.bth.psn; }
  const roce::OpcodeInfo& row() const { return roce::info(headers.bth.opcode); }
};
using Answer = SentPacket;

// In one line.
std::string decoded(const SentPacket& packet);

// What differs, and which freedoms the pair needs.
struct PairVerdict {
  std::vector<FieldDifference> fields;
  std::vector<Equivalence> freedoms;
  bool same() const { return fields.empty(); }
};

// What the pair is judged by, beside itself.
struct PairRules {
  bool answers = true;   // the real NIC's cannot be earlier than what it answers
  bool resumed = false;  // the rest of a READ: theirs may go on where it was
};

PairVerdict judge(const SentPacket& ours, const SentPacket& theirs, PairRules rules);
// Same PSN, and same kind of packet: what belongs together, whatever else is in it.
bool same_kind(const SentPacket& a, const SentPacket& b);

}  // namespace rnicsim::sim::replay
