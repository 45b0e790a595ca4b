// SPDX-License-Identifier: Apache-2.0
// Steps of a recorded run's software at its devices, in the order of the replay.
//
// The recording shows a store into memory when a device finds the new bytes, with the interval in which the store
// happened. The replay executes the store before the first request that the host made in this interval (a WQE before
// its doorbell), or without such a request at the beginning of the interval.
//
// At another pace the first request may be too early, because a device may not have read the old contents yet. The
// store then waits until a device has read them, or until the last request of the interval.
// A WQE that a request also carried to the device (BlueFlame) was stored before that request.
//
// Before a step the recording has an `awaited` event: the last output of a device that the software could have seen.
// The step waits for this output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/base/units.h"
#include "sim/recording/seen_outputs.h"
#include "sim/rerun/recorded_memory.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim::rerun {

struct Step {
  Duration at;
  EventKind kind;
  std::uint32_t adapter;
  std::uint64_t process;  // memory and process steps: the IOMMU domain
  std::uint64_t address;  // memory address, offset of a request, or state of a process
  std::uint64_t length;
  bool writable;  // only for a pin step
  bool pinned;
  bool precedes_request;  // a store that is executed before the next request
  // Only for a store: wait until a device has read the old contents, or execute the waiting stores now.
  enum class Wait : std::uint8_t { none, for_access, no_longer } wait;
  std::uint32_t awaited;  // position in RecordedSteps' outputs, from 1; 0: the step waits for the step before it
  std::size_t data;       // offset in RecordedSteps of a store's or write's bytes
  std::uint64_t order;    // order of steps of equal time
};

class RecordedSteps {
 public:
  // Reads the trace to its end. `hosts`: host number of each adapter. TraceError: the trace is not valid. ConfigError:
  // the trace has events that cannot be replayed.
  RecordedSteps(TraceReader& trace, const std::vector<std::uint32_t>& hosts);

  const std::vector<Step>& steps() const { return steps_; }
  Duration end() const { return end_; }  // time of the last step that is no store
  // Output that the step waits for; nullptr: the step waits for the step before it.
  const DeviceOutput* awaited_by(const Step& step) const {
    return step.awaited != 0 ? &outputs_[step.awaited - 1] : nullptr;
  }
  std::span<const std::byte> bytes_of(const Step& step) const {
    return std::span(bytes_).subspan(step.data, step.length);
  }

 private:
  struct Request {
    Duration at;
    std::uint64_t order;
  };

  void add(const TraceEvent& event);
  void add_awaited(const TraceEvent& event);
  void add_write(const TraceEvent& event);
  void add_store(const TraceEvent& event);
  // The BlueFlame write with the bytes that were just stored; nullptr: none.
  const Request* blue_flame_of(const Step& store);
  Step& add_step(const TraceEvent& event);
  void append_words(const TraceEvent& event, std::size_t first_field, std::size_t bytes);

  const std::vector<std::uint32_t> hosts_;
  std::vector<Step> steps_;
  std::vector<std::byte> bytes_;
  std::vector<DeviceOutput> outputs_;
  std::vector<std::uint32_t> awaited_;          // by adapter: output that its next step waits for
  std::vector<std::vector<Request>> requests_;  // by host
  struct Process {
    std::unordered_set<std::uint64_t> stored;  // numbers of words stored before
    RecordedMemory memory;                     // contents that the devices found
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Process> processes_;  // by host and IOMMU domain
  std::map<std::pair<std::uint32_t, std::string>, Request> blue_flames_;  // by host and first line of the written bytes
  std::uint64_t events_ = 0;
  Duration end_;
};

}  // namespace rnicsim::sim::rerun
