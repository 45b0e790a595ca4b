// SPDX-License-Identifier: Apache-2.0
// A process of a simulated host inside the simulator: threads (SC_THREADs) that call the verbs library.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "model/host/cpu_port.h"

namespace rnicsim::host {

class SoftwareProcess : public sc_core::sc_module {
 public:
  // The process sees only the agent's device. `body` is the first thread; it runs once the kernel is ready.
  SoftwareProcess(sc_core::sc_module_name name, const HostParams& params, KernelAgent& agent,
                  std::function<void()> body);

  // Adds a thread; called by a running thread of this process. The new thread begins at the caller's time.
  void spawn(std::string name, std::function<void()> body);

  CpuPort& port() { return port_; }
  bool finished() const { return finished_; }  // all threads have ended; kernel and device have destroyed the objects

 private:
  using Thread = std::pair<std::string, std::function<void()>>;

  void run();
  void start_threads();
  void run_thread(const std::function<void()>& body);

  HostKernel& kernel_;
  CpuPort port_;
  std::function<void()> body_;
  std::vector<Thread> to_start_;
  std::size_t threads_ = 1;
  sc_core::sc_event more_threads_{"more_threads"};
  sc_core::sc_event last_ended_{"last_ended"};
  bool finished_ = false;
};

}  // namespace rnicsim::host
