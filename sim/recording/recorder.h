// SPDX-License-Identifier: Apache-2.0
// Turns a system's trace points into events for a trace or a log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "model/base/payload.h"
#include "sim/processes/in_order.h"
#include "sim/recording/call_recorder.h"
#include "sim/recording/recorded_parts.h"
#include "sim/recording/software_recorder.h"
#include "sim/recording/tlp_recorder.h"
#include "sim/run_options.h"
#include "sim/system.h"
#include "sim/trace_file/trace_writer.h"

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

// CRC-32 of payloads in flight: a payload is recorded at its sender and, in the same memory, at its receiver.
class PayloadCrcs {
 public:
  std::uint32_t of(const Payload& payload);

 private:
  struct Known {
    Payload payload;  // keeps the memory, so an equal address means the same payload
    std::uint32_t crc = 0;
  };

  std::array<Known, 256> known_;
};

class Recorder {
 public:
  // Subscribes to every host. Make the object before the simulation starts; `sink` must live as long as the system.
  Recorder(System& system, EventSink& sink, Addresses addresses = Addresses::hidden,
           RecordLevel level = RecordLevel::all);
  // Subscribes only to the blocks given to watch_nic() and watch_root(); must live as long as they.
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
  PayloadCrcs crcs_;
  const Addresses addresses_;
  const RecordLevel level_ = RecordLevel::all;
  const Boundary* const boundary_ = nullptr;
};

// --record FILE. With several processes, the first one writes the file.
class Recording final : private EventSink {
 public:
  // With the software's side, the configuration is in the header, so that `rnicsim replay` can build the system.
  // ConfigError: the file cannot be created, or a host's software is not simulated.
  Recording(System& system, TraceHeader header, const std::filesystem::path& path, const RecordedParts& parts = {});
  // Watches a root complex that belongs to no adapter.
  void watch_root(std::uint32_t host, host::RootComplex& root, std::uint32_t device) {
    recorder_.watch_root(host, root, device);
  }
  // Call after the end of the run, when the processes have exchanged their events. ConfigError: a write failed.
  void finish();

 private:
  // A note of InOrder: the kind, whether the event has a QP, the QP's number, the encoded fields.
  static constexpr std::size_t kNoteStart = 2 + sizeof(std::uint32_t);

  void write(const TraceEvent& event) override;
  void write_noted(Duration at, std::uint32_t host, std::span<const std::byte> note);

  const std::filesystem::path path_;
  std::ofstream file_;
  std::optional<TraceWriter> writer_;
  InOrder events_;
  Recorder recorder_;
  std::optional<SoftwareRecorder> software_;
  std::optional<CallRecorder> calls_;
  std::optional<TlpRecorder> tlps_;
};

}  // namespace rnicsim::sim
