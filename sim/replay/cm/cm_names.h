// SPDX-License-Identifier: Apache-2.0
// Communication IDs and transaction IDs are chosen by their sender. Maps between the IDs of the captured port and the
// IDs of our manager, and translates messages from one to the other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "model/cm/connection.h"
#include "model/cm/messages.h"

namespace rnicsim::sim::replay {

// Communication ID of the message's sender, and of its receiver; 0: the message has none.
std::uint32_t own_id(const cm::Message& message);
std::uint32_t other_id(const cm::Message& message);

// True: the message begins a transaction; false: it belongs to a transaction that another message began.
bool begins_transaction(const cm::Message& message);

class CmNames {
 public:
  std::optional<cm::ConnectionId> ours(std::uint32_t theirs) const;
  bool has(cm::ConnectionId ours) const { return to_theirs_.contains(ours); }
  void bind(std::uint32_t theirs, cm::ConnectionId ours);
  // Learns the IDs that our message's sender chose from the counterpart: the communication ID, and the ID of a
  // transaction that the message begins.
  void learn(const cm::Envelope& ours, const cm::Envelope& theirs);

  // Our message with the port's IDs.
  cm::Envelope in_theirs(cm::Envelope ours) const;
  // A message of the peer to the port, with our IDs.
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
  // IDs that the port never chose get an ID that our manager never chooses: ours count up from 1, these down.
  std::map<std::uint32_t, cm::ConnectionId> strangers_;
  cm::ConnectionId next_stranger_ = 0xffffffff;
};

}  // namespace rnicsim::sim::replay
