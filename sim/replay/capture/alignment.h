// SPDX-License-Identifier: Apache-2.0
// Compares two lists of packets step by step. A packet that only one side has is either allowed by an equivalence or
// counted as one difference; the comparison continues where both sides agree again.
#pragma once

#include <cstdint>
#include <span>

#include "sim/replay/capture/packet_pair.h"

namespace rnicsim::sim::replay {

class Alignment {
 public:
  Alignment(Subject subject, std::span<const SentPacket> ours, std::span<const SentPacket> theirs)
      : ours_(ours), theirs_(theirs), subject_(subject) {}
  virtual ~Alignment() = default;

  Comparison run();

 protected:
  virtual PairRules rules(const SentPacket& ours) const = 0;
  // Equivalence that allows the next packet of our side (of their side) to stand alone; nullopt: none.
  virtual std::optional<Equivalence> excuse_ours() const { return std::nullopt; }
  virtual std::optional<Equivalence> excuse_theirs() const { return std::nullopt; }

  bool have(std::size_t i, std::size_t j) const { return i < ours_.size() && j < theirs_.size(); }
  bool same(std::size_t i, std::size_t j) const;

  std::span<const SentPacket> ours_;
  std::span<const SentPacket> theirs_;
  std::size_t i_ = 0;  // index of the next packet of each side
  std::size_t j_ = 0;

 private:
  bool match();
  void differ();
  void both();
  void only_ours();
  void only_theirs();

  const Subject subject_;
  Comparison result_;
};

}  // namespace rnicsim::sim::replay
