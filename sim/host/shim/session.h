// SPDX-License-Identifier: Apache-2.0
// This process's place on its simulated host: the connection to the simulator, and the memory that they share. attach()
// (attach.h) makes it.
#pragma once

#include <cstdint>
#include <span>

#include "model/abi/attach.h"

namespace rnicsim::clock {

struct Session {
  bool attached = false;
  int socket = -1;
  std::byte* control = nullptr;
  std::byte* memory = nullptr;  // DMA memory
  std::uint64_t memory_bytes = 0;

  abi::ControlHeader& header() const { return *reinterpret_cast<abi::ControlHeader*>(control + abi::kControlHeader); }
  abi::ThreadSlot& slot(std::uint32_t index) const {
    return reinterpret_cast<abi::ThreadSlot*>(control + abi::kThreadSlots)[index];
  }
  // Interfaces of all hosts.
  std::span<const abi::NetworkInterface> interfaces() const {
    return {reinterpret_cast<const abi::NetworkInterface*>(control + abi::kInterfaceTable), header().interface_count};
  }
  // Interface of this host's device number `device`; nullptr: no such device.
  const abi::NetworkInterface* own_interface(std::uint32_t device) const {
    for (const abi::NetworkInterface& each : interfaces())
      if (each.host == header().host_index && each.device == device) return &each;
    return nullptr;
  }
};

extern Session the_session;

// The session; nullptr: the process is not attached (kSocketVariable is not set).
inline Session* session() { return the_session.attached ? &the_session : nullptr; }
// True: a descriptor that this library needs, for the connection to the simulator or for the libraries of the next
// image. To the program these descriptors are closed.
inline bool is_kept(int fd) {
  return the_session.attached && (fd == the_session.socket || fd == abi::kLibraryDescriptor);
}
// True: this process's clock is the simulation's.
inline bool simulated() {
  return the_session.attached && (the_session.header().features & abi::attach_feature::kSimulatedTime) != 0;
}

// True: each look of a thread takes a turn (timed_look.h).
inline bool follows_no_loops() { return (the_session.header().features & abi::attach_feature::kEachLook) != 0; }

// The calling thread's slot; nullptr: a thread that the simulator does not know.
extern constinit thread_local abi::ThreadSlot* slot_of_thread;
inline abi::ThreadSlot*& own_slot() { return slot_of_thread; }

// The tool that this process runs under (RNICSIM_TOOL). Under gdb and valgrind a process cannot single-step itself.
enum class Tool { none, gdb, valgrind };
Tool tool();
void find_tool();  // before signal handlers are installed: they use tool()

// The environment variables by which a new image or a child finds the simulator. Their values at the process's start
// are kept, because the program may change its environment (launchers copy that of another host).
inline constexpr const char* kVariables[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", abi::kSocketVariable, abi::kHostVariable,
                                             abi::kLibrariesVariable};
const char* variable(const char* name);  // nullptr: it was not set
void keep_variables();

// Sends descriptors that go with the next call. Receives one that came with the last call's answer; -1: none.
bool send_descriptors(std::span<const int> descriptors);
int receive_descriptor();

// Writes a line to standard error, and exits with status 125.
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace rnicsim::clock
