// SPDX-License-Identifier: Apache-2.0
// A real process on a simulated host: its identity, and the memory and descriptors that it shares with the simulator.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
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
#include "sim/attached/processes/process_memory.h"
#include "sim/attached/processes/shared_memory.h"
#include "sim/attached/processes/signal_watch.h"
#include "sim/attached/time/thread.h"
#include "sim/attached/time/timer.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class Process {
 public:
  struct Identity {
    std::uint32_t host = 0;
    std::uint32_t order = 0;  // counts attached processes; breaks ties of time
    pid_t pid = 0;            // real
    std::uint32_t virtual_pid = 0;
    std::string program;
  };

  Process(Identity identity, Descriptor socket);

  const Identity& identity() const { return identity_; }
  std::string label() const;  // "ib_write_lat (pid 1001)", with the virtual process number
  abi::ControlHeader& header() const;
  abi::ThreadSlot& slot(std::uint32_t index) const;
  const SharedMemory& control() const { return *control_; }
  const SharedMemory& memory() const { return *memory_; }
  ProcessMemory& address_space() const { return *address_space_; }  // the present image's
  int socket() const { return socket_.get(); }
  bool has_exited() const { return address_space_->has_exited(); }  // true for a zombie, too
  void kill() const;
  std::optional<std::string> disturbance() const;  // an act that makes the run not reproducible; nullopt: none

  // After the process's death: closes its descriptors. The control region stays mapped for readers; the DMA memory
  // stays until forget_memory().
  void release();
  // Number of images that exec has replaced. The DMA memory of an image stays until the device has destroyed the
  // image's objects: until then the device reads rings there.
  std::size_t image() const { return former_.size(); }
  void forget_memory(std::size_t image);
  // exec: a new image of this process said hello on `socket`. The contexts, descriptors and threads of the old image
  // go.
  void replace_image(Descriptor socket, std::string program);

  // --- Descriptors that are sent with a call.
  // Descriptors that came with the call of this thread: all that were announced, or none.
  std::vector<Descriptor> receive_descriptors(std::uint32_t slot);
  bool send_descriptor(int fd);
  void drain_kicks();  // real time: drops messages that were sent only to wake the simulator

  // --- State of TimeKeeper and SystemCalls.
  Pasid pasid = 0;
  std::deque<Thread> threads;  // by slot index; the slot of an ended thread is used again
  std::map<std::uint32_t, std::shared_ptr<Timer>> timers;
  std::uint32_t next_timer = kAlarmTimer + 1;
  PendingSignals pending_signals;  // blocked by all threads of the process
  std::map<std::uint32_t, SignalWatch> signal_watches;
  SignalSet outside_signals = 0;         // pending in the real kernel, as far as a signalfd shows them
  std::uint64_t memory_writes = 0;       // DMA writes to the process, and interrupts for the process
  std::optional<Duration> ring_written;  // last DMA write to the process's DMA memory
  std::uint64_t stores = 0;              // turns of threads of the host that may have stored something
  // By device and number. The file stays open so that no later file gets the inode by which contexts are known.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Descriptor> contexts;
  // Files of XRC domains, open for the same reason.
  std::multimap<std::pair<std::uint32_t, std::uint32_t>, Descriptor> domains;
  // Write ends of the event channels' pipes, by device and number.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::shared_ptr<Descriptor>> channels;
  bool alive = true;
  bool stopped = false;         // by a signal: the process's threads get no turn
  Duration ended_threads_time;  // CPU time of ended threads, of all images
  int child_status = 0;         // wait status of a stop or a SIGCONT that the parent has not waited for; 0: none
  Process* parent = nullptr;
  // As getppid() returns it: init (1) adopts orphans.
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
  std::vector<Image> former_;  // images that exec replaced; the device may still access their memory
  std::map<std::uint32_t, std::vector<Descriptor>> descriptors_;  // received and not taken yet, by slot
};

// Order of threads at equal times: host, then process in order of attaching, then thread.
inline auto rank_of(const Thread& thread) {
  const Process::Identity& identity = thread.process->identity();
  return std::tuple(identity.host, identity.order, thread.index);
}

// Sets the result of a call, 0 or an errno. Returns true: the call is answered.
inline bool answer(abi::ThreadSlot& slot, int error) {
  slot.error = error;
  return true;
}

template <class Value>
void put_output(abi::ThreadSlot& slot, const Value& value) {
  static_assert(sizeof(Value) <= sizeof slot.output);
  std::memcpy(slot.output, &value, sizeof value);
}

// A time in a slot, in ps. The bound keeps sums with it in range.
inline Duration duration(std::uint64_t ps) { return {std::int64_t(std::min<std::uint64_t>(ps, INT64_MAX / 2))}; }

inline abi::ThreadSlot& slot_of(const Thread& thread) { return thread.process->slot(thread.index); }
// A program may write any value into shared memory: a thread's clock is at most one hour ahead of simulated time.
inline constexpr Duration kMostAhead{3600 * std::int64_t{1'000'000'000'000}};
inline Duration clock_of(const Thread& thread) {
  return {std::int64_t(std::min(slot_of(thread).now, std::uint64_t((now() + kMostAhead).ps)))};
}

// Finds the thread again when its call is answered later. The function returns nullptr when the thread no longer waits
// in `state`.
std::function<Thread*()> waiting_thread(Thread& thread, ThreadState state);

}  // namespace rnicsim::sim
