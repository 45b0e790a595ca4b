// SPDX-License-Identifier: Apache-2.0
// Applies settings of files and of --set options to parameters; reads files with their bases.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/param_list.h"
#include "sim/config/toml_file.h"

namespace rnicsim::sim {

// Parses "key=value" of --set. ConfigError: another form.
Setting setting_option(std::string_view key_equals_value);
// Key of a NIC's profile with true or false: a note on the parameters, and no parameter (profiles/profile_notes.h).
inline constexpr std::string_view kExtrapolated = "extrapolated";
// True for the note. ConfigError: its value is neither true nor false.
bool is_note(const Setting& setting);
// ConfigError: no such parameter, or the value does not fit.
void apply(const ParamList& params, const Setting& setting);

// Reads the file and, before it in the result, its chain of bases. `find` gives the path of a base that is not in its
// file's folder; nullopt: the base is no file, and the caller handles the first file's `base`. ConfigError: a file
// cannot be read, or is its own base.
using FindBase = std::function<std::optional<std::filesystem::path>(const std::string& base)>;
std::vector<TomlFile> read_with_bases(const std::filesystem::path& path, const FindBase& find);

}  // namespace rnicsim::sim
