// SPDX-License-Identifier: Apache-2.0
// Allowed deviations (equivalences) between an engine and a real NIC, and differences.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim::replay {

// docs/replay.md has the reason of each equivalence. Every other deviation is a difference.
enum class Equivalence : std::uint8_t {
  ack_credits,
  migration_state,
  congestion_marks,
  ack_coalesced,
  duplicate_ack,
  nak_behind_rnr,
  read_resumed,
  rnr_acknowledges,
  ack_request,
  sent_again,
  receipt_ack,
  reject_id,
};

struct EquivalenceRow {
  Equivalence equivalence;
  const char* name;
  const char* meaning;
};

inline constexpr std::array<EquivalenceRow, 12> kEquivalences{{
    {Equivalence::ack_credits, "ack_credits", "the credit count of a positive AETH"},
    {Equivalence::migration_state, "migration_state", "the MigReq bit of the BTH"},
    {Equivalence::congestion_marks, "congestion_marks", "the FECN and BECN bits of the BTH"},
    {Equivalence::ack_coalesced, "ack_coalesced", "a positive ACK that a later answer covers"},
    {Equivalence::duplicate_ack, "duplicate_ack", "several duplicate requests acknowledged together"},
    {Equivalence::nak_behind_rnr, "nak_behind_rnr", "Soft-RoCE's sequence NAK after its RNR NAK"},
    {Equivalence::read_resumed, "read_resumed",
     "Soft-RoCE's answer to the rest of a READ, which continues at the same place"},
    {Equivalence::rnr_acknowledges, "rnr_acknowledges", "packets that only an RNR NAK has acknowledged, sent again"},
    {Equivalence::ack_request, "ack_request", "whether a packet inside a message asks for an ACK"},
    {Equivalence::sent_again, "sent_again", "a message of a connection that only our timer has sent again"},
    {Equivalence::receipt_ack, "receipt_ack", "an MRA that only one side sent"},
    {Equivalence::reject_id, "reject_id", "whether a REJ of a REQ names an ID of its sender"},
}};

using EquivalenceCounts = std::array<std::uint64_t, kEquivalences.size()>;

struct FieldDifference {
  std::string field;
  std::string ours;
  std::string theirs;
};

// Subject of a comparison.
enum class Subject : std::uint8_t { answer, request, delivery, completion, timer, capture, management };
inline constexpr std::array<const char*, 7> kSubjects{"answer", "request", "delivery",  "completion",
                                                      "timer",  "capture", "management"};

// Without `theirs`: the real NIC sent no such packet, or the wire implies no such event. Without `ours`: the engine did
// not.
struct Difference {
  Subject subject = Subject::answer;
  std::uint32_t frame = 0;  // frame of `theirs`; without `theirs`, frame of the packet that caused `ours`
  std::optional<std::string> ours;
  std::optional<std::string> theirs;
  std::vector<FieldDifference> fields;
};

struct Comparison {
  std::uint64_t matched = 0;  // pairs
  EquivalenceCounts equivalences{};
  std::vector<Difference> differences;

  void use(Equivalence freedom) { ++equivalences[static_cast<std::size_t>(freedom)]; }
};

}  // namespace rnicsim::sim::replay
