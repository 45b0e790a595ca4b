// Compares an engine's answers with those of the real NIC, queue pair by queue pair. What may differ is listed in
// docs/replay.md and here, in Equivalence; everything else is a difference.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/payload.h"
#include "model/roce/headers.h"

namespace rnicsim::sim::replay {

enum class Equivalence : std::uint8_t {
  ack_credits,
  migration_state,
  congestion_marks,
  ack_coalesced,
  duplicate_ack,
};

struct EquivalenceRow {
  Equivalence equivalence;
  const char* name;
  const char* meaning;
};

inline constexpr std::array<EquivalenceRow, 5> kEquivalences{{
    {Equivalence::ack_credits, "ack_credits", "the credit count of a positive AETH"},
    {Equivalence::migration_state, "migration_state", "the MigReq bit of the BTH"},
    {Equivalence::congestion_marks, "congestion_marks", "the FECN and BECN bits of the BTH"},
    {Equivalence::ack_coalesced, "ack_coalesced", "a positive ACK for which a later answer stands"},
    {Equivalence::duplicate_ack, "duplicate_ack", "several duplicate requests acknowledged together"},
}};

using EquivalenceCounts = std::array<std::uint64_t, kEquivalences.size()>;

struct Answer {
  std::uint32_t frame = 0;  // the real NIC's: its own; an engine's: of the request that brought it about
  roce::Headers headers;
  Payload payload;
};

// What the comparison needs to know of the requests.
struct Asked {
  std::uint32_t frame = 0;
  roce::Psn last;  // its last PSN
  bool ack_request = false;
  bool duplicate = false;
  bool executed = false;
  std::uint32_t msn = 0;  // of the responder then
};

struct FieldDifference {
  std::string field;
  std::string ours;
  std::string theirs;
};

// Without `theirs` the real NIC gave no such answer, without `ours` the engine.
struct Difference {
  std::optional<Answer> ours;
  std::optional<Answer> theirs;
  std::vector<FieldDifference> fields;

  std::uint32_t frame() const { return theirs ? theirs->frame : ours->frame; }
};

struct Comparison {
  std::uint64_t matched = 0;  // pairs
  EquivalenceCounts equivalences{};
  std::vector<Difference> differences;
};

// Each of the three in the order of the wire.
Comparison compare(std::span<const Asked> asked, std::span<const Answer> ours, std::span<const Answer> theirs);

}  // namespace rnicsim::sim::replay
