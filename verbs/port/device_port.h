// SPDX-License-Identifier: Apache-2.0
// Interface of the verbs library to a device of a simulated host. Implementations: shared memory of an attached
// process (verbs/port/attached_port), and a software thread inside the simulator (model/host/cpu_port). Code that
// needs only one of the four base classes takes that one.
#pragma once

#include <cstdint>

#include "verbs/port/cpu_time.h"
#include "verbs/port/device_access.h"
#include "verbs/port/follow_up.h"
#include "verbs/port/os_services.h"

namespace rnicsim {

class DevicePort : public DeviceAccess, public OsServices, public CpuTime, public FollowUp {
 public:
  virtual ~DevicePort() = default;

  // True: the port belongs to the parent, and this process is a forked child. Calls through the port fail, and memory
  // that the port allocated is not mapped here.
  virtual bool inherited() const { return false; }
};

// The calling process's port to a device of its host, made at the first call. nullptr with errno ENODEV: no such
// device, or no simulator. Each implementation defines this function; a program links exactly one.
DevicePort* device_port(std::uint32_t device);
// The port for calls that concern no particular device: the first device's port.
inline DevicePort* process_port() { return device_port(0); }

}  // namespace rnicsim
