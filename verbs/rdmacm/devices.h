// The devices that ids are bound to: opened once, open as long as the process lives, with a default PD while an id
// uses them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "verbs/port/device_port.h"

namespace rnicsim::rdmacm {

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;      // the default one
  ibv_xrcd* xrcd = nullptr;  // made when an id first wants it
  std::uint32_t users = 0;   // ids
  std::uint8_t max_responder_resources = 0;
  std::uint8_t max_initiator_depth = 0;
};

// Whether the calling process has any device.
bool has_devices();

// The device that the kernel names by its GUID, for one more id: 0 or errno.
int hold_device(DevicePort& port, __be64 guid, Device*& held);
void release_device(DevicePort& port, Device& device);
// The default XRC domain: 0 or errno.
int default_xrcd(DevicePort& port, Device& device, ibv_xrcd*& domain);

}  // namespace rnicsim::rdmacm
