// SPDX-License-Identifier: Apache-2.0
// Brings notes of events on hosts and switches into one order: by time, then by node, then arrivals before the node's
// own events, then in the order of the notes. So the result does not depend on the number of processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/base/units.h"
#include "sim/processes/boundary.h"

namespace rnicsim::sim {

class InOrder final : private Reporter {
 public:
  using Then = std::function<void(Duration at, std::uint32_t node, std::span<const std::byte> note)>;

  // `then` receives the notes of all nodes, in the first process, and must add none. `boundary` (must outlive this
  // object): connects the other processes; nullptr: none.
  InOrder(Boundary* boundary, Then then);
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  enum class Origin : std::uint8_t { arrival, own };

  // A note of an event on `node` at the present time or Boundary::time(). Ignored in processes that do not simulate the
  // node.
  void add(Duration at, std::uint32_t node, Origin origin, std::span<const std::byte> note);
  // Call after the last note, when the processes have synchronised.
  void finish() { pass_on({INT64_MAX}); }

 private:
  struct Held {
    Duration at;
    std::uint32_t node;
    Origin origin;
    std::size_t begin, bytes;  // position in notes_
  };

  Message report() override;
  void take(std::span<const std::byte> report) override;
  void all_told() override;
  void hold(const Held& place, std::span<const std::byte> note);
  void pass_on(Duration before);

  Boundary* const boundary_;
  const Then then_;
  Duration met_;  // time of the last exchange
  std::vector<Held> held_;
  bool is_sorted_ = true;         // held_
  std::vector<std::byte> notes_;  // its size is that of the memory
  std::size_t used_ = 0;          // bytes of notes_
  // Buffers during pass_on(); members to reuse their memory.
  std::vector<Held> passing_;
  std::vector<std::byte> passing_notes_;
};

}  // namespace rnicsim::sim
