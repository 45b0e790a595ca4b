// Settings of files and of --set options, put into parameters; files with the bases that they name.
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

// Of "key=value", as --set has it. ConfigError: it is not that.
Setting setting_option(std::string_view key_equals_value);
// Of a NIC's profile, true or false: what is no parameter, but says what they are worth (profile_notes.h).
inline constexpr std::string_view kExtrapolated = "extrapolated";
// ConfigError: it is that, and neither true nor false.
bool is_note(const Setting& setting);
// ConfigError: there is no such parameter, or it does not take the value.
void apply(const ParamList& params, const Setting& setting);

// The file behind its base, and that behind its own. `find` says where a base is that does not lie beside its file;
// nullopt: it is none, and the first file's `base` is the caller's to read.
// ConfigError: a file cannot be read, or is its own base.
using FindBase = std::function<std::optional<std::filesystem::path>(const std::string& base)>;
std::vector<TomlFile> read_with_bases(const std::filesystem::path& path, const FindBase& find);

}  // namespace rnicsim::sim
