// What the software of a recorded run did at its devices, in the order in which it is done again.
//
// The recording shows a store into memory when a device finds its bytes, and since when they may have been there. The
// store is done before the first request that the host made in that time: a WQE before its doorbell. Without such a
// request, it is done at the beginning of that time.
//
// At another pace than the recorded one, the first request may be too soon: what was stored at that place before has
// perhaps not been read yet. So the store waits there until a device has read that, or for the last request of that
// time.
// A WQE that a request brought to the device, too (BlueFlame), was stored before that request.
//
// Before a step the recording has what the devices did last that the software had seen: what the step waited for.
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
#include "sim/recording/trace_file.h"
#include "sim/rerun/recorded_memory.h"

namespace rnicsim::sim::rerun {

struct Step {
  Duration at;
  EventKind kind;
  std::uint32_t adapter;
  std::uint64_t process;   // memory and processes: as Iommu counts domains
  std::uint64_t address;   // or the offset of a request; or a process's state
  std::uint64_t length;
  bool writable;           // of what is pinned
  bool pinned;
  bool precedes_request;   // a store: before the next request
  // A store: when a device has read what was stored there before; or the latest time for such a store.
  enum class Wait : std::uint8_t { none, for_access, no_longer } wait;
  std::uint32_t awaited;   // its place among RecordedSteps' outputs, from 1 on; 0: the step before it
  std::size_t data;        // a store's or a write's bytes in RecordedSteps
  std::uint64_t order;     // of steps due at one time
};

class RecordedSteps {
 public:
  // Reads the trace to its end. `hosts`: of each adapter, the number of its host. TraceError; ConfigError: the trace
  // has what cannot be done again.
  RecordedSteps(TraceReader& trace, const std::vector<std::uint32_t>& hosts);

  const std::vector<Step>& steps() const { return steps_; }
  Duration end() const { return end_; }  // the last step that is no store
  // The output of a device for which the step waited; nullptr: the step waited for the one before it.
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
  // The BlueFlame write of the line that was just stored; nullptr: there was none.
  const Request* blue_flame_of(const Step& store);
  Step& add_step(const TraceEvent& event);
  void append_words(const TraceEvent& event, std::size_t first_field, std::size_t bytes);

  const std::vector<std::uint32_t> hosts_;
  std::vector<Step> steps_;
  std::vector<std::byte> bytes_;
  std::vector<DeviceOutput> outputs_;
  std::vector<std::uint32_t> awaited_;          // by adapter: for its next step
  std::vector<std::vector<Request>> requests_;  // by host
  struct Process {
    std::unordered_set<std::uint64_t> stored;  // words
    RecordedMemory memory;                     // as the devices find it
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Process> processes_;  // by host
  std::map<std::pair<std::uint32_t, std::string>, Request> blue_flames_;  // by host and the first line of their bytes
  std::uint64_t events_ = 0;
  Duration end_;
};

}  // namespace rnicsim::sim::rerun
