// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of UC and UD on the wire.
#pragma once

#include <cstdint>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing {

// Reason why a packet was dropped, named after the counter.
enum class Counted { out_of_sequence, bad_qkey, unfit, wrong_state, wrong_path, unknown_qp, bad_pkey };

class UnreliableWire : public RcWire {
 protected:
  static constexpr std::uint32_t kPsn = 0xfffffe;  // PSN that wraps within a message

  static EndpointOptions of_type(ibv_qp_type type, std::uint8_t gid_index) {
    EndpointOptions options;
    options.type = type;
    options.psn = kPsn;
    options.gid_index = gid_index;
    return options;
  }
  // Value of a drop counter of h1.
  std::uint64_t counter(Counted which) {
    const auto counters = host(1).nic().counters();
    switch (which) {
      case Counted::out_of_sequence: return counters.engine.out_of_sequence;
      case Counted::bad_qkey: return counters.engine.bad_qkey;
      case Counted::unfit: return counters.engine.silently_dropped;
      case Counted::wrong_state: return counters.engine.wrong_state;
      case Counted::wrong_path: return counters.engine.wrong_path;
      case Counted::unknown_qp: return counters.engine.unknown_qp;
      case Counted::bad_pkey: return counters.rx.bad_pkey;
    }
    return 0;
  }
};

}  // namespace rnicsim::testing
