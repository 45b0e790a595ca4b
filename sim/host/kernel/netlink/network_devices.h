// SPDX-License-Identifier: Apache-2.0
// The network devices of a simulated host: `lo` and those of its NICs.
#pragma once

#include <net/if.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/abi/attach.h"

namespace rnicsim::clock {

// The network as the kernel of one host sees it.
struct HostView {
  std::span<const abi::NetworkInterface> all;  // interfaces of all hosts
  std::uint32_t host = 0;                      // number of the host, as in NetworkInterface
  // Reads a file of the host without its last newline; empty: no such file.
  std::string_view (*read_file)(const char* path, std::span<char> room) = nullptr;
};

inline constexpr std::uint32_t kQueueLength = 1000;  // Linux's default for each device

struct NetDevice {
  char name[IFNAMSIZ];
  unsigned index;
  unsigned flags;  // IFF_
  int mtu;
  unsigned short type;               // ARPHRD_
  const abi::NetworkInterface* nic;  // nullptr: `lo`

  // All zeroes for `lo`.
  std::array<std::uint8_t, 6> mac() const;
  std::array<std::uint8_t, 4> ipv4() const;
  std::array<std::uint8_t, 4> ipv4_broadcast() const;  // only for NICs
  unsigned ipv4_prefix() const { return nic == nullptr ? 8 : nic->ipv4_prefix; }
};

class NetDevices {
 public:
  explicit NetDevices(const HostView& view);
  const NetDevice* begin() const { return all_.data(); }
  const NetDevice* end() const { return all_.data() + count_; }
  std::size_t size() const { return count_; }
  // nullptr: no such device.
  const NetDevice* find(const char* name) const;
  const NetDevice* find(int index) const;

 private:
  std::array<NetDevice, 1 + abi::kMaxDevices> all_;
  std::size_t count_ = 0;
};

// Sets the first `prefix` bits, and clears the others.
void fill_mask(std::uint8_t* bytes, std::size_t size, unsigned prefix);

}  // namespace rnicsim::clock
