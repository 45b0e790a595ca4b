// A NIC in a host without software, for Python: configuration space and BAR by hand, memory behind an IOMMU,
// interrupts, frames, counters and trace. Accesses happen at the present time and take none.
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
  // `check`: of the driver; nullptr: nobody wants one.
  Station(sc_core::sc_module_name name, std::uint32_t number, const nic::NicParams& params,
          const driver_check::CheckParams* check);

  // What leaves one arrives at the other, `latency` after its last bit left. Without a peer it is only kept.
  void connect(Station& peer, Duration latency);

  // nullopt, false: the device refuses.
  std::optional<std::vector<std::byte>> read(Space space, std::uint64_t offset, std::size_t bytes);
  bool write(Space space, std::uint64_t offset, std::span<std::byte> bytes);

  std::shared_ptr<Buffer> allocate(std::size_t bytes);
  // std::invalid_argument: some of the range is mapped; none begins there.
  void map(const std::shared_ptr<Buffer>& buffer, std::uint64_t iova, Pasid pasid, bool writable);
  void unmap(std::uint64_t iova, Pasid pasid);
  // As the device reads and writes, and nothing is counted. nullopt, false, and nothing is done: not all of it is
  // mapped, or not for writing.
  std::optional<std::vector<std::byte>> load(std::uint64_t iova, Pasid pasid, std::size_t bytes);
  bool store(std::uint64_t iova, Pasid pasid, std::span<const std::byte> bytes);

  // Runs the simulation until the next interrupt that nobody has taken, or for so long; takes it. Throws as
  // run_for_a_while() does.
  std::optional<std::pair<Duration, std::uint32_t>> next_interrupt(std::optional<std::uint32_t> vector, Duration limit);

  void inject(std::span<const std::byte> frame);
  // What it sent since the last call: absolute time of the last bit, bytes.
  std::vector<std::pair<Duration, std::vector<std::byte>>> take_frames() { return std::exchange(frames_, {}); }

  // nullptr: nobody asked for it.
  driver_check::DriverCheck* check() { return check_.get(); }
  std::vector<CounterEntry> counters() const;
  void record();
  // From now on what happens is also told on stderr, a line an event, as by --log. ConfigError: no such choice.
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
  std::deque<std::pair<Duration, std::uint32_t>> interrupts_;  // not taken
  bool awaited_ = false;
  std::optional<std::uint32_t> awaited_vector_;
  std::vector<std::pair<Duration, std::vector<std::byte>>> frames_;
  Station* peer_ = nullptr;
  Duration latency_;
  EventQueue<Frame> arriving_{[this] { arrive_due(); }};  // from the peer
  struct Trace : EventSink {
    void write(const TraceEvent& event) override;
    bool kept = false;
    std::vector<bool> shown;  // by EventKind; empty: none
    std::vector<TraceEvent> events;
  };
  void watch();
  Trace trace_;
  Recorder recorder_{trace_};
  bool watched_ = false;
};

}  // namespace rnicsim::sim::python
