// SPDX-License-Identifier: Apache-2.0
// Error in a user's input, as one line that names the place.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rnicsim::sim {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// User input for a message: shortened, with unprintable characters replaced.
std::string shown(std::string_view text);

}  // namespace rnicsim::sim
