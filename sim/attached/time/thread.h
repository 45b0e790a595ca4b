// SPDX-License-Identifier: Apache-2.0
// A thread of an attached process, as the time keeper sees it. docs/virtual-time.md has a table of the states and
// their transitions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/units.h"
#include "sim/attached/processes/pending_signals.h"
#include "sim/attached/time/parked_loop.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class Process;

enum class ThreadState : std::uint8_t {
  free,                  // the slot has no thread
  starting,              // the slot has a number, but the real thread does not run yet
  due,                   // runs, or its call is executed, when simulated time reaches `at`
  running,               // has the turn: simulated time stands still
  polling,               // parked in a loop of looks (empty polls, yields) until a look may see something new
  spinning,              // proved to wait for memory: until the device writes to the process, or until `at`, when other
                         // threads may have stored something
  sleeping,              // until `at`; without `at` until an event
  awaiting_descriptors,  // until a descriptor is ready, or `at`
  awaiting_address,      // until a wake-up at the address, or `at`
  awaiting_child,
  awaiting_signal,  // until a wanted signal arrives, or `at`
  awaiting_ipc,     // until a System V semaphore or message queue lets the thread continue, or `at`
  awaiting_device,  // until the answer to a command or an MMIO read
  awaiting_peer,    // until the peer's host answers connect()
  in_real_kernel,   // blocked in a system call that the simulator does not know; other threads continue
};

const char* to_string(ThreadState state);

struct WatchedDescriptor {
  Descriptor fd;
  short events;
};

// A word in a shared mapping, named by its file so that processes with different addresses find the same word.
struct SharedWord {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  bool operator==(const SharedWord&) const = default;
};

// Event that ends the wait of a thread, by kind.
struct WaitForDescriptors {
  std::vector<WatchedDescriptor> watched;
  const Descriptor* pipe = nullptr;  // pipe of an event channel, to which only the simulator writes
};
struct WaitForAddress {
  std::uint64_t address = 0;
  std::optional<SharedWord> shared_word;  // set while other processes may wake the thread
  std::uint64_t ticket = 0;               // order of arrival at the address
};
struct WaitForChild {
  std::uint32_t number = 0;   // of the process; 0: any child
  std::uint64_t options = 0;  // of waitid(2)
};
struct WaitForSignal {
  SignalSet wanted = 0;
};
struct WaitForIpc {
  std::uint64_t number = 0;  // of the wait
};
using Wait = std::variant<std::monostate, WaitForDescriptors, WaitForAddress, WaitForChild, WaitForSignal, WaitForIpc>;

struct Thread {
  Process* process = nullptr;
  std::uint32_t index = 0;
  ThreadState state = ThreadState::free;
  // Signals to raise at the start of the next turn; they end the thread's wait.
  std::deque<abi::SignalRecord> due_signals;
  PendingSignals pending_signals;   // blocked signals that were sent to this thread alone
  bool call_pending = false;        // in state `due`: the slot's call is executed before the thread resumes
  std::optional<Duration> at;       // time of the next turn, or deadline of a wait
  bool held = false;                // `at` was reached while the process was stopped
  std::optional<Duration> off_cpu;  // begin of a wait that needs no processor
  Duration idle_since;              // the last act other than a read of a clock
  bool looked_again = false;        // the turn began only because another thread may have stored something
  std::optional<ParkedLoop> loop;   // set while the thread is parked in a loop
  std::uint64_t seen_memory_writes = 0;
  std::uint64_t changes = 0;  // turns that began after others may have written memory that the thread reads
  std::uint64_t seen_stores = 0;
  std::uint32_t waits_in_vain = 0;  // waits that ended by their deadline since progress `seen_progress`
  std::uint64_t seen_progress = 0;
  ThreadState last_wait = ThreadState::free;  // state of the last such wait
  Wait wait;                                  // as `state` says; empty in other states
  // Affinity as the program sets and reads it; Processors chooses the real processor. nullopt: all processors.
  std::optional<abi::ProcessorSet> affinity;
  bool asked_to_move = false;  // the affinity was set, and the thread has had no turn since
};

}  // namespace rnicsim::sim
