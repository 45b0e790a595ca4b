// Which of a sweep's runs a process does, when several do it together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

// Every `of`th run, from the `number`th on.
struct Share {
  std::size_t number = 0;
  std::size_t of = 1;
};

// "3/16"; ConfigError.
Share parse_share(const std::string& text);
// Of the process that mpirun or srun started, by its environment; nullopt: none of them did.
std::optional<Share> share_of_rank();

// The runs of the share that are not done yet, those that failed among them.
std::vector<std::size_t> open_runs(const Store& store, const Share& share);

}  // namespace rnicsim::sim::sweep
