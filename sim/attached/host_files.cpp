#include "sim/attached/host_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <fstream>
#include <map>
#include <span>
#include <string_view>

#include "model/abi/device.h"
#include "model/abi/host_files.h"
#include "model/host/gids.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// A PCI domain that no machine has: the paths must not be those of a device of its own.
constexpr std::string_view kPciDevice = "sys/devices/pci0001:00/0001:01:00.0";

std::string eui64(const abi::HostEntry& host) {
  const host::Gid gid = abi::link_local_of(host);
  const auto word = [&](int at) { return fmt::format("{:02x}{:02x}", gid[std::size_t(at)], gid[std::size_t(at) + 1]); };
  return fmt::format("{}:{}:{}:{}", word(8), word(10), word(12), word(14));
}

std::string gid_text(std::span<const std::uint8_t> gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2)
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  return text;
}

std::uint64_t megabits(const HostFilesParams& params) {
  static const std::map<std::uint32_t, std::uint64_t> kLane{{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                                                            {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
  static const std::map<std::uint32_t, std::uint64_t> kLanes{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  return kLane.at(params.active_speed) * kLanes.at(params.active_width);
}

class Tree {
 public:
  Tree(fs::path root, const abi::HostEntry& host, std::uint32_t index, const HostFilesParams& params)
      : root_(std::move(root)), host_(host), index_(index), params_(params) {}

  void make() const {
    pci_device();
    infiniband();
    net();
    classes();
    file("proc/net/if_inet6", inet6());
    // Of one boot are the processes that share a machine, and its memory.
    file("proc/sys/kernel/random/boot_id", fmt::format("726e6963-7369-4d00-8000-{:012x}", index_));
    // A program looks whether it is a character device, and does no more with it.
    link("dev/infiniband/uverbs0", "/dev/null");
  }

 private:
  void file(const fs::path& path, std::string_view text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream out(root_ / path);
    out << text << '\n';
    if (!out.flush())
      throw fs::filesystem_error("cannot write", root_ / path, std::make_error_code(std::errc::io_error));
  }
  void link(const fs::path& path, const fs::path& target) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }

  void pci_device() const {
    const fs::path device = kPciDevice;
    file(device / "vendor", fmt::format("{:#06x}", abi::kPciVendorId));
    file(device / "device", fmt::format("{:#06x}", params_.vendor_part_id));
    file(device / "class", "0x020700");
    file(device / "revision", fmt::format("{:#04x}", abi::kPciRevision));
    file(device / "numa_node", "-1");
    file(device / "local_cpus", "ffffffff,ffffffff");
    file(device / "local_cpulist", "0-63");
  }

  void infiniband() const {
    const fs::path device = fs::path(kPciDevice) / "infiniband/rnic0";
    file(device / "node_type", "1: CA");
    file(device / "node_guid", eui64(host_));
    file(device / "sys_image_guid", eui64(host_));
    file(device / "node_desc", "rnicsim");
    file(device / "board_id", "rnicsim");
    file(device / "hca_type", "rnicsim");
    file(device / "hw_rev", fmt::format("{:x}", abi::kPciRevision));
    link(device / "device", "../../../0001:01:00.0");
    port(device / "ports/1");

    const fs::path verbs = fs::path(kPciDevice) / "infiniband_verbs/uverbs0";
    file(verbs / "ibdev", "rnic0");
    file(verbs / "abi_version", "1");
    link(verbs / "device", "../../../0001:01:00.0");
  }

  void port(const fs::path& port) const {
    file(port / "state", "4: ACTIVE");
    file(port / "phys_state", "5: LinkUp");
    file(port / "link_layer", "Ethernet");
    file(port / "rate", fmt::format("{} Gb/sec", megabits(params_) / 1000));
    file(port / "lid", fmt::format("{:#x}", host_.lid));
    file(port / "lid_mask_count", "0");
    file(port / "sm_lid", "0x0");
    file(port / "sm_sl", "0");
    file(port / "pkeys/0", "0xffff");
    const auto gids = host::gids_of(host_);
    for (std::uint32_t i = 0; i < params_.gid_table_length; ++i) {
      const std::string index = std::to_string(i);
      const bool used = i < gids.size();
      file(port / "gids" / index, gid_text(used ? gids[i] : host::Gid{}));
      // The kernel's files of an empty entry exist and cannot be read; these do not exist.
      if (!used) continue;
      file(port / "gid_attrs/types" / index, "RoCE v2");
      file(port / "gid_attrs/ndevs" / index, abi::kNetDevice);
    }
  }

  void net_device(const fs::path& device, std::string_view mac, std::uint32_t index, std::uint32_t mtu,
                  int type) const {
    file(device / "address", mac);
    file(device / "addr_len", "6");
    file(device / "ifindex", std::to_string(index));
    file(device / "mtu", std::to_string(mtu));
    file(device / "type", std::to_string(type));
    file(device / "operstate", "up");
    file(device / "carrier", "1");
    file(device / "flags", type == 1 ? "0x1003" : "0x9");
    file(device / "dev_port", "0");
    file(device / "dev_id", "0x0");
  }
  void net() const {
    const fs::path device = fs::path(kPciDevice) / "net" / abi::kNetDevice;
    net_device(device, fmt::format("{:02x}", fmt::join(host_.mac, ":")), abi::kNetDeviceIndex, abi::kNetDeviceMtu, 1);
    file(device / "speed", std::to_string(megabits(params_)));
    file(device / "duplex", "full");
    link(device / "device", "../../../0001:01:00.0");
    net_device("sys/devices/virtual/net/lo", "00:00:00:00:00:00", 1, 65536, 772);
  }

  void classes() const {
    const fs::path device = fs::path("../..") / fs::path(kPciDevice).lexically_relative("sys");
    link("sys/class/infiniband/rnic0", device / "infiniband/rnic0");
    link("sys/class/infiniband_verbs/uverbs0", device / "infiniband_verbs/uverbs0");
    file("sys/class/infiniband_verbs/abi_version", "6");
    link(fs::path("sys/class/net") / abi::kNetDevice, device / "net" / abi::kNetDevice);
    link("sys/class/net/lo", "../../devices/virtual/net/lo");
  }

  // As in /proc: address, index, prefix, scope, flags, device.
  std::string inet6() const {
    const auto line = [](std::span<const std::uint8_t> ip, std::uint32_t index, std::uint32_t prefix, int scope,
                         std::string_view name) {
      return fmt::format("{:02x} {:02x} {:02x} {:02x} 80 {:>8}", fmt::join(ip, ""), index, prefix, scope, name);
    };
    const host::Gid loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const host::Gid link_local = abi::link_local_of(host_);
    std::string text = line(loopback, 1, 128, 0x10, "lo") + '\n';
    text += line(link_local, abi::kNetDeviceIndex, 64, 0x20, abi::kNetDevice);
    if (host_.ipv6_prefix != 0)
      text += '\n' + line(host_.ipv6, abi::kNetDeviceIndex, host_.ipv6_prefix, 0, abi::kNetDevice);
    return text;
  }

  const fs::path root_;
  const abi::HostEntry& host_;
  const std::uint32_t index_;
  const HostFilesParams& params_;
};

// Everyone may write there.
void make_open_folder(const fs::path& path) {
  fs::create_directories(path);
  fs::permissions(path, fs::perms::all | fs::perms::sticky_bit);
}

// What this machine has in its /tmp is seen in a host's, as links: programs and their input may lie there. What a host
// makes is its own.
void link_to_all_of(const fs::path& real, const fs::path& own) {
  std::error_code error;
  for (fs::directory_iterator at(real, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (!(real / name).string().starts_with(abi::kHostFilesPrefix)) fs::create_symlink(at->path(), own / name, ignored);
  }
}

void make_writable_folders(const RunFolder& folder, const std::string& host) {
  const fs::path root = folder.files() / host;
  for (const std::string_view name : {"tmp", "var/tmp"}) {
    make_open_folder(root / name);
    link_to_all_of(fs::path("/") / name, root / name);
  }
  make_open_folder(folder.memory() / host);
  fs::create_directories(root / "dev");
  fs::create_symlink(folder.memory() / host, root / "dev/shm");
}

}  // namespace

HostFiles::HostFiles(const std::string& socket_name, const std::vector<abi::HostEntry>& hosts,
                     const HostFilesParams& params) {
  try {
    folder_.emplace(socket_name);
    for (std::uint32_t i = 0; i < hosts.size(); ++i) {
      Tree(folder_->files() / hosts[i].name, hosts[i], i, params).make();
      make_writable_folders(*folder_, hosts[i].name);
    }
  } catch (const fs::filesystem_error& error) {
    spdlog::warn("the hosts have no /sys, /tmp and /dev/shm of their own: {}", error.what());
  }
}

}  // namespace rnicsim::sim
