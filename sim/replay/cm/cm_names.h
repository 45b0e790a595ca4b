// Communication IDs and transaction IDs are their sender's choice. What the port of the capture chose, and what our
// manager chooses in its place, are kept side by side, and messages are put from one into the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "model/cm/connection.h"
#include "model/cm/messages.h"

namespace rnicsim::sim::replay {

// A message's name for its conversation. 0: it has none.
std::uint32_t own_id(const cm::Message& message);    // its sender's
std::uint32_t other_id(const cm::Message& message);  // its receiver's

// Begins a transaction; else it belongs to one that another message began.
bool begins_transaction(const cm::Message& message);

class CmNames {
 public:
  std::optional<cm::ConnectionId> ours(std::uint32_t theirs) const;
  bool has(cm::ConnectionId ours) const { return to_theirs_.contains(ours); }
  void bind(std::uint32_t theirs, cm::ConnectionId ours);
  // Takes what our message leaves free, its sender's ID and a transaction that it begins, from its counterpart.
  void learn(const cm::Envelope& ours, const cm::Envelope& theirs);

  // A message of ours as the port would have sent it.
  cm::Envelope in_theirs(cm::Envelope ours) const;
  // A message of the peer's, which answers the port, as it would have answered us.
  cm::Envelope in_ours(cm::Envelope peers);

 private:
  enum class Exchange : std::uint8_t { connect, disconnect, path, service };
  struct Transaction {
    std::uint64_t ours;
    std::uint64_t theirs;
  };
  static Exchange exchange_of(const cm::Message& message);
  const Transaction* find(cm::ConnectionId id, const cm::Message& message) const;

  std::map<std::uint32_t, cm::ConnectionId> to_ours_;
  std::map<cm::ConnectionId, std::uint32_t> to_theirs_;
  std::map<std::pair<cm::ConnectionId, Exchange>, Transaction> transactions_;
  // For an ID that the port never gave: none of ours, which begin at 1.
  std::map<std::uint32_t, cm::ConnectionId> strangers_;
  cm::ConnectionId next_stranger_ = 0xffffffff;
};

}  // namespace rnicsim::sim::replay
