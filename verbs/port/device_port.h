// The seam between the verbs library and whatever carries it to a device of a simulated host: the shared memory of an
// attached process (verbs/port/attached_port) or a software thread inside the simulator (model/host/cpu_port). What
// needs one of its four parts takes that part.
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

  // This process is a forked child, and the port its parent's: nothing goes through it, and the memory that it gave out
  // is not here.
  virtual bool inherited() const { return false; }
};

// The port of the calling process to a device of its host, made at the first call; nullptr, with errno set: ENODEV when
// there is no such device, or no simulator. Each carrier defines it: a program links exactly one.
DevicePort* device_port(std::uint32_t device);
// What belongs to no device goes through that of the first.
inline DevicePort* process_port() { return device_port(0); }

}  // namespace rnicsim
