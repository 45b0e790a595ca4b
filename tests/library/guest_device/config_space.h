// SPDX-License-Identifier: Apache-2.0
// Configuration space of a PCI function with BAR0 of 4 KiB (64 bits, prefetchable), function-level reset and one MSI-X
// vector, whose table is at 0x800 of BAR0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

class ConfigSpace {
 public:
  static constexpr unsigned kBytes = 256, kBarBytes = 4096, kMsixTable = 0x800;

  std::function<void()> reset_function;

  ConfigSpace() { reset(); }

  bool memory_enabled() const { return (bytes_[kCommand] & 2) != 0; }
  bool msix_enabled() const { return (bytes_[kMsix + 3] & 0x80) != 0; }

  bool access(bool write, std::uint64_t offset, unsigned char* data, unsigned length) {
    if (offset > kBytes || length > kBytes - offset) return false;
    if (!write) {
      std::memcpy(data, &bytes_[offset], length);
      return true;
    }
    const bool resets = offset <= kReset && kReset < offset + length && (data[kReset - offset] & 0x80) != 0;
    for (unsigned i = 0; i < length; ++i) {
      const auto may = writable_[offset + i];
      bytes_[offset + i] = static_cast<std::uint8_t>((bytes_[offset + i] & ~may) | (data[i] & may));
    }
    if (!resets) return true;
    reset();
    if (reset_function) reset_function();
    return true;
  }

 private:
  static constexpr unsigned kCommand = 4, kBar0 = 0x10, kExpress = 0x40, kReset = kExpress + 9, kMsix = 0x80;

  void put(unsigned offset, std::initializer_list<std::uint8_t> values) {
    std::copy(values.begin(), values.end(), &bytes_[offset]);
  }

  void reset() {
    bytes_ = {};
    writable_ = {};
    put(0x00, {0x34, 0x12, 0x01, 0x00});              // vendor 1234, device 0001
    put(0x06, {0x10, 0x00, 0x01, 0x00, 0x00, 0xff});  // capabilities; revision 1; no class
    put(kBar0, {0x0c});
    put(0x34, {kExpress});
    put(kExpress, {0x10, kMsix, 0x02, 0x00, 0x00, 0x00, 0x00, 0x10});  // endpoint; function-level reset
    put(kMsix, {0x11, 0x00, 0x00, 0x00, kMsixTable & 0xff, kMsixTable >> 8, 0, 0, 0x00, 0x0c, 0, 0});
    writable_[kCommand] = 0x06;
    writable_[kBar0 + 1] = 0xf0;
    std::fill(&writable_[kBar0 + 2], &writable_[kBar0 + 8], 0xff);
    writable_[kMsix + 3] = 0xc0;
  }

  std::array<std::uint8_t, kBytes> bytes_, writable_;
};
