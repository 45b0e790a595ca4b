// The root complex of a host, as far as one of its devices is concerned: the CPU's way to the device (BAR and
// configuration space) and the device's way to memory (through the IOMMU) and to the CPU (message signalled
// interrupts).
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
#include "model/host/iommu.h"

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
  std::span<const std::byte> bytes;     // that were there
};

// A request of the CPU, when the CPU makes it.
struct CpuRequest {
  enum class Kind : std::uint8_t { mmio_write, mmio_read, config_write, config_read };
  Kind kind;
  std::uint32_t offset;                 // in BAR0, or in configuration space
  std::uint32_t length;
  std::span<const std::byte> bytes;     // of a write, in the order of their addresses
};

struct Interrupt {
  std::uint32_t vector;
};

// The value of a read of BAR0 is at the CPU.
struct MmioAnswered {
  std::uint64_t value;
};

// A posted write of the CPU, as it reaches the device.
struct MmioCarried {
  std::uint32_t offset;
  Duration stored;                      // when the CPU made it
};

// The CPU's way to the device: a line each mmio_line_interval, behind so many write buffers.
struct StorePath {
  Duration free;

  // When a store that is made now sets out.
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
  // `iommu` is the host's; `function` numbers the devices behind it.
  RootComplex(sc_core::sc_module_name name, const HostParams& params, Iommu& iommu, std::uint32_t function = 0);

  tlm_utils::simple_initiator_socket<RootComplex> bar{"bar"};
  tlm_utils::simple_initiator_socket<RootComplex> config{"config"};
  tlm_utils::simple_target_socket<RootComplex> upstream{"upstream"};  // the device's requests

  // Where `bar` ends, if that is ours: its BAR is reached there.
  void reach(DeviceBar& device) { device_ = &device; }

  // --- The same, from a device of ours.
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool answers(Pasid pasid) const override { return iommu_.answers({pasid, function_}); }
  bool look(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override {
    return iommu_.look({pasid, function_}, address, bytes);
  }

  // --- The CPU.
  // At most this much a write: a BlueFlame buffer.
  static constexpr std::size_t kMostWriteBytes = 256;
  // Posted: arrives after the parameter mmio_write_latency, in order, and no denser than a line each
  // mmio_line_interval. Callable from any process.
  void mmio_write(std::uint32_t offset, Payload&& data);
  // When there is room for a write of so many bytes: a CPU that stores before waits until then.
  Duration mmio_room(std::size_t bytes) const { return path_.room(bytes, params_); }
  const StorePath& path() const { return path_; }
  // Pushes the writes before it. `done` runs when the value is back; all ones when the device refused.
  void mmio_read(std::uint32_t offset, std::uint32_t bytes, std::function<void(std::uint64_t)> done);
  // The same for a thread (SC_THREAD), which waits.
  std::uint64_t mmio_read(std::uint32_t offset, std::uint32_t bytes);
  // Configuration requests are little-endian and not posted: the calling thread waits.
  std::uint32_t config_read(std::uint16_t offset, std::uint32_t bytes);
  void config_write(std::uint16_t offset, std::uint32_t bytes, std::uint32_t value);
  // The same at the device, which takes no time. False: the device refused.
  bool config_request(CpuRequest::Kind kind, std::uint16_t offset, std::span<std::byte> data);

  // --- Pages on demand: messages to the device, which take the time of a posted write.
  void respond(const PageResponse& response);
  // Answered by `invalidated`: at once by a device that holds no translations.
  void invalidate(const PageInvalidation& invalidation);

  // --- What the device did, at the time it did it.
  Output<PageRequest> page_requested;   // these two are bound by the kernel
  Output<std::uint32_t> invalidated;    // the tag
  Output<std::uint32_t> interrupt;      // vector; bound by the kernel
  trace::Point<CpuRequest> requested;   // a request for configuration space when it reaches the device
  trace::Point<MmioCarried> carried;    // before the device acts on it
  trace::Point<DmaRead> dma_read;
  trace::Point<DmaWrite> dma_written;   // after the bytes are in memory
  trace::Point<Interrupt> interrupts;   // before the kernel handles it
  trace::Point<Interrupt> interrupted;  // after the kernel handled it
  trace::Point<MmioAnswered> answered;  // before the CPU goes on

  Iommu& iommu() { return iommu_; }
  // Where the IOMMU looks for what the device asks without a process's PASID.
  Pasid own_domain() const { return Iommu::own_domain(function_); }
  const RootComplexCounters& counters() const { return counters_; }
  const IommuCounters& iommu_counters() const { return iommu_.counters(function_); }  // of the device's requests

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
  // On its way from the CPU.
  struct Access {
    std::uint32_t offset;
    std::uint16_t bytes;
    bool reads;
    Duration stored;
    Payload data{};              // of a write
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
  Fifo<std::function<void(std::uint64_t)>> readers_;  // in the order of the reads that travel
  StorePath path_;
  DeviceBar* device_ = nullptr;
  tlm::tlm_generic_payload message_;
  tlm::tlm_generic_payload request_;   // one for all of the CPU's: the device answers at once, and makes none meanwhile
  RootComplexCounters counters_;
};

}  // namespace rnicsim::host
