// SPDX-License-Identifier: Apache-2.0
// Files of the device under /sys. The real /sys does not have them, so this file makes their contents; other paths are
// read from the file system.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"

namespace {

using rnicsim::verbs::Device;

std::string guid_text(__be64 guid) {
  char text[24];
  const std::uint64_t value = __builtin_bswap64(guid);
  std::snprintf(text, sizeof text, "%04x:%04x:%04x:%04x", unsigned(value >> 48 & 0xffff),
                unsigned(value >> 32 & 0xffff), unsigned(value >> 16 & 0xffff), unsigned(value & 0xffff));
  return text;
}

std::string firmware_version(const Device& device) {
  rnicsim::DevicePort* port = rnicsim::device_port(device.number);
  rnicsim::abi::DeviceCapabilities capabilities;
  const auto query = rnicsim::provider::header(rnicsim::abi::CommandOpcode::query_device);
  if (port == nullptr ||
      port->command(0, rnicsim::provider::encode(query), std::as_writable_bytes(std::span(&capabilities, 1))) != 0) {
    return {};
  }
  return rnicsim::verbs::firmware_text(capabilities.firmware_version);
}

// Empty: the device has no such file.
std::string attribute(Device& device, std::string_view file) {
  if (file == "board_id" || file == "node_desc") return "rnicsim";
  if (file == "hca_type") return "rnicsim";
  if (file == "fw_ver") return firmware_version(device);
  if (file == "hw_rev") return "1";
  if (file == "node_type") return "1: CA";
  if (file == "node_guid" || file == "sys_image_guid") return guid_text(ibv_get_device_guid(&device.device));
  if (file == "ibdev") return device.device.name;
  if (file == "abi_version") return "1";
  if (file == "ports/1/link_layer") return "Ethernet";
  return {};
}

std::string read_real(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char buffer[4096];
  const ssize_t count = ::read(fd, buffer, sizeof buffer);
  ::close(fd);
  std::string text(buffer, count > 0 ? std::size_t(count) : 0);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string read_attribute(std::string_view directory, std::string_view file) {
  std::uint32_t number = 0;
  for (Device* device; (device = rnicsim::verbs::find_device(number)) != nullptr; ++number) {
    if (directory != device->device.ibdev_path && directory != device->device.dev_path) continue;
    if (std::string ours = attribute(*device, file); !ours.empty()) return ours;
  }
  return read_real(std::string(directory) + "/" + std::string(file));
}

int read_into(const char* directory, const char* file, char* buffer, std::size_t size) {
  int length = -1;
  rnicsim::verbs::guarded([&] {
    const std::string text = read_attribute(directory, file);
    if (text.empty()) return ENOENT;
    if (text.size() >= size) return ENOSPC;
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    length = int(text.size());
    return 0;
  });
  return length;
}

}  // namespace

extern "C" {

const char* ibv_get_sysfs_path() { return "/sys"; }

int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, std::size_t size) {
  return read_into(directory, file, buffer, size);
}

int ibv_read_ibdev_sysfs_file(char* buffer, std::size_t size, void*, const char*, ...) {
  if (size > 0) buffer[0] = '\0';
  errno = EOPNOTSUPP;
  return -1;
}

}  // extern "C"
