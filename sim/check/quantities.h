// Values as cases give them: numbers with units, shares, margins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/bench/table_reader.h"
#include "sim/check/case.h"

namespace rnicsim::sim::check {

// "1.5 %" is 0.015.
std::optional<double> parse_share(std::string_view text);
// "1 %" for each, or a quantity of the unit that `value` has. nullopt: there is no such key. ConfigError.
std::optional<Margin> read_margin(bench::TableReader& reader, std::string_view key, const std::string& value);
// A quantity of the unit of `value`, or the name of another value of that unit. ConfigError.
Operand read_operand(bench::TableReader& reader, std::string_view key, const std::string& value);

}  // namespace rnicsim::sim::check
