// SPDX-License-Identifier: Apache-2.0
// The seam between a PCI function of a SystemC model and a virtual machine: requests of the virtual machine to the
// function, and requests of the function to the guest's memory and interrupts. Each protocol is a file that calls this
// seam. No request takes simulated time.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "sim/guest/transactor/guest_memory.h"

namespace rnicsim::sim {

// A PCI function, with sockets as of device::Device (model/device/device.h). The function has one memory BAR, BAR0, and
// MSI-X with its table there. `dma` reaches the guest's memory with PASID 0 or without a PASID; a write of 4 bytes to
// 0xfee00000 .. 0xfeefffff is an interrupt.
struct GuestFunction {
  std::string label;  // in messages
  tlm::tlm_target_socket<>& config;
  tlm::tlm_target_socket<>& bar;
  tlm::tlm_initiator_socket<>& dma;
  std::uint64_t bar_bytes;            // a power of 2
  std::uint32_t config_bytes = 4096;  // 256 or 4096
};

struct GuestCounters {
  Counter config_accesses = 0;
  Counter bar_accesses = 0;
  Counter interrupts = 0;
  Counter dma_refused = 0;
};

class GuestPort : public sc_core::sc_module, private HostMemory {
 public:
  // Construct before the simulation starts.
  GuestPort(sc_core::sc_module_name name, const GuestFunction& function);

  const std::string& label() const { return function_.label; }
  std::uint64_t bar_bytes() const { return function_.bar_bytes; }
  std::uint32_t config_bytes() const { return function_.config_bytes; }
  // The guest's memory for a device that accesses memory by calls and not by the socket `dma`.
  HostMemory& host_memory() { return *this; }

  // --- Requests of the guest, between two runs of the simulation. False: the device refused; a read returns ones.
  bool read_config(std::uint32_t offset, std::span<std::byte> bytes);
  bool write_config(std::uint32_t offset, std::span<const std::byte> bytes);
  bool read_bar(std::uint64_t offset, std::span<std::byte> bytes);
  bool write_bar(std::uint64_t offset, std::span<const std::byte> bytes);
  void reset();                 // function-level reset
  std::uint64_t bar_address();  // address of BAR0, as the guest set it
  std::uint64_t function_resets() const { return function_resets_; }
  // The function's MSI-X capability; without one there are 0 vectors.
  struct Msix {
    std::uint32_t control = 0;  // the offset of Message Control
    std::uint32_t vectors = 0;
    std::uint64_t table = 0;  // offset in BAR0
  };
  const Msix& msix();
  GuestMemory& memory() { return memory_; }

  // --- Requests to the guest. An interrupt has address and data of the vector's entry in the MSI-X table.
  std::function<void(std::uint64_t address, std::uint32_t data)> interrupt;
  // Prints a line about the guest by `say`. The number of lines for each client is limited.
  void complain(const std::string& what);
  std::function<void(const std::string& line)> say;  // default: prints on standard error
  // When a client connects or disconnects: unmaps all memory and resets the function.
  void clear();

  const GuestCounters& counters() const { return counters_; }

 private:
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool validate(GuestMemory::Answer answer, const char* what, std::uint64_t address, std::size_t bytes);
  bool in_guest(Pasid pasid, const char* what, std::uint64_t address, std::size_t bytes);
  void serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void translate(tlm::tlm_generic_payload& request, TranslationExtension& translation);
  std::uint32_t config_word(std::uint32_t offset);
  std::optional<std::uint32_t> capability(std::uint8_t id);
  std::optional<std::uint32_t> device_control();
  bool access(tlm_utils::simple_initiator_socket<GuestPort>& socket, tlm::tlm_command command, std::uint64_t address,
              std::span<std::byte> bytes);

  const GuestFunction function_;
  tlm_utils::simple_initiator_socket<GuestPort> bar_{"bar"};
  tlm_utils::simple_initiator_socket<GuestPort> config_{"config"};
  tlm_utils::simple_target_socket<GuestPort> upstream_{"upstream"};
  GuestMemory memory_;
  GuestCounters counters_;
  std::uint64_t function_resets_ = 0;
  std::optional<Msix> msix_;  // nullopt: not read yet
  unsigned complaints_ = 0;
};

}  // namespace rnicsim::sim
