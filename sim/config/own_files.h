// rnicsim's own files, found from the place of the program (or the shared library) that this code is part of. A build
// tree and an installation have the same shape: bin/, lib/rnicsim/ (what programs load) and share/rnicsim/ (data).
#pragma once

#include <filesystem>

namespace rnicsim::sim {

// The program's file, or the library's.
std::filesystem::path own_image();

// ConfigError, which says what was looked for and where, when there is none.
std::filesystem::path library_folder();  // of librnicsim_os.so, libibverbs.so.1, librdmacm.so.1
std::filesystem::path share_folder();    // of nics/, topologies/, workloads/

}  // namespace rnicsim::sim
