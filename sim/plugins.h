// Policies of the user's own (model/base/plugin.h).
#pragma once

namespace rnicsim::sim {

// Loads the shared libraries of RNICSIM_PLUGINS, names with ':' between them. Call this before any policy is looked up.
// ConfigError: a file cannot be loaded, is no plugin, or was built with other headers.
void load_plugins();

}  // namespace rnicsim::sim
