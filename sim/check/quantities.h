// SPDX-License-Identifier: Apache-2.0
// Parses values in cases: numbers with units, shares, margins.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/bench/table_reader.h"
#include "sim/check/case.h"

namespace rnicsim::sim::check {

// Parses a percentage: "1.5 %" is 0.015.
std::optional<double> parse_share(std::string_view text);
// Reads "1 %", or a quantity in the unit of `value`. nullopt: no such key. ConfigError.
std::optional<Margin> read_margin(bench::TableReader& reader, std::string_view key, const std::string& value);
// Reads a quantity in the unit of `value`, or the name of another value of that unit. ConfigError.
Operand read_operand(bench::TableReader& reader, std::string_view key, const std::string& value);

}  // namespace rnicsim::sim::check
