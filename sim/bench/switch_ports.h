// Ports of switches in the measured interval: how busy each port was, and which device paused which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/bench/measured.h"
#include "sim/bench/results.h"
#include "sim/config/topology.h"
#include "sim/counter_results.h"
#include "sim/json.h"

namespace rnicsim::sim::bench {

// A port's counters and what follows from them, "port.h0.tx_busy", "port.h0.tx_busy_share"; of a priority that was used
// or paused also "port.h0.p3.tx_busy". Of all ports that did something. With histograms also percentiles of queues.
std::vector<CounterResult> port_results(const BenchResult& result, std::size_t box);

// The same of histograms; empty: the switch makes none.
std::vector<fabric::PortHistograms> port_histograms(const BenchResult& result, std::size_t box);

// One of the two ends of a cable has the other one wait (IEEE 802.1Qbb).
struct Pause {
  std::string by;
  std::string paused;
  std::optional<std::uint32_t> priority;  // absent: it is not known, between two NICs
  double share = 0;                       // of 1: part of the measured time for which the pause was asked for
  std::string because;                    // the resource at `by` that is used up or waits
};

// The longest first.
std::vector<Pause> pauses_of(const BenchResult& result);
std::string pauses_text(const std::vector<Pause>& pauses);
Json pauses_json(const std::vector<Pause>& pauses);

}  // namespace rnicsim::sim::bench
