// SPDX-License-Identifier: Apache-2.0
// Choice of the events that a recording has beside the events of the devices.
#pragma once

namespace rnicsim::sim {

// Memory addresses in events. Addresses of programs inside the simulator differ at each run, so a trace hides them.
enum class Addresses { hidden, shown };

// verbs: without packets and frames, which are most of the events of large messages.
enum class RecordLevel { verbs, all };

struct RecordedParts {
  RecordLevel level = RecordLevel::all;
  bool software = false;  // requests to the devices, and memory: `rnicsim replay` needs them
  bool calls = false;     // of the verbs library
  bool tlps = false;
};

}  // namespace rnicsim::sim
