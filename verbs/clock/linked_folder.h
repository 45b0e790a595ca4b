// A host's /tmp and /var/tmp: what this machine has there is seen as links, for programs and their input may lie there;
// what a host makes is its own. The first program of a host that looks there makes the links: most never do.
#pragma once

#include <string_view>

namespace rnicsim::clock {

// The folder `name` (absolute) of a host whose files lie in `root`; false: it cannot be done now, for want of
// descriptors. No memory is allocated.
bool fill_linked_folder(std::string_view root, std::string_view name);

}  // namespace rnicsim::clock
