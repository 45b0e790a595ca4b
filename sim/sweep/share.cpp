// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/share.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "sim/config/config_error.h"

namespace rnicsim::sim::sweep {
namespace {

std::optional<std::size_t> number_of(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::size_t> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : number_of(value);
}

}  // namespace

Share parse_share(const std::string& text) {
  const auto slash = text.find('/');
  const auto number = number_of(std::string_view(text).substr(0, slash));
  const auto of = slash == text.npos ? std::nullopt : number_of(std::string_view(text).substr(slash + 1));
  if (!number || !of || *number >= *of)
    throw ConfigError(fmt::format("--share: '{}' is not K/N, K below N", shown(text)));
  return {*number, *of};
}

std::optional<Share> share_of_rank() {
  struct Launcher {
    const char* rank;
    const char* size;
  };
  // Variables of Open MPI, of MPICH and others (PMI), and of srun. A batch script has no SLURM_STEP_NUM_TASKS, only
  // SLURM_NTASKS, and runs alone.
  constexpr Launcher kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
  };
  for (const auto& launcher : kLaunchers) {
    const auto rank = variable(launcher.rank), size = variable(launcher.size);
    if (rank && size && *rank<*size&& * size> 1) return Share{*rank, *size};
  }
  return std::nullopt;
}

std::vector<std::size_t> open_runs(const Store& store, const Share& share) {
  std::vector<std::size_t> open;
  for (std::size_t run = share.number; run < store.plan().runs(); run += share.of)
    if (!store.done(run_of(store.plan(), run))) open.push_back(run);
  return open;
}

}  // namespace rnicsim::sim::sweep
