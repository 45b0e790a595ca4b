// A thread of an attached process, as the time keeper sees it. The states and their transitions are the table of
// docs/virtual-time.md.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/units.h"
#include "sim/attached/parked_loop.h"
#include "sim/attached/pending_signals.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class Process;

enum class ThreadState : std::uint8_t {
  free,              // the slot has no thread
  starting,          // the slot is taken; the real thread does not exist yet
  due,               // runs, or its call is executed, when the simulation reaches `at`
  running,           // has the turn: the world stands still at `at`
  polling,           // in a loop of looks that was proved to wait: until one of them may see something new
  spinning,          // proved to wait for memory: until the device writes into the process, or looks again at `at`,
                     // when another thread's stores show
  sleeping,          // until `at`, if it is set
  awaiting_descriptors,  // until one of `watched` is ready, or `at`
  awaiting_address,  // until `address` is woken, or `at`
  awaiting_child,
  awaiting_signal,   // one of `wanted_signals`, until `at`
  awaiting_ipc,      // a semaphore or a message queue of System V, until `at`
  awaiting_device,   // a command or an MMIO read is on its way
  awaiting_peer,     // connects
  in_real_kernel,    // blocked in a call that the simulator does not know: holds nobody back
};

const char* to_string(ThreadState state);

struct WatchedDescriptor {
  Descriptor fd;
  short events;
};

// A word of memory that processes of a host share, in whatever mapping: by its file.
struct SharedWord {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  bool operator==(const SharedWord&) const = default;
};

struct Thread {
  Process* process = nullptr;
  std::uint32_t index = 0;
  ThreadState state = ThreadState::free;
  std::deque<abi::SignalRecord> due_signals;  // its next turn begins with them, and no wait of it goes on
  PendingSignals pending_signals;     // for this thread alone, which blocks them
  SignalSet wanted_signals = 0;
  bool call_pending = false;          // with `due`: execute the slot's call, then resume
  std::optional<Duration> at;         // when it is due, or its wait ends
  bool held = false;                  // that has come, and its process is stopped
  std::optional<Duration> off_cpu;    // since when: it waits without a processor
  Duration idle_since;                // last time it did something else than read clocks
  bool looked_again = false;          // its turn began because another thread of its process may have stored something
  std::optional<ParkedLoop> loop;     // of one that is polling
  std::uint64_t seen_memory_writes = 0;
  std::uint64_t changes = 0;          // turns before which others may have written what it reads
  std::uint64_t seen_stores = 0;
  std::uint32_t waits_in_vain = 0;  // that came to their end since the world last made progress, by `seen_progress`
  std::uint64_t seen_progress = 0;
  ThreadState last_wait = ThreadState::free;  // the last of them
  std::uint64_t address = 0;
  std::optional<SharedWord> shared_word;  // there, if other processes may wake it
  std::uint64_t wait_ticket = 0;      // order of arrival at `address`; which wait it is (awaiting_ipc)
  std::uint32_t wanted_child = 0;     // 0 = any
  std::uint64_t child_options = 0;    // as waitid(2) has them
  std::vector<WatchedDescriptor> watched;
  const Descriptor* awaited_pipe = nullptr;  // of an event channel
  // As the program asked for and is told; where it really runs is Processors' affair. Nothing: all.
  std::optional<abi::ProcessorSet> affinity;
  bool asked_to_move = false;  // to those, and has had no turn since
};

}  // namespace rnicsim::sim
