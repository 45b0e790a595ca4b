// SPDX-License-Identifier: Apache-2.0
// The PCI Express endpoint: BAR0 (registers, MSI-X, UAR pages) and configuration space as TLM-2.0 targets, and the path
// to host memory as an initiator. Requests take no time here: the CPU's side and the DMA unit account for it.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/kernel.h"
#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/pcie/msix.h"
#include "model/nic/pcie/pci_config.h"
#include "model/nic/pcie/pcie_endpoint_params.h"
#include "model/nic/personality/personality.h"
#include "model/nic/seam/refusal.h"

namespace rnicsim::nic {

// Memory on the device that the BAR shows. Accesses at the present time; false: out of range, or not whole words.
class BarMemory {
 public:
  virtual bool store(std::uint64_t offset, std::span<const std::byte> data) = 0;
  virtual bool load(std::uint64_t offset, std::span<std::byte> out) = 0;

 protected:
  ~BarMemory() = default;
};

struct UarWrite {
  std::uint32_t page;
  std::uint32_t offset;  // in the page
  std::span<const std::byte> data;
};

// A request of the CPU to the device.
struct HostAccess {
  enum class Space : std::uint8_t { config, bar };
  Space space;
  bool write;
  std::uint64_t offset;
  std::span<const std::byte> bytes;  // a read: not filled in yet
};
struct HostAnswer {  // the answer to a read
  HostAccess::Space space;
  std::uint64_t offset;
  std::span<const std::byte> bytes;
  bool accepted;
};

struct InterruptRaised {
  enum class Outcome : std::uint8_t { sent, pending, lost };  // pending: masked; lost: MSI-X is disabled
  std::uint32_t vector;
  Outcome outcome;
};

struct FunctionReset {};

class PcieEndpoint : public sc_core::sc_module, public HostMemory, public DeviceBar {
 public:
  // `features`: value of the feature register; `facts`: values for configuration space.
  PcieEndpoint(sc_core::sc_module_name name, const PcieEndpointParams& params, const DeviceFeatures& features,
               const Personality& personality, const FunctionFacts& facts = {});

  tlm_utils::simple_target_socket<PcieEndpoint> bar{"bar"};
  tlm_utils::simple_target_socket<PcieEndpoint> config{"config"};
  tlm_utils::simple_initiator_socket<PcieEndpoint> dma{"dma"};

  // Memory of the host, if `dma` ends at a root complex of this project: called directly; other requests still use
  // `dma`.
  void reach(HostMemory& memory) { host_ = &memory; }
  // Memory of the device.
  void reach(BarMemory& memory) { own_memory_ = &memory; }

  // Accesses to BAR0 from a root complex of this project, without TLM.
  bool read_bar(std::uint64_t offset, std::span<std::byte> bytes) override;
  bool write_bar(std::uint64_t offset, std::span<const std::byte> bytes) override;

  trace::Point<Refusal> refusal;
  trace::Point<HostAccess> accessed;  // before the access has an effect
  trace::Point<HostAnswer> read_answered;
  trace::Point<InterruptRaised> raised;
  trace::Point<FunctionReset> was_reset;

  Output<UarWrite> uar_written;
  Output<std::uint64_t> memory_written;    // bytes written to device memory
  Output<std::uint32_t> command_doorbell;  // a bit for each entry
  Output<> function_reset;
  Output<std::uint32_t> unmasked;  // a pending vector that was unmasked

  // Host memory, at the present time. False: completer abort, or bus mastering is off.
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool answers(Pasid pasid) const override { return host_ == nullptr || host_->answers(pasid); }
  bool peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  // The physical address, by ATS; nullopt: the host does not report it, or bus mastering is off.
  std::optional<std::uint64_t> translate(Pasid pasid, std::uint64_t address);
  // --- Pages on demand. A page's translation by ATS; a host without ATS reports it as not present.
  PageTranslation translate_page(Pasid pasid, std::uint64_t address);
  bool request_page(const PageRequest& request);  // false: the host will not answer
  void tell_invalidated(std::uint32_t tag);
  Output<PageResponse> page_response;
  Output<PageInvalidation> page_invalidation;
  // The interrupt message of `vector`; nullopt: masked (then pending) or MSI-X disabled.
  std::optional<MsixMessage> interrupt(std::uint32_t vector);

  void set_status(DeviceStatus status) { status_ = status; }
  // Refuses doorbells and commands until a reset.
  void fail(HealthSyndrome why);
  // A block cannot continue. No effect while bus mastering is off, since the driver has stopped the device.
  void internal_error(HealthSyndrome why);
  Output<HealthSyndrome> failed;
  DeviceStatus status() const { return status_; }
  bool memory_enabled() const { return config_space_.memory_enabled(); }
  std::uint64_t command_queue() const { return command_queue_; }
  std::uint64_t clock() const;
  std::uint32_t core_clock_khz() const { return params_.core_clock_khz; }
  const PcieEndpointCounters& counters() const { return counters_; }

 private:
  void access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void access_config(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  bool answer(bool ok, Refusal::What what, std::uint64_t offset);
  void set_request(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::byte* data, std::size_t bytes);
  bool store(std::uint64_t offset, std::span<const std::byte> data);
  bool load(std::uint64_t offset, std::span<std::byte> out) const;
  bool write_register(std::uint32_t offset, std::span<const std::byte> data);
  DeviceRegisters registers() const;
  std::uint32_t health_counter() const;
  void announce_unmasked();
  bool take_message(const PageMessageExtension& message);
  bool send_message(Pasid pasid);
  bool may_ask(Counter& requests, Refusal::What what, std::uint64_t address);
  bool answered(bool ok);
  bool ask(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::byte* data, std::size_t bytes);
  void reset();

  const PcieEndpointParams params_;
  const Personality& personality_;
  const PciFunction& function_;
  const DeviceFeatures features_;
  PciConfig config_space_;
  MsixTable msix_;
  std::uint64_t command_queue_ = 0;
  bool misaligned_ = false;  // the last refused write had a misaligned command queue address
  DeviceStatus status_ = DeviceStatus::initializing;
  HealthSyndrome syndrome_ = HealthSyndrome::none;
  std::uint32_t last_health_ = 0;  // value of the health counter when the device failed
  HostMemory* host_ = nullptr;
  BarMemory* own_memory_ = nullptr;
  // One object for all transfers: they take no time, so none overlap, and construction is expensive.
  tlm::tlm_generic_payload request_;
  tlm::tlm_generic_payload translation_;
  tlm::tlm_generic_payload message_;
  PcieEndpointCounters counters_;
};

}  // namespace rnicsim::nic
