// SPDX-License-Identifier: Apache-2.0
// Applies "--set" of a workload's own keys to the table of the file before the table is read.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace rnicsim::sim::bench {

// `text`: is_workload_key() accepts it. ConfigError: no such key can exist.
void apply_override(toml::table& root, const std::string& text);

}  // namespace rnicsim::sim::bench
