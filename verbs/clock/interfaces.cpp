// The network devices of a simulated host, as getifaddrs and the old ioctls tell of them: `lo`, and those of its NICs.

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <new>

#include "model/abi/host_files.h"
#include "verbs/clock/attach.h"
#include "verbs/clock/datagrams.h"
#include "verbs/clock/network.h"
#include "verbs/clock/next.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(getifaddrs);
RNICSIM_NEXT(freeifaddrs);
RNICSIM_NEXT(ioctl);
RNICSIM_NEXT(if_nametoindex);
RNICSIM_NEXT(if_indextoname);

namespace rnicsim::clock {
namespace {

constexpr unsigned kLoopbackFlags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
constexpr unsigned kEthernetFlags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST;
constexpr unsigned short kArpLoopback = 772, kArpEthernet = 1;

struct Interface {
  char name[IFNAMSIZ];
  unsigned index;
  unsigned flags;
  int mtu;
  unsigned short type;  // ARPHRD_
  const abi::NetworkInterface* nic;  // nullptr: `lo`
};

// Those of this host.
class Interfaces {
 public:
  Interfaces() {
    all_[count_++] = {"lo", 1, kLoopbackFlags, 65536, kArpLoopback, nullptr};
    for (std::uint32_t device = 0; device < abi::kMaxDevices; ++device) {
      const abi::NetworkInterface* nic = session()->own_interface(device);
      if (nic == nullptr) break;
      Interface& added = all_[count_++];
      added = {"", abi::net_device_index(device), kEthernetFlags, int(abi::kNetDeviceMtu), kArpEthernet, nic};
      snprintf(added.name, sizeof added.name, "%s%u", abi::kNetDevicePrefix, device);
    }
  }
  const Interface* begin() const { return all_.data(); }
  const Interface* end() const { return all_.data() + count_; }
  std::size_t size() const { return count_; }
  const Interface* find(const char* name) const {
    const auto found = std::find_if(begin(), end(), [&](const auto& each) { return strcmp(each.name, name) == 0; });
    return found != end() ? found : nullptr;
  }

 private:
  std::array<Interface, 1 + abi::kMaxDevices> all_;
  std::size_t count_ = 0;
};

void fill_mask(std::uint8_t* bytes, std::size_t size, unsigned prefix) {
  for (std::size_t i = 0; i < size; ++i, prefix -= std::min(prefix, 8u))
    bytes[i] = std::uint8_t(0xff00u >> std::min(prefix, 8u));
}

sockaddr_in v4_address(const Interface& interface) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (interface.nic == nullptr) {
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    memcpy(&address.sin_addr, interface.nic->ipv4, 4);
  }
  return address;
}
sockaddr_in v4_mask(const Interface& interface) {
  sockaddr_in mask{};
  mask.sin_family = AF_INET;
  fill_mask(reinterpret_cast<std::uint8_t*>(&mask.sin_addr), 4,
            interface.nic == nullptr ? 8 : interface.nic->ipv4_prefix);
  return mask;
}
sockaddr_in v4_broadcast(const Interface& interface) {
  sockaddr_in address = v4_address(interface);
  address.sin_addr.s_addr |= ~v4_mask(interface).sin_addr.s_addr;
  return address;
}

// An entry of getifaddrs' list, which is one block of memory with the entries in a row.
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

  void add(const Interface& interface, const void* address, std::size_t bytes, const void* mask,
           const void* broadcast) {
    Entry& entry = *new (entries_ + count_) Entry{};
    if (count_ > 0) entries_[count_ - 1].head.ifa_next = &entry.head;
    ++count_;
    strncpy(entry.name, interface.name, sizeof entry.name - 1);
    entry.head.ifa_name = entry.name;
    entry.head.ifa_flags = interface.flags;
    const auto put = [&](sockaddr*& where, sockaddr_storage& room, const void* from) {
      if (from == nullptr) return;
      memcpy(&room, from, bytes);
      where = reinterpret_cast<sockaddr*>(&room);
    };
    put(entry.head.ifa_addr, entry.address, address);
    put(entry.head.ifa_netmask, entry.mask, mask);
    put(entry.head.ifa_broadaddr, entry.broadcast, broadcast);
  }

  void add_packet(const Interface& interface) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = int(interface.index);
    address.sll_hatype = interface.type;
    address.sll_halen = 6;
    if (interface.nic != nullptr) memcpy(address.sll_addr, interface.nic->mac, 6);
    add(interface, &address, sizeof address, nullptr, nullptr);
  }
  void add_v4(const Interface& interface) {
    const sockaddr_in address = v4_address(interface), mask = v4_mask(interface), broadcast = v4_broadcast(interface);
    add(interface, &address, sizeof address, &mask, interface.nic != nullptr ? &broadcast : nullptr);
  }
  void add_v6(const Interface& interface, const std::uint8_t* ip, unsigned prefix, unsigned scope) {
    sockaddr_in6 address{}, mask{};
    address.sin6_family = mask.sin6_family = AF_INET6;
    memcpy(&address.sin6_addr, ip, 16);
    address.sin6_scope_id = scope;
    fill_mask(mask.sin6_addr.s6_addr, 16, prefix);
    add(interface, &address, sizeof address, &mask, nullptr);
  }

 private:
  Entry* const entries_;
  std::size_t count_ = 0;
};

// Of `lo` three, of each NIC four.
constexpr std::size_t kMostEntries = 3 + 4 * abi::kMaxDevices;

void fill_list(List& list) {
  const Interfaces interfaces;
  for (const Interface& interface : interfaces) list.add_packet(interface);
  for (const Interface& interface : interfaces) list.add_v4(interface);
  for (const Interface& interface : interfaces) {
    const abi::NetworkInterface* nic = interface.nic;
    if (nic == nullptr) list.add_v6(interface, in6addr_loopback.s6_addr, 128, 0);
    if (nic != nullptr && nic->ipv6_prefix != 0) list.add_v6(interface, nic->ipv6, nic->ipv6_prefix, 0);
    if (nic != nullptr) list.add_v6(interface, abi::link_local_of(*nic).data(), 64, interface.index);
  }
}

int fail(int error) {
  errno = error;
  return -1;
}

// SIOCGIFCONF: the devices with their IPv4 addresses.
int list_into(ifconf& wanted) {
  const Interfaces interfaces;
  const bool asks_size = wanted.ifc_buf == nullptr;
  const std::size_t room = asks_size ? interfaces.size() : std::size_t(wanted.ifc_len) / sizeof(ifreq);
  std::size_t count = 0;
  for (const Interface& interface : interfaces) {
    if (count == room) break;
    const std::size_t place = count++;
    if (asks_size) continue;
    ifreq& entry = wanted.ifc_req[place];
    entry = {};
    strncpy(entry.ifr_name, interface.name, sizeof entry.ifr_name - 1);
    const sockaddr_in address = v4_address(interface);
    memcpy(&entry.ifr_addr, &address, sizeof address);
  }
  wanted.ifc_len = int(count * sizeof(ifreq));
  return 0;
}

int name_by_index(ifreq& request) {
  for (const Interface& interface : Interfaces()) {
    if (int(interface.index) != request.ifr_ifindex) continue;
    strncpy(request.ifr_name, interface.name, sizeof request.ifr_name - 1);
    return 0;
  }
  return fail(ENODEV);
}

int describe(unsigned long what, ifreq& request) {
  const Interfaces interfaces;
  const Interface* interface = interfaces.find(request.ifr_name);
  if (interface == nullptr) return fail(ENODEV);
  const auto put = [&](const sockaddr_in& address) { memcpy(&request.ifr_addr, &address, sizeof address); };
  switch (what) {
    case SIOCGIFINDEX: request.ifr_ifindex = int(interface->index); break;
    case SIOCGIFFLAGS: request.ifr_flags = short(interface->flags); break;
    case SIOCGIFMTU: request.ifr_mtu = interface->mtu; break;
    case SIOCGIFADDR: put(v4_address(*interface)); break;
    case SIOCGIFNETMASK: put(v4_mask(*interface)); break;
    case SIOCGIFBRDADDR: put(v4_broadcast(*interface)); break;
    default:  // SIOCGIFHWADDR
      request.ifr_hwaddr = {};
      request.ifr_hwaddr.sa_family = interface->type;
      if (interface->nic != nullptr) memcpy(request.ifr_hwaddr.sa_data, interface->nic->mac, 6);
  }
  return 0;
}

// What arrived by now.
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
  switch (what) {
    case SIOCGIFCONF: return list_into(*static_cast<ifconf*>(argument));
    case SIOCGIFNAME: return name_by_index(*static_cast<ifreq*>(argument));
    case SIOCGIFINDEX:
    case SIOCGIFFLAGS:
    case SIOCGIFMTU:
    case SIOCGIFADDR:
    case SIOCGIFNETMASK:
    case SIOCGIFBRDADDR:
    case SIOCGIFHWADDR: return describe(what, *static_cast<ifreq*>(argument));
    case FIONREAD: return count_readable(fd, argument);
    default: return next_ioctl(fd, what, argument);
  }
}

RNICSIM_EXPORT unsigned if_nametoindex(const char* name) noexcept {
  if (session() == nullptr) return next_if_nametoindex(name);
  const Interfaces interfaces;
  const Interface* interface = interfaces.find(name);
  if (interface != nullptr) return interface->index;
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
