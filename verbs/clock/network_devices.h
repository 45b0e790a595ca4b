// The network devices of a simulated host: `lo`, and those of its NICs.
#pragma once

#include <net/if.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// What a host's kernel knows of the network.
struct HostView {
  std::span<const abi::NetworkInterface> all;  // of all hosts
  std::uint32_t host = 0;                      // whose view it is: a number as NetworkInterface has it
  // What a file of the host says, without the end of its line; empty: it has none.
  std::string_view (*read_file)(const char* path, std::span<char> room) = nullptr;
};

inline constexpr std::uint32_t kQueueLength = 1000;  // of each device, as Linux has it

struct NetDevice {
  char name[IFNAMSIZ];
  unsigned index;
  unsigned flags;  // IFF_
  int mtu;
  unsigned short type;               // ARPHRD_
  const abi::NetworkInterface* nic;  // nullptr: `lo`

  // Of lo zeroes.
  std::array<std::uint8_t, 6> mac() const;
  std::array<std::uint8_t, 4> ipv4() const;
  std::array<std::uint8_t, 4> ipv4_broadcast() const;  // of a NIC
  unsigned ipv4_prefix() const { return nic == nullptr ? 8 : nic->ipv4_prefix; }
};

class NetDevices {
 public:
  explicit NetDevices(const HostView& view);
  const NetDevice* begin() const { return all_.data(); }
  const NetDevice* end() const { return all_.data() + count_; }
  std::size_t size() const { return count_; }
  // nullptr: there is none.
  const NetDevice* find(const char* name) const;
  const NetDevice* find(int index) const;

 private:
  std::array<NetDevice, 1 + abi::kMaxDevices> all_;
  std::size_t count_ = 0;
};

// So many of the first bits are set.
void fill_mask(std::uint8_t* bytes, std::size_t size, unsigned prefix);

}  // namespace rnicsim::clock
