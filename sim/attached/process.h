// A real process that runs on a simulated host: its identity and what it shares with the simulator.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/kernel.h"
#include "model/base/pcie.h"
#include "model/base/units.h"
#include "sim/attached/process_memory.h"
#include "sim/attached/shared_memory.h"
#include "sim/attached/signal_watch.h"
#include "sim/attached/thread.h"
#include "sim/attached/timer.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class Process {
 public:
  struct Identity {
    std::uint32_t host = 0;
    std::uint32_t order = 0;        // of attaching, on this simulator: breaks ties of time
    pid_t pid = 0;                  // real
    std::uint32_t virtual_pid = 0;
    std::string program;
  };

  Process(Identity identity, Descriptor socket);

  const Identity& identity() const { return identity_; }
  std::string label() const;        // "h0 ib_write_lat (pid 1001)"
  abi::ControlHeader& header() const;
  abi::ThreadSlot& slot(std::uint32_t index) const;
  const SharedMemory& control() const { return *control_; }
  const SharedMemory& memory() const { return *memory_; }
  ProcessMemory& address_space() const { return *address_space_; }  // its image's
  int socket() const { return socket_.get(); }
  bool has_exited() const { return address_space_->has_exited(); }  // the real process is gone (a zombie counts)
  void kill() const;
  std::optional<std::string> disturbance() const;  // it did what makes a run not reproducible, and what

  // Death: the descriptors go; the control region stays for whoever is looking at it, and the DMA memory until
  // forget_memory().
  void release();
  // How many images exec has replaced. The DMA memory of an image goes when the device has destroyed the image's
  // objects: until then it answers peers out of the rings there.
  std::size_t image() const { return former_.size(); }
  void forget_memory(std::size_t image);
  // exec: a new image of the same process said hello on `socket`; what the old one shared is forgotten.
  void replace_image(Descriptor socket, std::string program);

  // --- Descriptors beside a call.
  // Those that came with the call of this thread: all that were announced, or none.
  std::vector<Descriptor> receive_descriptors(std::uint32_t slot);
  bool send_descriptor(int fd);
  void drain_kicks();               // real time: messages that only woke us

  // --- Bookkeeping of the time keeper and the system calls.
  Pasid pasid = 0;
  std::deque<Thread> threads;       // by slot index; a dead one's place is used again
  std::map<std::uint32_t, std::shared_ptr<Timer>> timers;
  std::uint32_t next_timer = kAlarmTimer + 1;
  PendingSignals pending_signals;   // that all its threads block
  std::map<std::uint32_t, SignalWatch> signal_watches;
  SignalSet outside_signals = 0;    // that wait in the real kernel, as far as a watch shows them
  std::uint64_t memory_writes = 0;  // DMA writes into the process, and interrupts for it
  std::optional<Duration> ring_written;  // when the device last wrote into its DMA memory
  std::uint64_t stores = 0;         // turns of its threads that may have stored something
  // By device and number: kept, so that no later file is taken for a context's.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Descriptor> contexts;
  // The files of XRC domains, for the same reason.
  std::multimap<std::pair<std::uint32_t, std::uint32_t>, Descriptor> domains;
  // Of its event channels, by device and number: the pipes' ends to write to.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<Descriptor>> channels;
  bool alive = true;
  bool stopped = false;             // by a signal: its threads get no turn
  Duration ended_threads_time;      // of the CPU, in all its images
  int child_status = 0;             // as its parent may wait for it: stopped, or going on; 0: it knows
  Process* parent = nullptr;
  // As getppid() tells it: init takes the orphans.
  std::uint32_t parent_pid() const { return parent != nullptr && parent->alive ? parent->identity().virtual_pid : 1; }

 private:
  std::size_t unread_messages() const;
  bool receive_message();
  void share_memory();

  Identity identity_;
  Descriptor socket_;
  Descriptor pid_descriptor_;
  std::unique_ptr<SharedMemory> control_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<ProcessMemory> address_space_;
  struct Image {
    std::unique_ptr<SharedMemory> memory;
    std::unique_ptr<ProcessMemory> address_space;
  };
  std::vector<Image> former_;  // that exec replaced: the device may still ask
  std::map<std::uint32_t, std::vector<Descriptor>> descriptors_;  // arrived, by slot
};

// Ties of time: host, then process in order of attaching, then thread.
inline auto rank_of(const Thread& thread) {
  const Process::Identity& identity = thread.process->identity();
  return std::tuple(identity.host, identity.order, thread.index);
}

// The answer of a call: 0 or an errno. True: it is answered.
inline bool answer(abi::ThreadSlot& slot, int error) {
  slot.error = error;
  return true;
}

template <class Value>
void put_output(abi::ThreadSlot& slot, const Value& value) {
  static_assert(sizeof(Value) <= sizeof slot.output);
  std::memcpy(slot.output, &value, sizeof value);
}

// Of a call: as far ahead as can be counted.
inline Duration duration(std::uint64_t ps) { return {std::int64_t(std::min<std::uint64_t>(ps, INT64_MAX / 2))}; }

inline abi::ThreadSlot& slot_of(const Thread& thread) { return thread.process->slot(thread.index); }
// Shared memory is the program's to scribble on: no clock is further ahead of the world than this.
inline constexpr Duration kMostAhead{3600 * std::int64_t{1'000'000'000'000}};
inline Duration clock_of(const Thread& thread) {
  return {std::int64_t(std::min(slot_of(thread).now, std::uint64_t((now() + kMostAhead).ps)))};
}

}  // namespace rnicsim::sim
