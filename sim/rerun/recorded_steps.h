// What the software of a recorded run did at its devices, in the order in which it is done again.
//
// The recording shows a store into memory when a device finds its bytes, and since when they may have been there. The
// store is done before the first request that the host made in that time: a WQE before its doorbell. Without such a
// request, it is done at the beginning of that time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/units.h"
#include "sim/recording/trace_file.h"

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
  std::size_t data;        // a store's or a write's bytes in RecordedSteps
  std::uint64_t order;     // of steps due at one time
};

class RecordedSteps {
 public:
  // Reads the trace to its end. `hosts`: of each adapter, the number of its host. TraceError; ConfigError: the trace
  // has what cannot be done again.
  RecordedSteps(TraceReader& trace, const std::vector<std::uint32_t>& hosts);

  const std::vector<Step>& steps() const { return steps_; }
  std::span<const std::byte> bytes_of(const Step& step) const {
    return std::span(bytes_).subspan(step.data, step.length);
  }

 private:
  struct Request {
    Duration at;
    std::uint64_t order;
  };

  void add(const TraceEvent& event);
  void add_write(const TraceEvent& event);
  void add_store(const TraceEvent& event);
  Step& add_step(const TraceEvent& event);
  void append_words(const TraceEvent& event, std::size_t first_field, std::size_t bytes);

  const std::vector<std::uint32_t>& hosts_;
  std::vector<Step> steps_;
  std::vector<std::byte> bytes_;
  std::vector<std::vector<Request>> requests_;  // by host
  std::uint64_t events_ = 0;
};

}  // namespace rnicsim::sim::rerun
