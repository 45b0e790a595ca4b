// Follows every work request through the system and sums up where its time goes: a subscriber of the trace points.
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
    bool one_way = false;  // to where the payload is seen; else to its completion
    Spread latency;
    std::array<Spread, kStages> stages;  // their means add up to that of the latency
  };
  std::vector<Operation> operations;
  std::uint64_t failed = 0;      // completed with an error, or flushed
  std::uint64_t unfinished = 0;  // not completed, or not polled, when the run ended
  std::uint64_t irregular = 0;   // that the trace points did not explain

  const Operation* find(nic::SendOpcode opcode, bool one_way) const;
};

class Waterfall {
 public:
  // Subscribes to every host; to be made before any process of the simulation, and to stay as long as the system.
  explicit Waterfall(System& system);
  Waterfall(const Waterfall&) = delete;
  Waterfall& operator=(const Waterfall&) = delete;
  ~Waterfall();

  // Each work request, when it is done with.
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
  std::map<Mac, std::uint32_t> hosts_;  // by the address of their port
  std::vector<Duration> stored_;        // by host: when the CPU made the write that the device acts on
  std::map<std::pair<bool, nic::SendOpcode>, std::unique_ptr<Spans>> spans_;
};

std::string waterfall_text(const WaterfallSummary& summary);
Json waterfall_json(const WaterfallSummary& summary);

}  // namespace rnicsim::sim
