// SPDX-License-Identifier: Apache-2.0
#include "model/host/software_process.h"

#include <cerrno>

namespace rnicsim::host {
namespace {

constexpr int kStackBytes = 1 << 20;  // the library and a test's own variables

}  // namespace

SoftwareProcess::SoftwareProcess(sc_core::sc_module_name name, const HostParams& params, KernelAgent& agent,
                                 std::function<void()> body)
    : sc_module(name), kernel_(agent.kernel()), port_(params, agent), body_(std::move(body)) {
  SC_HAS_PROCESS(SoftwareProcess);
  SC_THREAD(run);
  set_stack_size(kStackBytes);
  SC_METHOD(start_threads);
  sensitive << more_threads_;
  dont_initialize();
}

void SoftwareProcess::spawn(std::string name, std::function<void()> body) {
  port_.settle();
  ++threads_;
  to_start_.emplace_back(std::move(name), std::move(body));
  wake(more_threads_);
}

// A method spawns the threads: as a child of a thread, a thread could outlive its parent, and device_port() would not
// find the SoftwareProcess.
void SoftwareProcess::start_threads() {
  for (Thread& thread : std::exchange(to_start_, {})) {
    sc_core::sc_spawn_options options;
    options.set_stack_size(kStackBytes);
    sc_core::sc_spawn([this, body = std::move(thread.second)] { run_thread(body); },
                      sc_core::sc_gen_unique_name(thread.first.c_str()), &options);
  }
}

void SoftwareProcess::run_thread(const std::function<void()>& body) {
  body();
  port_.leave();
  if (--threads_ == 0) wake(last_ended_);
}

void SoftwareProcess::run() {
  if (!kernel_.ready()) sleep_on(kernel_.became_ready());
  run_thread(body_);
  while (threads_ != 0) sleep_on(last_ended_);
  port_.exit();
  finished_ = true;
}

}  // namespace rnicsim::host

namespace rnicsim {

// The process of a thread is the nearest SoftwareProcess above it in the object hierarchy. A process has one device,
// number 0.
DevicePort* device_port(std::uint32_t device) {
  for (const sc_core::sc_object* object = sc_core::sc_get_current_process_b(); object && device == 0;
       object = object->get_parent_object())
    if (const auto* process = dynamic_cast<const host::SoftwareProcess*>(object))
      return &const_cast<host::SoftwareProcess*>(process)->port();
  errno = ENODEV;
  return nullptr;
}

}  // namespace rnicsim
