// SPDX-License-Identifier: Apache-2.0
#include "verbs/rdmacm/devices.h"

#include <fcntl.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/queue_lock.h"

namespace rnicsim::rdmacm {

namespace {

using verbs::QueueGuard;
using verbs::QueueLock;

class DeviceList {
 public:
  DeviceList() : list_(ibv_get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) ibv_free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> devices() const { return {list_, list_ != nullptr ? std::size_t(count_) : 0}; }

 private:
  int count_ = 0;
  ibv_device** list_;
};

// A QueueLock, since other threads may get turns while a device is opened.
struct OpenDevices {
  QueueLock lock;
  std::map<ibv_device*, Device> devices;  // a forked child has devices of its own
};

// By port: each software process of the simulator has a port of its own and does not share locks with the others.
OpenDevices& open_devices(DevicePort& port) {
  static std::mutex& mutex = *new std::mutex;
  static std::map<DevicePort*, OpenDevices>& open = *new std::map<DevicePort*, OpenDevices>;
  const std::lock_guard guard(mutex);  // never destroyed: the program's destructors may use them
  return open[&port];
}

// Called with the lock held.
int open_device(OpenDevices& open, ibv_device* device, Device*& opened) {
  const auto known = open.devices.find(device);
  if (known != open.devices.end()) return opened = &known->second, 0;
  ibv_context* context = ibv_open_device(device);
  if (context == nullptr) return errno;
  ibv_device_attr attributes;
  if (const int error = ibv_query_device(context, &attributes)) {
    ibv_close_device(context);
    return error;
  }
  Device& made = open.devices[device];
  made.context = context;
  made.max_responder_resources = std::uint8_t(std::min<int>(attributes.max_qp_rd_atom, RDMA_MAX_RESP_RES));
  made.max_initiator_depth = std::uint8_t(std::min<int>(attributes.max_qp_init_rd_atom, RDMA_MAX_INIT_DEPTH));
  opened = &made;
  return 0;
}

ibv_device* find_device(const DeviceList& list, __be64 guid) {
  for (ibv_device* device : list.devices())
    if (ibv_get_device_guid(device) == guid) return device;
  return nullptr;
}

int list_contexts(DevicePort& port, std::vector<ibv_context*>& contexts) {
  const DeviceList list;
  if (list.devices().empty()) return ENODEV;
  const QueueGuard guard(open_devices(port).lock, port);
  for (ibv_device* device : list.devices()) {
    Device* opened = nullptr;
    if (const int error = open_device(open_devices(port), device, opened)) return error;
    contexts.push_back(opened->context);
  }
  return 0;
}

int array_of_contexts(ibv_context**& array, int& count) {
  DevicePort* port = process_port();
  if (port == nullptr) return ENODEV;
  std::vector<ibv_context*> contexts;
  if (const int error = list_contexts(*port, contexts)) return error;
  array = static_cast<ibv_context**>(std::calloc(contexts.size() + 1, sizeof *array));
  if (array == nullptr) return ENOMEM;
  std::ranges::copy(contexts, array);
  count = int(contexts.size());
  return 0;
}

}  // namespace

bool has_devices() { return process_port() != nullptr && !DeviceList().devices().empty(); }

int hold_device(DevicePort& port, __be64 guid, Device*& held) {
  const DeviceList list;
  ibv_device* device = find_device(list, guid);
  if (device == nullptr) return ENODEV;
  const QueueGuard guard(open_devices(port).lock, port);
  Device* opened = nullptr;
  if (const int error = open_device(open_devices(port), device, opened)) return error;
  if (opened->pd == nullptr) opened->pd = ibv_alloc_pd(opened->context);
  if (opened->pd == nullptr) return errno;
  ++opened->users;
  held = opened;
  return 0;
}

void release_device(DevicePort& port, Device& device) {
  const QueueGuard guard(open_devices(port).lock, port);
  if (--device.users != 0) return;
  ibv_dealloc_pd(std::exchange(device.pd, nullptr));
  if (device.xrcd != nullptr) ibv_close_xrcd(std::exchange(device.xrcd, nullptr));
}

int default_xrcd(DevicePort& port, Device& device, ibv_xrcd*& domain) {
  const QueueGuard guard(open_devices(port).lock, port);
  if (device.xrcd == nullptr) {
    ibv_xrcd_init_attr attributes{};
    attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attributes.fd = -1;
    attributes.oflags = O_CREAT;
    device.xrcd = ibv_open_xrcd(device.context, &attributes);
  }
  domain = device.xrcd;
  return domain != nullptr ? 0 : errno;
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;

extern "C" {

ibv_context** rdma_get_devices(int* num_devices) {
  int count = 0;
  ibv_context** list = rnicsim::verbs::guarded_object<ibv_context*>(
      [&](ibv_context**& array) { return array_of_contexts(array, count); });
  if (num_devices != nullptr) *num_devices = list != nullptr ? count : 0;
  return list;
}

// Frees the array only; the devices stay open.
void rdma_free_devices(ibv_context** list) { std::free(list); }

}  // extern "C"
