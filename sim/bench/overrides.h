// "--set" of a workload's own keys, put into the file's table before it is read.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace rnicsim::sim::bench {

// `text` is such that is_workload_key() knows it. ConfigError: it names no key that could be there.
void apply_override(toml::table& root, const std::string& text);

}  // namespace rnicsim::sim::bench
