// Turns what the trace points of a system tell into events, for a trace or a log.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>

#include "sim/processes/in_order.h"
#include "sim/recording/software_recorder.h"
#include "sim/recording/trace_file.h"
#include "sim/run_options.h"
#include "sim/system.h"

namespace rnicsim::fabric {
class FaultInjector;
}

namespace rnicsim::host {
class RootComplex;
}

namespace rnicsim::nic {
struct NicBlocks;
struct PacketTrace;
}  // namespace rnicsim::nic

namespace rnicsim::sim {

class Recorder {
 public:
  // Addresses of memory in events: those of programs inside the simulator are another at each run.
  enum class Addresses { hidden, shown };
  // Subscribes to every host; to be made before the simulation starts. `sink` stays as long as the system.
  Recorder(System& system, EventSink& sink, Addresses addresses = Addresses::hidden);
  // To what it is told to watch. Stays as long as that.
  explicit Recorder(EventSink& sink) : sink_(sink), addresses_(Addresses::shown) {}
  void watch_nic(std::uint32_t host, const nic::NicBlocks& nic);
  void watch_root(std::uint32_t host, host::RootComplex& root, std::uint32_t device);

 private:
  void watch_network(std::uint32_t host, const nic::NicBlocks& nic);
  void watch_cable(std::uint32_t host, fabric::FaultInjector& cable);
  void watch_queues(std::uint32_t host, const nic::NicBlocks& nic);
  void watch_doorbells(std::uint32_t host, const nic::NicBlocks& nic);
  void watch_refusals(std::uint32_t host, const nic::NicBlocks& nic);
  void watch_host(std::uint32_t host, Adapter& watched);
  void write_packet(std::uint32_t host, EventKind kind, const nic::PacketTrace& packet);
  void write(std::uint32_t host, EventKind kind, std::initializer_list<std::uint64_t> fields) {
    sink_.write(make_event(time(), host, kind, fields));
  }
  std::uint64_t shown(std::uint64_t address) const { return addresses_ == Addresses::shown ? address : 0; }
  Duration time() const { return boundary_ != nullptr ? boundary_->time() : now(); }

  EventSink& sink_;
  const Addresses addresses_;
  const Boundary* const boundary_ = nullptr;
};

// --record FILE. Of several processes, the first writes it.
class Recording final : private EventSink {
 public:
  // `software`: with the software's side, and with what makes the system again in the header. ConfigError: the file
  // cannot be made, or there is no software's side to record.
  Recording(System& system, TraceHeader header, const std::filesystem::path& path, bool software = false);
  // A root complex that is none of an adapter's.
  void watch_root(std::uint32_t host, host::RootComplex& root, std::uint32_t device) {
    recorder_.watch_root(host, root, device);
  }
  // The run has ended, and its processes have met. ConfigError: not everything could be written.
  void finish();

 private:
  void write(const TraceEvent& event) override;

  const std::filesystem::path path_;
  std::ofstream file_;
  std::optional<TraceWriter> writer_;
  InOrder events_;
  Recorder recorder_;
  std::optional<SoftwareRecorder> software_;
};

}  // namespace rnicsim::sim
