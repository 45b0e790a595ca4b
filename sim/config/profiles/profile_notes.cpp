// SPDX-License-Identifier: Apache-2.0
#include "sim/config/profiles/profile_notes.h"

#include <optional>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {

bool is_extrapolated(const std::string& nic) try {
  const auto find = [](const std::string& base) { return std::optional(find_data(DataKind::nic, base)); };
  bool extrapolated = false;
  for (const auto& file : read_with_bases(find_data(DataKind::nic, nic), find))
    for (const auto& setting : file.settings)
      if (is_note(setting)) extrapolated = setting.text == "true";
  return extrapolated;
} catch (const ConfigError&) {
  return false;  // the loader reports the error; a file may also be gone by the end of the run
}

std::string nic_text(const std::string& nic) { return is_extrapolated(nic) ? nic + " (extrapolated)" : nic; }

}  // namespace rnicsim::sim
