// SPDX-License-Identifier: Apache-2.0
// Costs of the simulated out-of-band network (TCP and UDP between hosts).
#pragma once

#include "model/base/params.h"
#include "model/base/units.h"

namespace rnicsim::sim {

struct NetworkParams {
  Duration latency{20'000'000};
  Duration loopback_latency{5'000'000};
  BitRate rate{10'000'000'000};

  void describe(ParamVisitor& visit) {
    visit.param("latency", latency, "delay from a write to a socket on one host until another host can read the bytes",
                {1e3, 1e15});
    visit.param("loopback_latency", loopback_latency,
                "delay from a write to a socket until a socket of the same host can read the bytes", {1e3, 1e15});
    visit.param("rate", rate, "rate of one TCP connection or UDP socket", {1e3, 1e15});
  }
};

}  // namespace rnicsim::sim
