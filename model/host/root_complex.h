// SPDX-License-Identifier: Apache-2.0
// The root complex of a host for one of its devices: the CPU's path to the device (BAR and configuration space), and
// the device's path to memory (through the IOMMU) and to the CPU (message signalled interrupts).
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "model/base/delay_line.h"
#include "model/base/fifo.h"
#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/host/host_counters.h"
#include "model/host/host_params.h"
#include "model/host/memory/iommu.h"

namespace rnicsim::host {

struct DmaWrite {
  Pasid pasid;
  std::uint64_t address;
  std::uint64_t length;
  std::span<const std::byte> bytes;
};
struct DmaRead {
  Pasid pasid;
  std::uint64_t address;
  std::span<const std::byte> bytes;  // the bytes read
};

// A request of the CPU, at the time when the CPU makes it.
struct CpuRequest {
  enum class Kind : std::uint8_t { mmio_write, mmio_read, config_write, config_read };
  Kind kind;
  std::uint32_t offset;  // in BAR0 or in configuration space
  std::uint32_t length;
  std::span<const std::byte> bytes;  // data of a write, by address
};

struct Interrupt {
  std::uint32_t vector;
};

// The value of a BAR0 read has arrived at the CPU.
struct MmioAnswered {
  std::uint64_t value;
};

// A posted write of the CPU has reached the device.
struct MmioCarried {
  std::uint32_t offset;
  Duration stored;  // time at which the CPU made the store
};

// The CPU's path to the device: one line each mmio_line_interval, and mmio_write_buffers lines of buffer.
struct StorePath {
  Duration free;

  // Returns the time at which a store made at `now` leaves.
  Duration occupy(Duration now, std::size_t bytes, const HostParams& params) {
    const Duration start = std::max(now, free);
    free = start + params.mmio_line_interval * lines_of(bytes);
    return start;
  }
  Duration room(std::size_t bytes, const HostParams& params) const {
    const auto ahead = std::int64_t(params.mmio_write_buffers) - lines_of(bytes);
    return free - params.mmio_line_interval * std::max<std::int64_t>(ahead, 0);
  }

 private:
  static constexpr std::size_t kLine = 64;
  static std::int64_t lines_of(std::size_t bytes) { return std::int64_t((bytes + kLine - 1) / kLine); }
};

class RootComplex : public sc_core::sc_module, public HostMemory {
 public:
  // `iommu`: the host's IOMMU. `function`: number of the device.
  RootComplex(sc_core::sc_module_name name, const HostParams& params, Iommu& iommu, std::uint32_t function = 0);

  tlm_utils::simple_initiator_socket<RootComplex> bar{"bar"};
  tlm_utils::simple_initiator_socket<RootComplex> config{"config"};
  tlm_utils::simple_target_socket<RootComplex> upstream{"upstream"};  // requests of the device

  // Lets requests call `device` directly, if `bar` ends at a device of this project.
  void reach(DeviceBar& device) { device_ = &device; }

  // --- Requests of a device of this project, without TLM.
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool answers(Pasid pasid) const override { return iommu_.answers({pasid, function_}); }
  bool peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override {
    return iommu_.peek({pasid, function_}, address, bytes);
  }

  // --- The CPU.
  // Largest write: a BlueFlame buffer.
  static constexpr std::size_t kMostWriteBytes = 256;
  // A posted write: arrives after mmio_write_latency, in order, at most one line each mmio_line_interval. May be called
  // from any process.
  void mmio_write(std::uint32_t offset, Payload&& data);
  // The time at which a write of this size has room: a CPU that stores earlier waits until then.
  Duration mmio_room(std::size_t bytes) const { return path_.room(bytes, params_); }
  const StorePath& path() const { return path_; }
  // Pushes earlier writes. `done` runs when the value is at the CPU; all ones: the device refused.
  void mmio_read(std::uint32_t offset, std::uint32_t bytes, std::function<void(std::uint64_t)> done);
  // The same for an SC_THREAD, which waits.
  std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes);
  // Configuration requests are little-endian and non-posted: the calling thread waits.
  std::uint32_t config_read(std::uint16_t offset, std::uint32_t bytes);
  void config_write(std::uint16_t offset, std::uint32_t bytes, std::uint32_t value);
  // A configuration request at the device, without delay. False: the device refused.
  bool config_request(CpuRequest::Kind kind, std::uint16_t offset, std::span<std::byte> data);

  // --- Pages on demand: messages to the device, with the latency of a posted write.
  void respond(const PageResponse& response);
  // The device answers with `invalidated`; a device without translations answers at once.
  void invalidate(const PageInvalidation& invalidation);

  // --- Actions of the device, at the time of the action.
  Output<PageRequest> page_requested;  // bound by the kernel, as `invalidated` is
  Output<std::uint32_t> invalidated;   // the tag
  Output<std::uint32_t> interrupt;     // vector; bound by the kernel
  trace::Point<CpuRequest> requested;  // configuration requests: when the request reaches the device
  trace::Point<MmioCarried> carried;   // before the device acts on it
  trace::Point<DmaRead> dma_read;
  trace::Point<DmaWrite> dma_written;   // after the bytes are in memory
  trace::Point<Interrupt> interrupts;   // before the kernel handles it
  trace::Point<Interrupt> interrupted;  // after the kernel handled it
  trace::Point<MmioAnswered> answered;  // before the CPU goes on

  Iommu& iommu() { return iommu_; }
  // The IOMMU's domain for requests of the device without a PASID.
  Pasid own_domain() const { return Iommu::own_domain(function_); }
  const RootComplexCounters& counters() const { return counters_; }
  const IommuCounters& iommu_counters() const { return iommu_.counters(function_); }  // for the device's requests

 private:
  void serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void translate(Pasid pasid, tlm::tlm_generic_payload& request);
  void take_message(Pasid pasid, tlm::tlm_generic_payload& request, PageMessageExtension& message);
  struct PageMessage {
    PageMessageExtension::Kind kind{};
    PageResponse response{};
    PageInvalidation invalidation{};
  };
  void send_messages_due();
  // A request on its way from the CPU.
  struct Access {
    std::uint32_t offset;
    std::uint16_t bytes;
    bool reads;
    Duration stored;
    Payload data{};  // data of a write
  };
  struct Answer {
    std::uint64_t value;
    std::function<void(std::uint64_t)> done;
  };

  void send(Access&& access, std::size_t bytes);
  void deliver_due();
  void read_bar(const Access& access);
  void answer_due();
  bool access(tlm_utils::simple_initiator_socket<RootComplex>& socket, tlm::tlm_command command, std::uint64_t address,
              std::span<std::byte> data);
  bool read_bar(std::uint32_t offset, std::span<std::byte> data);
  void write_bar(std::uint32_t offset, Payload& data);
  bool accepted(bool ok);

  const HostParams params_;
  Iommu& iommu_;
  const std::uint32_t function_;
  DelayLine<Access> to_device_{[this] { deliver_due(); }};
  DelayLine<PageMessage> messages_{[this] { send_messages_due(); }};
  DelayLine<Answer> to_cpu_{[this] { answer_due(); }};
  Fifo<std::function<void(std::uint64_t)>> readers_;  // in the order of the reads under way
  StorePath path_;
  DeviceBar* device_ = nullptr;
  tlm::tlm_generic_payload message_;
  tlm::tlm_generic_payload request_;  // for all requests of the CPU: the device answers at once, so two never overlap
  RootComplexCounters counters_;
};

}  // namespace rnicsim::host
