// Notes of what happens on hosts and switches, brought into one order: that of time, then of the node, then what came
// to it before what it did itself, then as the notes came. So it does not show how many processes simulated the system.
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

  // `then` gets those of all nodes, in the first process. `boundary` (it outlives this): the other processes, or none.
  InOrder(Boundary* boundary, Then then);
  InOrder(const InOrder&) = delete;
  InOrder& operator=(const InOrder&) = delete;

  enum class Origin : std::uint8_t { arrival, own };

  // On `node`, now or by the boundary's time; left to the process that simulates it.
  void add(Duration at, std::uint32_t node, Origin origin, std::span<const std::byte> note);
  // Nothing follows, and the processes have met.
  void finish() { pass_on({INT64_MAX}); }

 private:
  struct Held {
    Duration at;
    std::uint32_t node;
    Origin origin;
    std::size_t begin, bytes;              // in notes_
  };

  Message report() override;
  void take(std::span<const std::byte> report) override;
  void all_told() override;
  void hold(const Held& place, std::span<const std::byte> note);
  void pass_on(Duration before);

  Boundary* const boundary_;
  const Then then_;
  Duration met_;                           // when the processes did last
  std::vector<Held> held_;
  std::vector<std::byte> notes_;
  // While they are passed on; kept for their memory.
  std::vector<Held> passing_;
  std::vector<std::byte> passing_notes_;
};

}  // namespace rnicsim::sim
