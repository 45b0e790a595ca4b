// SPDX-License-Identifier: Apache-2.0
// Share of a sweep's runs that one process executes when several processes work together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {

// Every `of`th run, starting with run `number`.
struct Share {
  std::size_t number = 0;
  std::size_t of = 1;
};

// Parses "3/16". ConfigError.
Share parse_share(const std::string& text);
// Share of a process started by mpirun or srun, from its environment; nullopt: not started by them.
std::optional<Share> share_of_rank();

// Runs of the share without a result, failed runs included.
std::vector<std::size_t> open_runs(const Store& store, const Share& share);

}  // namespace rnicsim::sim::sweep
