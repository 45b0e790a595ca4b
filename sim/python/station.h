// SPDX-License-Identifier: Apache-2.0
// A NIC in a host without software, for Python: access to configuration space and BAR, memory behind an IOMMU,
// interrupts, frames, counters and trace. Accesses happen at the present time and take no time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/kernel.h"
#include "model/driver_check/driver_check.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "sim/python/memory.h"
#include "sim/recording/recorder.h"
#include "sim/results/counter_list.h"

namespace rnicsim::sim::python {

enum class Space : std::uint8_t { config, bar };

class Station : public sc_core::sc_module {
 public:
  // `check`: parameters of the driver check; nullptr: no check.
  Station(sc_core::sc_module_name name, std::uint32_t number, const nic::NicParams& params,
          const driver_check::CheckParams* check);

  // Connects two stations: a frame arrives at the peer `latency` after its last bit left. Without a peer, sent frames
  // are only kept for take_frames().
  void connect(Station& peer, Duration latency);

  // nullopt or false: the device refuses the access.
  std::optional<std::vector<std::byte>> read(Space space, std::uint64_t offset, std::size_t bytes);
  bool write(Space space, std::uint64_t offset, std::span<std::byte> bytes);

  std::shared_ptr<Buffer> allocate(std::size_t bytes);
  // std::invalid_argument: map(): part of the range is mapped already; unmap(): no mapping begins at `iova`.
  void map(const std::shared_ptr<Buffer>& buffer, std::uint64_t iova, Pasid pasid, bool writable);
  void unmap(std::uint64_t iova, Pasid pasid);
  // Memory access by IOVA as the device does, without counting. nullopt or false: the range is not mapped completely,
  // or not writable; nothing is changed then.
  std::optional<std::vector<std::byte>> load(std::uint64_t iova, Pasid pasid, std::size_t bytes);
  bool store(std::uint64_t iova, Pasid pasid, std::span<const std::byte> bytes);

  // Runs the simulation until the next interrupt (of `vector`, if given) that was not taken, at most for `limit`; takes
  // the interrupt. Throws as run_for_a_while() does.
  std::optional<std::pair<Duration, std::uint32_t>> next_interrupt(std::optional<std::uint32_t> vector, Duration limit);

  void inject(std::span<const std::byte> frame);
  // Frames sent since the last call: absolute time of the last bit, and bytes.
  std::vector<std::pair<Duration, std::vector<std::byte>>> take_frames() { return std::exchange(frames_, {}); }

  // nullptr: no check.
  driver_check::DriverCheck* check() { return check_.get(); }
  std::vector<CounterEntry> counters() const;
  void record();
  // Prints events on stderr from now on, one line each, as --log does. ConfigError: no such choice.
  void log(const std::vector<std::string>& choices);
  std::vector<TraceEvent> take_trace() { return std::exchange(trace_.events, {}); }

 private:
  struct Awaiting;
  struct Counters;
  IovaSpace& space(Pasid pasid);
  void interrupted(std::uint32_t vector);
  void arrive_due();

  const std::uint32_t number_;
  host::Iommu iommu_;
  host::RootComplex root_;
  nic::Nic nic_;
  std::unique_ptr<driver_check::DriverCheck> check_;
  std::map<Pasid, IovaSpace> spaces_;
  std::uint64_t buffers_ = 0;
  std::deque<std::pair<Duration, std::uint32_t>> interrupts_;  // not taken yet
  bool awaited_ = false;
  std::optional<std::uint32_t> awaited_vector_;
  std::vector<std::pair<Duration, std::vector<std::byte>>> frames_;
  Station* peer_ = nullptr;
  Duration latency_;
  EventQueue<Frame> arriving_{[this] { arrive_due(); }};  // frames on their way from the peer
  struct Trace : EventSink {
    void write(const TraceEvent& event) override;
    bool kept = false;
    std::vector<bool> shown;  // by EventKind; empty: nothing is printed
    std::vector<TraceEvent> events;
  };
  void watch();
  Trace trace_;
  Recorder recorder_{trace_};
  bool watched_ = false;
};

}  // namespace rnicsim::sim::python
