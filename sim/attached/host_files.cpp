// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/host_files.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/abi/device.h"
#include "model/abi/host_files.h"
#include "model/abi/port_counters.h"
#include "model/host/gids.h"
#include "model/host/log.h"
#include "model/nic/personality/rnic/rnic.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

std::string eui64(const abi::NetworkInterface& interface) {
  const host::Gid gid = abi::link_local_of(interface);
  const auto word = [&](int at) { return fmt::format("{:02x}{:02x}", gid[std::size_t(at)], gid[std::size_t(at) + 1]); };
  return fmt::format("{}:{}:{}:{}", word(8), word(10), word(12), word(14));
}

std::string net_name(const abi::NetworkInterface& interface) {
  return fmt::format("{}{}", abi::kNetDevicePrefix, interface.device);
}

std::string gid_text(std::span<const std::uint8_t> gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2)
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  return text;
}

// IBTA's lane speeds, and widths in lanes, by their codes in ibv_port_attr.
struct LaneSpeed {
  std::uint64_t megabits;
  std::string_view name;
};
const std::map<std::uint32_t, LaneSpeed> kLane{{1, {2500, "SDR"}},    {2, {5000, "DDR"}},    {4, {10000, "QDR"}},
                                               {8, {10000, "FDR10"}}, {16, {14000, "FDR"}},  {32, {25000, "EDR"}},
                                               {64, {50000, "HDR"}},  {128, {100000, "NDR"}}};
const std::map<std::uint32_t, std::uint64_t> kLanes{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};

std::uint64_t megabits(const HostFilesParams& params) {
  return kLane.at(params.active_speed).megabits * kLanes.at(params.active_width);
}

std::string rate_text(const HostFilesParams& params) {
  return fmt::format("{:g} Gb/sec ({}X {})", double(megabits(params)) / 1000, kLanes.at(params.active_width),
                     kLane.at(params.active_speed).name);
}

std::string firmware_text(std::uint64_t version) {
  return fmt::format("{}.{}.{}", version >> 32, version >> 16 & 0xffff, version & 0xffff);
}

// Creates files below a host's folder.
class Root {
 public:
  explicit Root(fs::path path) : path_(std::move(path)) {}
  void file(const fs::path& path, std::string_view text) const {
    fs::create_directories((path_ / path).parent_path());
    std::ofstream out(path_ / path);
    out << text << '\n';
    if (!out.flush())
      throw fs::filesystem_error("cannot write", path_ / path, std::make_error_code(std::errc::io_error));
  }
  void link(const fs::path& path, const fs::path& target) const {
    fs::create_directories((path_ / path).parent_path());
    fs::create_symlink(target, path_ / path);
  }
  // Makes a hard link. False: `other` is on another file system, or has too many links.
  bool share(const fs::path& path, const fs::path& other) const {
    fs::create_directories((path_ / path).parent_path());
    std::error_code error;
    fs::create_hard_link(other, path_ / path, error);
    return !error;
  }
  fs::path path(const fs::path& path) const { return path_ / path; }

 private:
  const fs::path path_;
};

struct NetDevice {
  fs::path folder;
  std::string mac;
  std::uint32_t index;
  std::uint32_t mtu;
  int type;  // ARPHRD_
};
void make_net_device(const Root& root, const NetDevice& device) {
  const fs::path& folder = device.folder;
  root.file(folder / "address", device.mac);
  root.file(folder / "addr_len", "6");
  root.file(folder / "broadcast", device.type == 1 ? "ff:ff:ff:ff:ff:ff" : "00:00:00:00:00:00");
  root.file(folder / "tx_queue_len", "1000");
  root.file(folder / "ifindex", std::to_string(device.index));
  root.file(folder / "mtu", std::to_string(device.mtu));
  root.file(folder / "type", std::to_string(device.type));
  root.file(folder / "iflink", std::to_string(device.index));
  root.file(folder / "operstate", device.type == 1 ? "up" : "unknown");
  root.file(folder / "carrier", "1");
  root.file(folder / "flags", device.type == 1 ? "0x1003" : "0x9");
  root.file(folder / "dev_port", "0");
  root.file(folder / "dev_id", "0x0");
}

// The files of one NIC, as Linux shows it: a PCI function with an RDMA device and a network device.
class Nic {
 public:
  Nic(const Root& root, const abi::NetworkInterface& interface, const HostFilesParams& params)
      : root_(root), interface_(interface), params_(params) {}

  void make() const {
    pci_device();
    infiniband();
    net();
    classes();
    // Programs only check that the file is a character device.
    root_.link(fs::path("dev/infiniband") / uverbs_, "/dev/null");
  }

 private:
  void pci_device() const {
    root_.file(pci_ / "vendor", fmt::format("{:#06x}", abi::kPciVendorId));
    root_.file(pci_ / "device", fmt::format("{:#06x}", params_.vendor_part_id));
    root_.file(pci_ / "class", "0x020700");
    root_.file(pci_ / "revision", fmt::format("{:#04x}", abi::kPciRevision));
    root_.file(pci_ / "numa_node", "-1");
    root_.file(pci_ / "local_cpus", "ffffffff,ffffffff");
    root_.file(pci_ / "local_cpulist", "0-63");
  }

  void infiniband() const {
    const fs::path device = pci_ / "infiniband" / name_;
    root_.file(device / "node_type", "1: CA");
    root_.file(device / "node_guid", eui64(interface_));
    root_.file(device / "sys_image_guid", eui64(interface_));
    root_.file(device / "node_desc", "rnicsim");
    root_.file(device / "board_id", "rnicsim");
    root_.file(device / "hca_type", "rnicsim");
    root_.file(device / "fw_ver", firmware_text(nic::kFirmware));
    root_.file(device / "hw_rev", fmt::format("{:x}", abi::kPciRevision));
    root_.link(device / "device", fs::path("../../..") / slot_);
    port(device / "ports/1");

    const fs::path verbs = pci_ / "infiniband_verbs" / uverbs_;
    root_.file(verbs / "ibdev", name_);
    root_.file(verbs / "abi_version", "1");
    root_.link(verbs / "device", fs::path("../../..") / slot_);
  }

  void port(const fs::path& port) const {
    root_.file(port / "state", "4: ACTIVE");
    root_.file(port / "phys_state", "5: LinkUp");
    root_.file(port / "link_layer", "Ethernet");
    root_.file(port / "rate", rate_text(params_));
    root_.file(port / "lid", fmt::format("{:#x}", interface_.lid));
    root_.file(port / "lid_mask_count", "0");
    root_.file(port / "sm_lid", "0x0");
    root_.file(port / "sm_sl", "0");
    root_.file(port / "cap_mask", fmt::format("{:#010x}", abi::kPortCapabilities));
    root_.file(port / "pkeys/0", "0xffff");
    // Placeholders: sim/host/kernel/files/port_counters gives the present values to a program that opens one.
    for (const auto& counter : abi::kPortCounterFiles) root_.file(port / counter.folder / counter.name, "0");
    const auto gids = host::gids_of(interface_);
    for (std::uint32_t i = 0; i < params_.gid_table_length; ++i) {
      const std::string index = std::to_string(i);
      const bool used = i < gids.size();
      root_.file(port / "gids" / index, gid_text(used ? gids[i] : host::Gid{}));
      // Linux has these files for empty entries too, but reads of them fail; here they do not exist.
      if (!used) continue;
      root_.file(port / "gid_attrs/types" / index, "RoCE v2");
      root_.file(port / "gid_attrs/ndevs" / index, net_);
    }
  }

  void net() const {
    const fs::path device = pci_ / "net" / net_;
    make_net_device(root_, {device, fmt::format("{:02x}", fmt::join(interface_.mac, ":")),
                            abi::net_device_index(interface_.device), abi::kNetDeviceMtu, 1});
    root_.file(device / "speed", std::to_string(megabits(params_)));
    root_.file(device / "duplex", "full");
    root_.link(device / "device", fs::path("../../..") / slot_);
  }

  void classes() const {
    const fs::path device = fs::path("../..") / pci_.lexically_relative("sys");
    root_.link(fs::path("sys/class/infiniband") / name_, device / "infiniband" / name_);
    root_.link(fs::path("sys/class/infiniband_verbs") / uverbs_, device / "infiniband_verbs" / uverbs_);
    root_.link(fs::path("sys/class/net") / net_, device / "net" / net_);
  }

  const Root& root_;
  const abi::NetworkInterface& interface_;
  const HostFilesParams& params_;
  const std::string name_ = fmt::format("{}{}", abi::kDevicePrefix, interface_.device);
  const std::string uverbs_ = fmt::format("{}{}", abi::kUverbsPrefix, interface_.device);
  const std::string net_ = net_name(interface_);
  const std::string slot_ = abi::pci_slot_of(interface_.device).data();
  const fs::path pci_ = fs::path("sys/devices/pci0001:00") / slot_;
};

// /proc/net/if_inet6: address, index, prefix, scope, flags, device.
std::string inet6(std::span<const abi::NetworkInterface> own) {
  const auto line = [](std::span<const std::uint8_t> ip, std::uint32_t index, std::uint32_t prefix, int scope,
                       std::string_view name) {
    return fmt::format("{:02x} {:02x} {:02x} {:02x} 80 {:>8}", fmt::join(ip, ""), index, prefix, scope, name);
  };
  const host::Gid loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  std::string text = line(loopback, 1, 128, 0x10, "lo");
  for (const auto& interface : own) {
    const std::uint32_t index = abi::net_device_index(interface.device);
    text += '\n' + line(abi::link_local_of(interface), index, 64, 0x20, net_name(interface));
    if (interface.ipv6_prefix != 0)
      text += '\n' + line(interface.ipv6, index, interface.ipv6_prefix, 0, net_name(interface));
  }
  return text;
}

std::uint32_t v4_mask(const abi::NetworkInterface& interface) {
  return interface.ipv4_prefix == 0 ? 0 : ~0u << (32 - interface.ipv4_prefix);
}
std::uint32_t v4_subnet(const abi::NetworkInterface& interface) {
  const std::uint8_t* ip = interface.ipv4;
  const std::uint32_t address = std::uint32_t{ip[0]} << 24 | ip[1] << 16 | ip[2] << 8 | ip[3];
  return address & v4_mask(interface);
}

// /proc/net/route: the host's own subnets, then those reached by its first device. Addresses are printed as a
// little-endian machine reads them.
std::string route(std::span<const abi::NetworkInterface> own, std::span<const abi::NetworkInterface> all) {
  constexpr int kLineBytes = 127;
  constexpr std::string_view kHead =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
  std::string text = fmt::format("{:<{}}", kHead, kLineBytes);
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  const auto add = [&](const abi::NetworkInterface& to, const abi::NetworkInterface& by) {
    const std::string line = fmt::format("{}\t{:08X}\t00000000\t0001\t0\t0\t0\t{:08X}\t0\t0\t0", net_name(by),
                                         __builtin_bswap32(v4_subnet(to)), __builtin_bswap32(v4_mask(to)));
    text += fmt::format("\n{:<{}}", line, kLineBytes);
    known.emplace(v4_subnet(to), v4_mask(to));
  };
  for (const auto& each : own)
    if (each.ipv4_prefix != 0) add(each, each);
  for (const auto& each : all)
    if (each.ipv4_prefix != 0 && !known.contains({v4_subnet(each), v4_mask(each)})) add(each, own.front());
  return text;
}

// hosts(5): each name has the address of its host's first interface.
std::string hosts_text(std::span<const abi::NetworkInterface> all) {
  std::string text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback";
  for (const auto& each : all) {
    if (each.device != 0) continue;
    text += fmt::format("\n{} {}", fmt::join(each.ipv4, "."), each.name);
    char v6[INET6_ADDRSTRLEN];
    if (each.ipv6_prefix != 0) text += fmt::format("\n{} {}", inet_ntop(AF_INET6, each.ipv6, v6, sizeof v6), each.name);
  }
  return text;
}

// /etc/hosts, with a line for each host. All hosts link to one file: a file each would be large with thousands of
// hosts.
class HostTable {
 public:
  explicit HostTable(std::span<const abi::NetworkInterface> all) : text_(hosts_text(all)) {}
  void put(const Root& root) {
    if (!first_.empty() && root.share("etc/hosts", first_)) return;
    root.file("etc/hosts", text_);
    first_ = root.path("etc/hosts");
    fs::permissions(first_, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  }

 private:
  const std::string text_;
  fs::path first_;
};

void make_host(const fs::path& folder, std::span<const abi::NetworkInterface> own,
               std::span<const HostFilesParams> params, std::span<const abi::NetworkInterface> all, HostTable& hosts) {
  const Root root(folder);
  hosts.put(root);
  root.file("etc/hostname", own.front().name);
  root.file("proc/sys/kernel/hostname", own.front().name);
  for (std::size_t i = 0; i < own.size(); ++i) Nic(root, own[i], params[i]).make();
  root.file("sys/class/infiniband_verbs/abi_version", "6");
  make_net_device(root, {"sys/devices/virtual/net/lo", "00:00:00:00:00:00", 1, 65536, 772});
  root.link("sys/class/net/lo", "../../devices/virtual/net/lo");
  root.file("proc/net/if_inet6", inet6(own));
  root.file("proc/net/route", route(own, all));
  root.link("proc/self/net", "../net");
  // Processes with the same boot_id take themselves for users of one machine with one memory.
  root.file("proc/sys/kernel/random/boot_id", fmt::format("726e6963-7369-4d00-8000-{:012x}", own.front().host));
}

fs::path below(const fs::path& folder, const std::string& host, const char* name) {
  return folder / host / std::string_view(name).substr(1);
}

// Writable for every user. Entries of this machine's /tmp and /var/tmp are linked here when a program first looks
// there (sim/host/kernel/files/linked_folder).
void make_writable_folders(const RunFolder& folder, const std::string& host) {
  const fs::path files = folder.files() / host;
  std::vector<fs::path> paths{files / "tmp", files / "var/tmp"};
  if (!folder.memory().empty()) paths.push_back(below(folder.memory(), host, abi::kSharedMemoryFolder));
  for (const fs::path& path : paths) {
    fs::create_directories(path);
    fs::permissions(path, fs::perms::all | fs::perms::sticky_bit);
  }
}

}  // namespace

HostFiles::HostFiles(const std::string& socket_name, const std::vector<abi::NetworkInterface>& interfaces,
                     const std::vector<HostFilesParams>& params) {
  struct Own {
    std::vector<abi::NetworkInterface> interfaces;
    std::vector<HostFilesParams> params;
  };
  std::map<std::uint32_t, Own> hosts;
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    hosts[interfaces[i].host].interfaces.push_back(interfaces[i]);
    hosts[interfaces[i].host].params.push_back(params[i]);
  }
  HostTable table(interfaces);
  try {
    folder_.emplace(socket_name);
    for (const auto& [number, own] : hosts) {
      const std::string name = own.interfaces.front().name;
      make_writable_folders(*folder_, name);
      const fs::path on_disk = below(folder_->files(), name, abi::kKernelFilesFolder);
      if (folder_->memory().empty()) {
        make_host(on_disk, own.interfaces, own.params, interfaces, table);
        continue;
      }
      // A file in memory costs a tenth of the time of a file on disk.
      const fs::path in_memory = below(folder_->memory(), name, abi::kKernelFilesFolder);
      try {
        make_host(in_memory, own.interfaces, own.params, interfaces, table);
      } catch (const fs::filesystem_error&) {
        fs::remove_all(in_memory);
        make_host(on_disk, own.interfaces, own.params, interfaces, table);
      }
    }
  } catch (const fs::filesystem_error& error) {
    host::log_warning(fmt::format("all hosts share the machine's /sys, /tmp and /dev/shm: {}", error.what()));
  }
}

}  // namespace rnicsim::sim
