// SPDX-License-Identifier: Apache-2.0
// Records the software's side of a run: requests of the CPUs to the devices, the memory that the IOMMUs map for
// devices, and the contents of memory that a device reads. `rnicsim replay` drives the devices from these events
// (sim/rerun).
//
// The CPUs' stores into memory are not observed directly. When a device reads memory, its contents are compared with
// the contents found or written there before; 8-byte words that differ were stored since the last access of a device.
//
// Each step of the software follows an `awaited` event: the last output of a device that the software can have seen.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/base/trace.h"
#include "model/base/units.h"
#include "sim/recording/seen_outputs.h"
#include "sim/trace_file/format.h"

namespace rnicsim::host {
class Iommu;
class RootComplex;
struct CpuRequest;
}  // namespace rnicsim::host

namespace rnicsim::sim {

class Adapter;
class System;

// Process states in an event of kind `process`.
enum class ProcessState : std::uint64_t { detached, attached, ended };

class SoftwareRecorder {
 public:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kWord = 8;

  // Subscribes to every host. Make the object before the simulation starts; `sink` must live as long as the system.
  // ConfigError: a host is outside the simulation, or a virtual machine.
  SoftwareRecorder(System& system, EventSink& sink);
  ~SoftwareRecorder();

 private:
  static constexpr std::size_t kPage = 4096;
  // Contents of a page as devices found or wrote them, the times of the last accesses, and the numbers of writes.
  struct Page {
    using Words = std::array<Duration, kPage / kWord>;

    std::array<std::byte, kPage> bytes{};
    Duration whole_touched;                             // last access to the whole page
    std::array<Duration, kPage / kLine> touched{};      // by line: last access to the whole line
    std::unique_ptr<Words> words;                       // last accesses to parts of lines; nullptr: none yet
    std::uint32_t whole_writes = 0;                     // writes of the whole page
    std::array<std::uint32_t, kPage / kLine> writes{};  // by line: other writes

    void touch(std::size_t begin, std::size_t end, Duration now);
    void count_write(std::size_t begin, std::size_t end);
    std::uint32_t writes_of(std::size_t line) const { return whole_writes + writes[line]; }
    Duration word_touched(std::size_t word) const {
      return std::max({whole_touched, touched[word * kWord / kLine], words ? (*words)[word] : Duration{}});
    }
  };
  using Pages = std::unordered_map<std::uint64_t, std::unique_ptr<Page>>;  // pages of one process, by page number

  void watch(std::uint32_t index, Adapter& adapter);
  void watch_iommu(std::uint32_t index, Adapter& adapter);
  void request(std::uint32_t index, const host::CpuRequest& request);
  void read(std::uint32_t index, std::uint64_t process, std::uint64_t address, std::span<const std::byte> bytes);
  void written(std::uint32_t host, std::uint64_t domain, std::uint64_t address, std::span<const std::byte> bytes);
  void write_stores(std::uint32_t index, std::uint64_t process, std::uint64_t address, std::span<const std::byte> found,
                    const Page& known);
  Page& page(std::uint64_t process, std::uint64_t number);
  // Writes a step of the software, after the device output that it waited for.
  void write_step(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields) {
    write_awaited(index);
    write(index, kind, fields);
  }
  void write_awaited(std::uint32_t index);
  void write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields);
  void write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields,
             std::span<const std::byte> words);

  // The weak_ptr is needed because the hosts outlive the recorder, and unpin memory when they end.
  template <class Event, class Act>
  void subscribe(trace::Point<Event>& point, Act act) {
    point.subscribe([alive = std::weak_ptr(alive_), act](const Event& event) mutable {
      if (!alive.expired()) act(event);
    });
  }

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  EventSink& sink_;
  std::vector<std::uint32_t> host_of_;               // by adapter
  std::vector<SeenOutputs> seen_;                    // by host
  std::unordered_map<std::uint64_t, Pages> memory_;  // by host and process
  Page* last_ = nullptr;                             // cache of the last page() result
  std::uint64_t last_process_ = 0, last_number_ = 0;
};

}  // namespace rnicsim::sim
