// SPDX-License-Identifier: Apache-2.0
// Values of a sweep's key: "16,64,256", "256..4096*2", "0..100+25", "64 KiB..1 MiB*4", "100 ns..500 ns+100 ns".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim::sweep {

enum class Spacing { list, linear, geometric };
const char* to_string(Spacing spacing);

struct Axis {
  std::string key;
  std::vector<std::string> values;  // as for --set, in order
  Spacing spacing = Spacing::list;
};

// ConfigError: not valid; the message begins with the key.
Axis parse_axis(std::string_view key, std::string_view text);
// Each element is a value or a range.
Axis parse_axis(std::string_view key, const std::vector<std::string>& elements);

}  // namespace rnicsim::sim::sweep
