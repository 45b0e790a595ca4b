// What is wrong with what a person wrote, in one line that says where.
#pragma once

#include <stdexcept>

namespace rnicsim::sim {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace rnicsim::sim
