// SPDX-License-Identifier: Apache-2.0
// Loads shared libraries with the user's own policies (model/base/plugin.h).
#pragma once

namespace rnicsim::sim {

// Loads the shared libraries named in RNICSIM_PLUGINS, separated by ':'. Call before any policy is looked up.
// ConfigError: a file cannot be loaded, is no plugin, or was built with other headers.
void load_plugins();

}  // namespace rnicsim::sim
