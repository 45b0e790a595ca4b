// SPDX-License-Identifier: Apache-2.0
// A host's /tmp and /var/tmp. Entries of this machine's folder appear as symbolic links, because programs and their
// input may lie there; files that the host makes are its own. The links are made when a program first uses the folder,
// which on most hosts never happens.
#pragma once

#include <string_view>

namespace rnicsim::clock {

// Fills the folder `name` (absolute) of a host whose files lie in `root`. False: not possible now, for example without
// free descriptors. No memory is allocated.
bool fill_linked_folder(std::string_view root, std::string_view name);

}  // namespace rnicsim::clock
