// SPDX-License-Identifier: Apache-2.0
// Device list of a process's host, or of a software thread's host inside the simulator.
#include <infiniband/verbs.h>
#undef ibv_get_device_list
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "model/abi/host_files.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"

namespace rnicsim::verbs {

namespace {

class DeviceList {
 public:
  // Devices are never freed: programs use a device after they freed the list that contained it.
  Device* device(std::uint32_t number, std::uint64_t guid) {
    std::lock_guard guard(mutex_);
    std::unique_ptr<Device>& device = devices_[{::getpid(), guid}];
    if (device == nullptr) device = make(number, guid);
    return device.get();
  }

 private:
  static std::unique_ptr<Device> make(std::uint32_t number, std::uint64_t guid);

  std::mutex mutex_;
  std::map<std::pair<pid_t, std::uint64_t>, std::unique_ptr<Device>> devices_;  // a forked child has devices of its own
};

std::unique_ptr<Device> DeviceList::make(std::uint32_t number, std::uint64_t guid) {
  auto made = std::make_unique<Device>();
  made->number = number;
  made->guid = guid;
  ibv_device& device = made->device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device.name, sizeof device.name, "%s%u", abi::kDevicePrefix, made->number);
  std::snprintf(device.dev_name, sizeof device.dev_name, "%s%u", abi::kUverbsPrefix, made->number);
  std::snprintf(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/%s", device.dev_name);
  std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/%s", device.name);
  return made;
}

DeviceList& device_list() {
  static DeviceList& list = *new DeviceList;  // never destroyed: the program's destructors may use it
  return list;
}

void complain_once() {
  static std::once_flag once;
  const int error = errno;
  std::call_once(once, [error] {
    std::fprintf(stderr, "rnicsim: no simulator behind %s: %s\n", abi::kSocketVariable, std::strerror(error));
  });
}

}  // namespace

Device* find_device(std::uint32_t number) {
  DevicePort* port = device_port(number);
  if (port == nullptr && number == 0 && std::getenv(abi::kSocketVariable) != nullptr) complain_once();
  abi::NetworkInterface interface;
  if (port == nullptr || port->port_info(interface) != 0) return nullptr;
  return device_list().device(number, abi::node_guid_of(interface));
}

namespace {

int list_devices(ibv_device**& list, int* count) {
  std::array<Device*, abi::kMaxDevices> found{};
  std::uint32_t devices = 0;
  while (devices < found.size() && (found[devices] = find_device(devices)) != nullptr) ++devices;
  list = static_cast<ibv_device**>(std::calloc(devices + 1, sizeof *list));
  if (list == nullptr) return ENOMEM;
  for (std::uint32_t i = 0; i < devices; ++i) list[i] = &found[i]->device;
  if (count != nullptr) *count = int(devices);
  return 0;
}

}  // namespace

}  // namespace rnicsim::verbs

using namespace rnicsim;
using namespace rnicsim::verbs;

extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  return guarded_object<ibv_device*>([&](ibv_device**& list) { return list_devices(list, num_devices); });
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

int ibv_get_device_index(ibv_device* device) { return int(Device::of(device).number); }

__be64 ibv_get_device_guid(ibv_device* device) { return __builtin_bswap64(Device::of(device).guid); }

}  // extern "C"
