// SPDX-License-Identifier: Apache-2.0
// The JSON value for a file in results.
#pragma once

#include <filesystem>

#include "sim/results/json.h"

namespace rnicsim::sim {

// {"file": name of the file, "crc32": CRC-32 of its content}
Json file_json(const std::filesystem::path& path);

}  // namespace rnicsim::sim
