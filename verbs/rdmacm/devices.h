// SPDX-License-Identifier: Apache-2.0
// Devices of the process's ids. A device is opened once and stays open; it has a default PD while an id uses it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "verbs/port/device_port.h"

namespace rnicsim::rdmacm {

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;      // default PD
  ibv_xrcd* xrcd = nullptr;  // default XRC domain, created on first use
  std::uint32_t users = 0;   // number of ids
  std::uint8_t max_responder_resources = 0;
  std::uint8_t max_initiator_depth = 0;
};

// True: the calling process has a device.
bool has_devices();

// Finds the device with this GUID, opens it if necessary and counts one more user. Returns 0 or an errno.
int hold_device(DevicePort& port, __be64 guid, Device*& held);
void release_device(DevicePort& port, Device& device);
// Returns 0 or an errno.
int default_xrcd(DevicePort& port, Device& device, ibv_xrcd*& domain);

}  // namespace rnicsim::rdmacm
