// SPDX-License-Identifier: Apache-2.0
// Follows each work request through the system and sums up the time of each stage; a subscriber of the trace points.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/base/trace.h"
#include "sim/results/histogram.h"
#include "sim/results/json.h"
#include "sim/waterfall/journey.h"

namespace rnicsim::nic {
struct NicBlocks;
}

namespace rnicsim::sim {

class Adapter;
class Assembler;
class System;

struct WaterfallSummary {
  struct Operation {
    nic::SendOpcode opcode{};
    bool one_way = false;  // ends when the payload is seen; false: at the completion
    Spread latency;
    std::array<Spread, kStages> stages;  // their means add up to the mean of `latency`
  };
  std::vector<Operation> operations;
  std::uint64_t failed = 0;      // completed with an error, or flushed
  std::uint64_t unfinished = 0;  // not completed or not polled at the end of the run
  std::uint64_t irregular = 0;   // not explained by the trace points

  const Operation* find(nic::SendOpcode opcode, bool one_way) const;
};

class Waterfall {
 public:
  // Subscribes to every host. Make the object before any process of the simulation starts; it must live as long as the
  // system.
  explicit Waterfall(System& system);
  Waterfall(const Waterfall&) = delete;
  Waterfall& operator=(const Waterfall&) = delete;
  ~Waterfall();

  // Published for each work request when its journey is complete.
  trace::Point<Journey> finished;
  WaterfallSummary summary() const;

 private:
  struct Spans {
    Histogram latency;
    std::array<Histogram, kStages> stages;
  };
  using Mac = std::array<std::uint8_t, 6>;

  void watch_software(std::uint32_t index, Adapter& host);
  void watch_queues(std::uint32_t index, const nic::NicBlocks& nic);
  void watch_packets(std::uint32_t index, const nic::NicBlocks& nic);
  void count(const Journey& journey);

  const std::unique_ptr<Assembler> assembler_;
  std::map<Mac, std::uint32_t> hosts_;  // by the port's MAC address
  std::vector<Duration> stored_;        // by host: time when the CPU made the write that the device now handles
  std::map<std::pair<bool, nic::SendOpcode>, std::unique_ptr<Spans>> spans_;
};

std::string waterfall_text(const WaterfallSummary& summary);
Json waterfall_json(const WaterfallSummary& summary);

}  // namespace rnicsim::sim
