// SPDX-License-Identifier: Apache-2.0
// Finds rnicsim's installed files, starting from the program or shared library that holds this code. A build tree and
// an installation have the same layout: bin/, lib/rnicsim/ (libraries that programs load) and share/rnicsim/ (data).
#pragma once

#include <filesystem>

namespace rnicsim::sim {

// Path of the program or shared library.
std::filesystem::path own_image();

// ConfigError: not found; the message names the folder and the place.
std::filesystem::path library_folder();  // has librnicsim_os.so, libibverbs.so.1, librdmacm.so.1
std::filesystem::path share_folder();    // has nics/, topologies/, workloads/

}  // namespace rnicsim::sim
