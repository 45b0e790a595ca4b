// SPDX-License-Identifier: Apache-2.0
// The network devices of a simulated host, as getifaddrs() and the old ioctls report them.

#include <errno.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <new>

#include "model/abi/host_files.h"
#include "sim/host/kernel/netlink/host_view.h"
#include "sim/host/kernel/netlink/network_devices.h"
#include "sim/host/kernel/sockets/datagrams.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(getifaddrs);
RNICSIM_NEXT(freeifaddrs);
RNICSIM_NEXT(ioctl);
RNICSIM_NEXT(if_nametoindex);
RNICSIM_NEXT(if_indextoname);

namespace rnicsim::clock {
namespace {

sockaddr_in v4(const std::array<std::uint8_t, 4>& bytes) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  memcpy(&address.sin_addr, bytes.data(), bytes.size());
  return address;
}
sockaddr_in v4_mask(const NetDevice& device) {
  std::array<std::uint8_t, 4> mask;
  fill_mask(mask.data(), mask.size(), device.ipv4_prefix());
  return v4(mask);
}

// An entry of getifaddrs(). The list is one block of memory with the entries in a row.
struct Entry {
  ifaddrs head;
  char name[IFNAMSIZ];
  sockaddr_storage address;
  sockaddr_storage mask;
  sockaddr_storage broadcast;
};

class List {
 public:
  explicit List(Entry* entries) : entries_(entries) {}

  void add(const NetDevice& device, const void* address, std::size_t bytes, const void* mask, const void* broadcast) {
    Entry& entry = *new (entries_ + count_) Entry{};
    if (count_ > 0) entries_[count_ - 1].head.ifa_next = &entry.head;
    ++count_;
    memcpy(entry.name, device.name, sizeof entry.name);
    entry.head.ifa_name = entry.name;
    entry.head.ifa_flags = device.flags;
    const auto put = [&](sockaddr*& where, sockaddr_storage& room, const void* from) {
      if (from == nullptr) return;
      memcpy(&room, from, bytes);
      where = reinterpret_cast<sockaddr*>(&room);
    };
    put(entry.head.ifa_addr, entry.address, address);
    put(entry.head.ifa_netmask, entry.mask, mask);
    put(entry.head.ifa_broadaddr, entry.broadcast, broadcast);
  }

  void add_packet(const NetDevice& device) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = int(device.index);
    address.sll_hatype = device.type;
    address.sll_halen = 6;
    if (device.nic != nullptr) memcpy(address.sll_addr, device.nic->mac, 6);
    add(device, &address, sizeof address, nullptr, nullptr);
  }
  void add_v4(const NetDevice& device) {
    const sockaddr_in address = v4(device.ipv4()), mask = v4_mask(device), broadcast = v4(device.ipv4_broadcast());
    add(device, &address, sizeof address, &mask, device.nic != nullptr ? &broadcast : nullptr);
  }
  void add_v6(const NetDevice& device, const std::uint8_t* ip, unsigned prefix, unsigned scope) {
    sockaddr_in6 address{}, mask{};
    address.sin6_family = mask.sin6_family = AF_INET6;
    memcpy(&address.sin6_addr, ip, 16);
    address.sin6_scope_id = scope;
    fill_mask(mask.sin6_addr.s6_addr, 16, prefix);
    add(device, &address, sizeof address, &mask, nullptr);
  }

 private:
  Entry* const entries_;
  std::size_t count_ = 0;
};

// `lo` has three entries, each NIC at most four.
constexpr std::size_t kMostEntries = 3 + 4 * abi::kMaxDevices;

void fill_list(List& list) {
  const NetDevices devices(own_view());
  for (const NetDevice& device : devices) list.add_packet(device);
  for (const NetDevice& device : devices) list.add_v4(device);
  for (const NetDevice& device : devices) {
    const abi::NetworkInterface* nic = device.nic;
    if (nic == nullptr) list.add_v6(device, in6addr_loopback.s6_addr, 128, 0);
    if (nic != nullptr && nic->ipv6_prefix != 0) list.add_v6(device, nic->ipv6, nic->ipv6_prefix, 0);
    if (nic != nullptr) list.add_v6(device, abi::link_local_of(*nic).data(), 64, device.index);
  }
}

int fail(int error) {
  errno = error;
  return -1;
}

// SIOCGIFCONF: the devices with their IPv4 addresses.
int list_into(ifconf& wanted) {
  const NetDevices devices(own_view());
  const bool asks_size = wanted.ifc_buf == nullptr;
  const std::size_t room = asks_size ? devices.size() : std::size_t(wanted.ifc_len) / sizeof(ifreq);
  std::size_t count = 0;
  for (const NetDevice& device : devices) {
    if (count == room) break;
    const std::size_t place = count++;
    if (asks_size) continue;
    ifreq& entry = wanted.ifc_req[place];
    entry = {};
    memcpy(entry.ifr_name, device.name, sizeof entry.ifr_name);
    const sockaddr_in address = v4(device.ipv4());
    memcpy(&entry.ifr_addr, &address, sizeof address);
  }
  wanted.ifc_len = int(count * sizeof(ifreq));
  return 0;
}

int name_by_index(ifreq& request) {
  const NetDevices devices(own_view());
  const NetDevice* device = devices.find(request.ifr_ifindex);
  if (device == nullptr) return fail(ENODEV);
  memcpy(request.ifr_name, device->name, sizeof request.ifr_name);
  return 0;
}

int describe(unsigned what, ifreq& request) {
  const NetDevices devices(own_view());
  const NetDevice* device = devices.find(request.ifr_name);
  if (device == nullptr) return fail(ENODEV);
  const auto put = [&](const sockaddr_in& address) { memcpy(&request.ifr_addr, &address, sizeof address); };
  switch (what) {
    case SIOCGIFINDEX: request.ifr_ifindex = int(device->index); break;
    case SIOCGIFFLAGS: request.ifr_flags = short(device->flags); break;
    case SIOCGIFMTU: request.ifr_mtu = device->mtu; break;
    case SIOCGIFADDR: put(v4(device->ipv4())); break;
    case SIOCGIFNETMASK: put(v4_mask(*device)); break;
    case SIOCGIFBRDADDR: put(v4(device->ipv4_broadcast())); break;
    case SIOCGIFTXQLEN: request.ifr_qlen = int(kQueueLength); break;
    case SIOCGIFMETRIC: request.ifr_metric = 0; break;
    default:  // SIOCGIFHWADDR
      request.ifr_hwaddr = {};
      request.ifr_hwaddr.sa_family = device->type;
      if (device->nic != nullptr) memcpy(request.ifr_hwaddr.sa_data, device->nic->mac, 6);
  }
  return 0;
}

// True: a request about devices, routes or neighbours. None goes to the real kernel, which would report this machine's,
// or change them.
bool is_of_devices(unsigned what) { return what >= SIOCADDRT && what <= 0x89ff; }

// Changes need a right that programs of a host do not have.
int refuse(unsigned what) {
  constexpr unsigned kReads[] = {SIOCETHTOOL,  SIOCGIFMAP,     SIOCGIFMEM,  SIOCGIFPFLAGS, SIOCGIFSLAVE,
                                 SIOCGIFENCAP, SIOCGIFDSTADDR, SIOCGARP,    SIOCGRARP,     SIOCGIFCOUNT,
                                 SIOCGIFBR,    SIOCGIFVLAN,    SIOCGMIIPHY, SIOCGMIIREG};
  return fail(std::ranges::find(kReads, what) != std::end(kReads) ? EOPNOTSUPP : EPERM);
}

// Number of bytes that have arrived by now (FIONREAD).
int count_readable(int fd, void* result) {
  const auto socket = find_socket(fd);
  abi::ThreadSlot* slot = simulated_slot();
  if (socket && slot != nullptr) {
    charge(*slot, abi::CpuCost::system_call);
    sync(*slot);
  }
  if (!socket || !socket->datagrams) return next_ioctl(fd, FIONREAD, result);
  *static_cast<int*>(result) = next_datagram_bytes(fd);
  return 0;
}

}  // namespace

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int getifaddrs(ifaddrs** result) noexcept {
  if (session() == nullptr) return next_getifaddrs(result);
  auto* entries = static_cast<Entry*>(::calloc(kMostEntries, sizeof(Entry)));
  if (entries == nullptr) return fail(ENOMEM);
  List list(entries);
  fill_list(list);
  *result = &entries->head;
  return 0;
}
RNICSIM_EXPORT void freeifaddrs(ifaddrs* list) noexcept {
  if (session() == nullptr) return next_freeifaddrs(list);
  ::free(list);
}

RNICSIM_EXPORT int ioctl(int fd, unsigned long what, ...) noexcept {
  va_list list;
  va_start(list, what);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (session() == nullptr) return next_ioctl(fd, what, argument);
  // The kernel uses only these 32 bits.
  switch (const auto code = unsigned(what); code) {
    case SIOCGIFCONF: return list_into(*static_cast<ifconf*>(argument));
    case SIOCGIFNAME: return name_by_index(*static_cast<ifreq*>(argument));
    case SIOCGIFINDEX:
    case SIOCGIFFLAGS:
    case SIOCGIFMTU:
    case SIOCGIFADDR:
    case SIOCGIFNETMASK:
    case SIOCGIFBRDADDR:
    case SIOCGIFTXQLEN:
    case SIOCGIFMETRIC:
    case SIOCGIFHWADDR: return describe(code, *static_cast<ifreq*>(argument));
    case FIONREAD: return count_readable(fd, argument);
    default: return is_of_devices(code) ? refuse(code) : next_ioctl(fd, what, argument);
  }
}

RNICSIM_EXPORT unsigned if_nametoindex(const char* name) noexcept {
  if (session() == nullptr) return next_if_nametoindex(name);
  const NetDevices devices(own_view());
  const NetDevice* device = devices.find(name);
  if (device != nullptr) return device->index;
  errno = ENODEV;
  return 0;
}
RNICSIM_EXPORT char* if_indextoname(unsigned index, char* name) noexcept {
  if (session() == nullptr) return next_if_indextoname(index, name);
  ifreq request{};
  request.ifr_ifindex = int(index);
  if (name_by_index(request) != 0) {
    errno = ENXIO;
    return nullptr;
  }
  return strcpy(name, request.ifr_name);
}
