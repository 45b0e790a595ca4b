// The software's side of a run, for its trace: the CPUs' requests to the devices, what the IOMMUs let devices reach,
// and what lies in memory where a device reads. `rnicsim replay` drives the devices from it (sim/rerun).
//
// The CPUs' stores into memory are not seen. A read of a device shows them: what it finds is compared with what was
// found or written there before, by lines of 64 bytes. A difference was stored since the device's last access to that
// line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "model/base/trace.h"
#include "model/base/units.h"
#include "sim/recording/format.h"

namespace rnicsim::host {
class Iommu;
class RootComplex;
struct CpuRequest;
}  // namespace rnicsim::host

namespace rnicsim::sim {

class Adapter;
class System;

// States of a process in its event.
enum class ProcessState : std::uint64_t { detached, attached, ended };

class SoftwareRecorder {
 public:
  static constexpr std::size_t kLine = 64;

  // Subscribes to every host; to be made before the simulation starts. `sink` stays as long as the system.
  // ConfigError: a host is outside of the simulation, or a virtual machine.
  SoftwareRecorder(System& system, EventSink& sink);
  ~SoftwareRecorder();

 private:
  static constexpr std::size_t kPage = 4096;
  struct Page {
    std::array<std::byte, kPage> bytes{};
    std::array<Duration, kPage / kLine> touched{};
  };
  using Pages = std::unordered_map<std::uint64_t, std::unique_ptr<Page>>;  // by number; of one process

  void watch(std::uint32_t index, Adapter& adapter);
  void watch_iommu(std::uint32_t index, Adapter& adapter);
  void request(std::uint32_t index, const host::CpuRequest& request);
  void read(std::uint32_t index, std::uint64_t process, std::uint64_t address, std::span<const std::byte> bytes);
  void written(std::uint64_t process, std::uint64_t address, std::span<const std::byte> bytes);
  Page& page(std::uint64_t process, std::uint64_t number);
  void write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields);
  void write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields,
             std::span<const std::byte> words);

  // The hosts outlive the recorder, and unpin memory when they end.
  template <class Event, class Act>
  void subscribe(trace::Point<Event>& point, Act act) {
    point.subscribe([alive = std::weak_ptr(alive_), act](const Event& event) {
      if (!alive.expired()) act(event);
    });
  }

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  EventSink& sink_;
  std::unordered_map<std::uint64_t, Pages> memory_;  // by host and process
  Page* last_ = nullptr;                              // the page that was found last
  std::uint64_t last_process_ = 0, last_number_ = 0;
};

}  // namespace rnicsim::sim
