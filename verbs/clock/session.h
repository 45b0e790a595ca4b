// This process's place on its simulated host: the connection to the simulator and what it shares with it.
// `attach` (attach.h) makes it.
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
  // Of all hosts.
  std::span<const abi::NetworkInterface> interfaces() const {
    return {reinterpret_cast<const abi::NetworkInterface*>(control + abi::kInterfaceTable), header().interface_count};
  }
  // Of this host's device with that number; nullptr: it has none.
  const abi::NetworkInterface* own_interface(std::uint32_t device) const {
    for (const abi::NetworkInterface& each : interfaces())
      if (each.host == header().host_index && each.device == device) return &each;
    return nullptr;
  }
};

extern Session the_session;

// The session, or nullptr: there is no simulator (kSocketVariable is not set) or it went away.
inline Session* session() { return the_session.attached ? &the_session : nullptr; }
// By these the process is attached, and its next images find the libraries: not the program's, which finds them closed.
inline bool is_kept(int fd) {
  return the_session.attached && (fd == the_session.socket || fd == abi::kLibraryDescriptor);
}
// True when this process's clock is the simulation's.
inline bool simulated() {
  return the_session.attached && (the_session.header().features & abi::attach_feature::kSimulatedTime) != 0;
}

// The simulator wants each look of a thread to take a turn (timed_look.h).
inline bool follows_no_loops() { return (the_session.header().features & abi::attach_feature::kEachLook) != 0; }

// The calling thread's slot; nullptr: a thread that the simulator does not know.
extern constinit thread_local abi::ThreadSlot* slot_of_thread;
inline abi::ThreadSlot*& own_slot() { return slot_of_thread; }

// What this process runs under (RNICSIM_TOOL): neither lets it single-step itself.
enum class Tool { none, gdb, valgrind };
Tool tool();
void find_tool();  // signal handlers ask: found before they are installed, not at first use

// What a new image of this process, or a child, finds the simulator by: the variables as they were at its start,
// whatever the program made of its environment since (launchers hand on that of another host).
inline constexpr const char* kVariables[] = {"LD_PRELOAD", "LD_LIBRARY_PATH", abi::kSocketVariable, abi::kHostVariable,
                                             abi::kLibrariesVariable};
const char* variable(const char* name);  // nullptr: it was not set
void keep_variables();

// Descriptors that go with the next call, and those that came with its answer.
bool send_descriptors(std::span<const int> descriptors);
int receive_descriptor();

// A line on standard error, then exit status 125.
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace rnicsim::clock
