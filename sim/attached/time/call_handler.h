// SPDX-License-Identifier: Apache-2.0
// Executes the calls of threads that are not about time or threads.
#pragma once

#include <cstdint>

#include "sim/attached/processes/process.h"

namespace rnicsim::sim {

class CallHandler {
 public:
  virtual ~CallHandler() = default;
  // At the present time. True: the slot has the answer. False: the thread's state says for what the thread waits.
  virtual bool execute(Thread& thread) = 0;
  // Called after a thread gave its turn back: takes data that the thread wrote to sockets.
  virtual void collect_all(Duration at) = 0;
  virtual int descriptor() const = 0;  // readable when collect_all() has something to take
  virtual void mmio_write(Process& process, const abi::MmioWrite& write) = 0;
  virtual void milestone(Process&, const abi::Milestone&) {}
  // Earliest time at which a device of `host` may write to host memory, if no event happens in the devices before
  // `next`. quiet_until_doorbell(): if no software writes to a device before `next`.
  virtual Duration quiet_until(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual Duration quiet_until_doorbell(std::uint32_t /*host*/, Duration next) const { return next; }
  virtual void process_died(Process& process) = 0;
  virtual void process_stopped(Process&, int /*signal*/) {}  // `signal` SIGCONT: the process runs again
  // True: no descriptor is left for one more object of the program.
  virtual bool lacks_descriptors(const Process&, const char* /*what*/) { return false; }
  virtual std::uint32_t new_tid(const Process&) { return 0; }  // thread number as the program sees it
};

}  // namespace rnicsim::sim
