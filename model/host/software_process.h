// A process of a simulated host that lives inside the simulator: one thread (SC_THREAD), which calls the verbs library.
#pragma once

#include <functional>

#include "model/base/kernel.h"
#include "model/host/cpu_port.h"

namespace rnicsim::host {

class SoftwareProcess : public sc_core::sc_module {
 public:
  // `body` runs once the kernel's device is ready.
  SoftwareProcess(sc_core::sc_module_name name, const HostParams& params, KernelAgent& kernel,
                  RootComplex& root_complex, std::function<void()> body);

  CpuPort& port() { return port_; }
  bool finished() const { return finished_; }

 private:
  void run();

  KernelAgent& kernel_;
  CpuPort port_;
  std::function<void()> body_;
  bool finished_ = false;
};

}  // namespace rnicsim::host
