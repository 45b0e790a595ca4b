#include "model/host/software_process.h"

#include <cerrno>

namespace rnicsim::host {

SoftwareProcess::SoftwareProcess(sc_core::sc_module_name name, const HostParams& params, KernelAgent& kernel,
                                 RootComplex& root_complex, std::function<void()> body)
    : sc_module(name), kernel_(kernel), port_(params, kernel, root_complex), body_(std::move(body)) {
  SC_HAS_PROCESS(SoftwareProcess);
  SC_THREAD(run);
  set_stack_size(1 << 20);  // the library and a test's own variables
}

void SoftwareProcess::run() {
  if (!kernel_.ready()) wait(kernel_.became_ready());
  body_();
  port_.exit();
  finished_ = true;
}

}  // namespace rnicsim::host

namespace rnicsim {

// A thread's process is the nearest SoftwareProcess around it.
DevicePort* process_port() {
  for (const sc_core::sc_object* object = sc_core::sc_get_current_process_b(); object;
       object = object->get_parent_object())
    if (const auto* process = dynamic_cast<const host::SoftwareProcess*>(object))
      return &const_cast<host::SoftwareProcess*>(process)->port();
  errno = ENODEV;
  return nullptr;
}

}  // namespace rnicsim
