// What is wrong with what a person wrote, in one line that says where.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rnicsim::sim {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a person wrote, for a message: garbage is cut short and made printable.
std::string shown(std::string_view text);

}  // namespace rnicsim::sim
