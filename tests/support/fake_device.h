// SPDX-License-Identifier: Apache-2.0
// A device that accepts every command and records it. Tests look at the commands of the kernel agent.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/abi/command.h"
#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "model/base/kernel.h"
#include "model/base/pcie.h"

namespace rnicsim::testing {

class FakeDevice : public sc_core::sc_module {
 public:
  explicit FakeDevice(sc_core::sc_module_name name);

  tlm_utils::simple_target_socket<FakeDevice> bar{"bar"};
  tlm_utils::simple_target_socket<FakeDevice> config{"config"};
  tlm_utils::simple_initiator_socket<FakeDevice> dma{"dma"};

  struct Command {
    abi::CommandOpcode opcode;
    std::uint32_t object;
    std::vector<std::byte> input;
  };
  struct Store {
    Duration at;
    std::uint32_t offset;
    std::vector<std::byte> data;
  };

  // Register values and results of commands; set them before the simulation starts.
  std::uint32_t identity = std::uint32_t{abi::kPciDeviceId} << 16 | abi::kPciVendorId;
  std::uint32_t abi_version = std::uint32_t{abi::kAbiMajor} << 16;
  std::uint32_t max_mtt = 4096;
  std::map<abi::CommandOpcode, abi::CommandStatus> refused;

  // Received commands and doorbell-page writes.
  std::vector<Command> commands;
  std::vector<Store> uar_stores;

  bool transfer(tlm::tlm_command command, Pasid pasid, std::uint64_t address, std::span<std::byte> data);
  // Writes an event to the EQ and raises the interrupt.
  void raise_event(std::uint32_t eqn, abi::EventType type, std::uint32_t number);
  std::vector<abi::CommandOpcode> opcodes() const;

 private:
  void access_config(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  void access_bar(tlm::tlm_generic_payload& request, sc_core::sc_time& delay);
  std::uint64_t read_register(std::uint32_t offset) const;
  void execute(std::uint32_t slot);
  void interrupt(std::uint32_t vector);

  struct EventQueue {
    abi::Eqc context;
    std::uint32_t producer = 0;
  };

  std::array<std::byte, abi::config::kSize> config_space_{};
  std::array<std::byte, 16 * abi::kMsixVectors> msix_table_{};
  std::uint64_t command_queue_ = 0;
  bool ready_ = false;
  std::map<std::uint32_t, EventQueue> event_queues_;
};

}  // namespace rnicsim::testing
