// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/netlink/rdma_netlink.h"

#include <errno.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>

#include "model/abi/host_files.h"

namespace rnicsim::clock {
namespace {

// IBTA's values, as Linux reports them.
constexpr std::uint8_t kNodeCa = 1;
constexpr std::uint8_t kPortActive = 4;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint32_t kPorts = 1;  // for each device
constexpr std::uint8_t kSharedNetworks = 1;

constexpr std::uint16_t type_of(int command) { return RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command); }

void put_device_name(const NetDevice& device, NetlinkDatagram& message) {
  char name[sizeof abi::kDevicePrefix + 8];
  snprintf(name, sizeof name, "%s%u", abi::kDevicePrefix, unsigned(device.nic->device));
  message.put(RDMA_NLDEV_ATTR_DEV_INDEX, std::uint32_t{device.nic->device});
  message.put_text(RDMA_NLDEV_ATTR_DEV_NAME, name);
}

// Capabilities of the device are left out: a program learns them when it opens the device.
void put_device(const HostView& view, const NetDevice& device, NetlinkDatagram& message) {
  put_device_name(device, message);
  message.put(RDMA_NLDEV_ATTR_PORT_INDEX, kPorts);
  char path[64], room[64] = {};
  snprintf(path, sizeof path, "/sys/class/infiniband/%s%u/fw_ver", abi::kDevicePrefix, unsigned(device.nic->device));
  const std::string_view firmware =
      view.read_file != nullptr ? view.read_file(path, std::span(room, sizeof room - 1)) : std::string_view();
  if (!firmware.empty()) {
    room[firmware.size()] = 0;
    message.put_text(RDMA_NLDEV_ATTR_FW_VERSION, room);
  }
  message.put(RDMA_NLDEV_ATTR_NODE_GUID, abi::node_guid_of(*device.nic));
  message.put(RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, abi::node_guid_of(*device.nic));
  message.put(RDMA_NLDEV_ATTR_DEV_NODE_TYPE, kNodeCa);
  message.put_text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
}

void put_port(const NetDevice& device, NetlinkDatagram& message) {
  put_device_name(device, message);
  message.put(RDMA_NLDEV_ATTR_PORT_INDEX, kPorts);
  message.put(RDMA_NLDEV_ATTR_CAP_FLAGS, std::uint64_t{abi::kPortCapabilities});
  message.put(RDMA_NLDEV_ATTR_PORT_STATE, kPortActive);
  message.put(RDMA_NLDEV_ATTR_PORT_PHYS_STATE, kPhysicalLinkUp);
  message.put(RDMA_NLDEV_ATTR_NDEV_INDEX, std::uint32_t{device.index});
  message.put_text(RDMA_NLDEV_ATTR_NDEV_NAME, device.name);
}

// The device that a request names; nullopt: none.
std::optional<std::uint32_t> device_in(const NetlinkMessage& request) {
  return request.attributes_behind(0).get<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX);
}

const NetDevice* find_device(const NetDevices& devices, std::optional<std::uint32_t> index) {
  for (const NetDevice& device : devices)
    if (device.nic != nullptr && index == device.nic->device) return &device;
  return nullptr;
}

bool is_dump(const NetlinkMessage& request) {
  if ((request.header.nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP) return false;
  switch (request.header.nlmsg_type) {
    case type_of(RDMA_NLDEV_CMD_GET):
    case type_of(RDMA_NLDEV_CMD_PORT_GET): return true;
    default: return false;
  }
}

int get(const HostView& view, const NetlinkCaller& caller, const NetlinkMessage& request, NetlinkDatagram& answer) {
  const std::uint16_t type = request.header.nlmsg_type;
  if (RDMA_NL_GET_CLIENT(type) >= RDMA_NL_NUM_CLIENTS) return EINVAL;
  const NetDevices devices(view);
  const NetDevice* device = find_device(devices, device_in(request));
  answer.begin(type, 0, request.header.nlmsg_seq, caller.port);
  switch (type) {
    case type_of(RDMA_NLDEV_CMD_GET):
      if (device == nullptr) return EINVAL;
      put_device(view, *device, answer);
      break;
    case type_of(RDMA_NLDEV_CMD_PORT_GET):
      if (device == nullptr || request.attributes_behind(0).get<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX) != kPorts)
        return EINVAL;
      put_port(*device, answer);
      break;
    case type_of(RDMA_NLDEV_CMD_SYS_GET):
      answer.put(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, kSharedNetworks);
      answer.put(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, std::uint8_t{1});
      break;
    case type_of(RDMA_NLDEV_CMD_SET):
    case type_of(RDMA_NLDEV_CMD_NEWLINK):
    case type_of(RDMA_NLDEV_CMD_DELLINK):
    case type_of(RDMA_NLDEV_CMD_SYS_SET):
    case type_of(RDMA_NLDEV_CMD_STAT_SET):
    case type_of(RDMA_NLDEV_CMD_STAT_DEL): return EPERM;
    default: return EOPNOTSUPP;
  }
  answer.end();
  return 0;
}

int read_filter(const NetlinkCaller&, const NetlinkMessage& request, DumpFilter& filter) {
  if (request.header.nlmsg_type == type_of(RDMA_NLDEV_CMD_GET)) return 0;
  const auto index = device_in(request);
  if (!index || *index >= abi::kMaxDevices) return EINVAL;
  filter.index = std::int32_t(*index) + 1;
  return 0;
}

int dump(const HostView& view, std::uint16_t type, Dump& dump) {
  const NetDevices devices(view);
  if (type == type_of(RDMA_NLDEV_CMD_GET)) {
    for (const NetDevice& device : devices)
      if (device.nic != nullptr) dump.item(type, [&](NetlinkDatagram& message) { put_device(view, device, message); });
    return 0;
  }
  const NetDevice* device = find_device(devices, std::uint32_t(dump.filter().index - 1));
  if (device == nullptr) return EINVAL;
  dump.item(type, [&](NetlinkDatagram& message) { put_port(*device, message); });
  return 0;
}

}  // namespace

constinit const NetlinkProtocol kRdmaNetlink{is_dump, get, read_filter, dump};

}  // namespace rnicsim::clock
