// The device list: one device for each process (and, inside the simulator, for each host).
#include <infiniband/verbs.h>
#undef ibv_get_device_list
#include <unistd.h>

#include <algorithm>
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

constexpr char kName[] = "rnic0";
constexpr char kUverbsName[] = "uverbs0";

class DeviceList {
 public:
  // The device of a host; kept for ever, since programs use a device after they freed the list it came in.
  Device* device(std::uint64_t guid) {
    std::lock_guard guard(mutex_);
    std::unique_ptr<Device>& device = devices_[{::getpid(), guid}];
    if (device == nullptr) device = make(guid);
    return device.get();
  }

 private:
  static std::unique_ptr<Device> make(std::uint64_t guid);

  std::mutex mutex_;
  std::map<std::pair<pid_t, std::uint64_t>, std::unique_ptr<Device>> devices_;  // a child of fork has its own
};

std::unique_ptr<Device> DeviceList::make(std::uint64_t guid) {
  auto made = std::make_unique<Device>();
  made->guid = guid;
  ibv_device& device = made->device;
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(device.name, sizeof device.name, "%s", kName);
  std::snprintf(device.dev_name, sizeof device.dev_name, "%s", kUverbsName);
  std::snprintf(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/%s", kUverbsName);
  std::snprintf(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/%s", kName);
  return made;
}

DeviceList& device_list() {
  static DeviceList& list = *new DeviceList;  // outlives the program's own destructors
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

Device* find_device() {
  DevicePort* port = process_port();
  if (port == nullptr && std::getenv(abi::kSocketVariable) != nullptr) complain_once();
  abi::HostEntry host;
  if (port == nullptr || port->port_info(host) != 0) return nullptr;
  return device_list().device(abi::node_guid_of(host));
}

namespace {

int list_devices(ibv_device**& list, int* count) {
  Device* device = find_device();
  list = static_cast<ibv_device**>(std::calloc(2, sizeof *list));
  if (list == nullptr) return ENOMEM;
  if (device != nullptr) list[0] = &device->device;
  if (count != nullptr) *count = device != nullptr ? 1 : 0;
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

int ibv_get_device_index(ibv_device*) { return 0; }

__be64 ibv_get_device_guid(ibv_device* device) { return __builtin_bswap64(Device::of(device).guid); }

}  // extern "C"
