// SPDX-License-Identifier: Apache-2.0
// The kernel's driver of the device: bring-up, commands one after the other, context memory lent on demand, event
// queues. Functions marked `Waits` must be called from one SC_THREAD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/command.h"
#include "model/host/gids.h"
#include "model/host/host_params.h"
#include "model/host/memory/kernel_memory.h"
#include "model/host/root_complex.h"
#include "verbs/provider/command_queue.h"
#include "verbs/provider/event_ring.h"
#include "verbs/provider/uar.h"

namespace rnicsim::host {

class Driver {
 public:
  // EQ n raises MSI-X vector n + 1; vector 0 signals completed commands.
  static constexpr std::uint32_t kAsyncEqn = 0;
  static constexpr std::uint32_t kFirstCompletionEqn = 1;

  Driver(const HostParams& params, RootComplex& root_complex);
  ~Driver();

  // Waits. Throws std::runtime_error with the reason if the device cannot be used.
  void bring_up(std::span<const Gid> gids, const Mac& mac);

  // Waits. `output`: the part of the output mailbox that the command defines.
  struct Answer {
    abi::CommandStatus status;
    std::vector<std::byte> output;
  };
  Answer execute(std::span<const std::byte> input);
  // Waits. Throws std::runtime_error with `what` and the status if the device refuses.
  Answer must_execute(std::span<const std::byte> input, const char* what);
  // The same for a mailbox that creates an object; lends memory for the object's context first.
  void create(abi::IcmTable table, std::uint32_t index, std::span<const std::byte> input, const char* what);

  // Waits. Lends the device memory for this context, unless done before; false: no memory is left.
  bool lend(abi::IcmTable table, std::uint32_t index);
  // Waits. Lends memory for the MTT entries of these pages and writes the addresses; false: no memory is left.
  bool write_pages(std::uint32_t first, std::uint32_t count, std::uint64_t bus_address, ByteCount size);

  // Pinned kernel memory. Throws std::runtime_error if none is left.
  provider::DmaBuffer allocate(std::size_t bytes);
  provider::Uar& uar() { return uar_; }
  const abi::DeviceCapabilities& capabilities() const { return capabilities_; }
  const abi::PortAttributes& port() const { return port_; }

  // Handles an interrupt: takes every event of the vector's queue, then arms the queue again.
  void interrupt(std::uint32_t vector, const std::function<void(const abi::Eqe&)>& event);

 private:
  std::uint32_t chunk_entries(abi::IcmTable table) const;
  void start_command_queue();
  void create_event_queue(std::uint32_t eqn);

  const HostParams params_;
  RootComplex& root_complex_;
  KernelMemory memory_;
  provider::Mmio mmio_;
  provider::Uar uar_;
  std::optional<provider::CommandQueue> commands_;
  std::vector<provider::EventRing> events_;                                      // by eqn
  std::map<std::pair<abi::IcmTable, std::uint32_t>, provider::DmaBuffer> lent_;  // by table and first index of the
                                                                                 // chunk
  abi::DeviceCapabilities capabilities_;
  abi::PortAttributes port_;
  sc_core::sc_event command_done_{"command_done"};
};

}  // namespace rnicsim::host
