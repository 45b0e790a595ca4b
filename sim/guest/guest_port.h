// The seam between a NIC and a virtual machine: requests of the virtual machine to the PCI function, and requests of
// the function to the guest's memory and interrupts. Each protocol is a file that calls this seam. No request takes
// simulated time.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/base/pcie.h"
#include "model/base/stats.h"
#include "sim/guest/guest_memory.h"

namespace rnicsim::sim {

class Adapter;

struct GuestCounters {
  Counter config_accesses = 0;
  Counter bar_accesses = 0;
  Counter interrupts = 0;
  Counter dma_refused = 0;
};

class GuestPort : public sc_core::sc_module, private HostMemory {
 public:
  // Construct before the simulation starts. `adapter` is in a guest (Adapter::in_guest()).
  GuestPort(sc_core::sc_module_name name, Adapter& adapter);

  const std::string& label() const;

  // --- Requests of the guest, between two runs of the simulation. False: the device refused; a read returns ones.
  bool read_config(std::uint32_t offset, std::span<std::byte> bytes);
  bool write_config(std::uint32_t offset, std::span<const std::byte> bytes);
  bool read_bar(std::uint64_t offset, std::span<std::byte> bytes);
  bool write_bar(std::uint64_t offset, std::span<const std::byte> bytes);
  void reset();  // function-level
  std::uint64_t bar_address();      // of BAR0, as the guest set it
  std::uint64_t function_resets();  // of any cause
  GuestMemory& memory() { return memory_; }

  // --- Requests to the guest. An interrupt has address and data of the vector's entry in the MSI-X table.
  std::function<void(std::uint64_t address, std::uint32_t data)> interrupt;
  // Prints a line about the guest by `say`, for one client a limited number.
  void complain(const std::string& what);
  std::function<void(const std::string& line)> say;  // on standard error
  // When a client connects or disconnects: unmaps all memory and resets the function.
  void clear();

  const GuestCounters& counters() const { return counters_; }

 private:
  bool read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) override;
  bool look(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) override;
  bool judge(GuestMemory::Answer answer, const char* what, std::uint64_t address, std::size_t bytes);
  bool in_guest(Pasid pasid, const char* what, std::uint64_t address, std::size_t bytes);
  void serve_device(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  bool access(tlm_utils::simple_initiator_socket<GuestPort>& socket, tlm::tlm_command command, std::uint64_t address,
              std::span<std::byte> bytes);

  Adapter& adapter_;
  tlm_utils::simple_initiator_socket<GuestPort> bar_{"bar"};
  tlm_utils::simple_initiator_socket<GuestPort> config_{"config"};
  tlm_utils::simple_target_socket<GuestPort> upstream_{"upstream"};
  GuestMemory memory_;
  GuestCounters counters_;
  unsigned complaints_ = 0;
};

}  // namespace rnicsim::sim
