// SPDX-License-Identifier: Apache-2.0
// Ports of switches in the measured interval: how busy each port was, and which device paused which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/bench/results/measured.h"
#include "sim/bench/results/results.h"
#include "sim/config/topology.h"
#include "sim/results/counter_results.h"
#include "sim/results/json.h"

namespace rnicsim::sim::bench {

// Counters of a switch's active ports, and values derived from them: "port.h0.tx_busy", "port.h0.tx_busy_share"; for a
// priority that was used or paused also "port.h0.p3.tx_busy". With histograms also percentiles of queue lengths.
std::vector<CounterResult> port_results(const BenchResult& result, std::size_t box);

// Histograms of the interval, by port; empty: the switch makes none.
std::vector<fabric::PortHistograms> port_histograms(const BenchResult& result, std::size_t box);

// Pause that one end of a cable requests from the other end (IEEE 802.1Qbb).
struct Pause {
  std::string by;
  std::string paused;
  std::optional<std::uint32_t> priority;  // absent: unknown, between two NICs
  double share = 0;                       // part of the measured time, of 1, for which the pause was requested
  std::string because;                    // resource of `by` that causes the pause
};

// Longest pause first.
std::vector<Pause> pauses_of(const BenchResult& result);
std::string pauses_text(const std::vector<Pause>& pauses);
Json pauses_json(const std::vector<Pause>& pauses);

}  // namespace rnicsim::sim::bench
