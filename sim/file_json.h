// A file as results name it.
#pragma once

#include <filesystem>

#include "sim/json.h"

namespace rnicsim::sim {

// {"file": its name, "crc32": of what is in it}
Json file_json(const std::filesystem::path& path);

}  // namespace rnicsim::sim
