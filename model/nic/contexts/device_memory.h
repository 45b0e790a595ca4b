// SPDX-License-Identifier: Apache-2.0
// Memory on the device. Work requests reach it through regions of kind device_memory, the CPU through the BAR. The port
// serves one access at a time, in order, one line each interval. Data is read or written one latency later, so a read
// sees earlier writes. Stores and loads of the CPU occupy the port for their lines and take effect at once: a doorbell
// after a store finds the data.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/delay_line.h"
#include "model/base/params.h"
#include "model/base/payload.h"
#include "model/nic/contexts/device_memory_params.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"

namespace rnicsim::nic {

class DeviceMemory : public BarMemory {
 public:
  // Place::pasid of device memory; Place::address is then an offset from the first byte.
  static constexpr Pasid kPlace = ~Pasid{0};

  // The size is `params.size`, at most `most` bytes.
  DeviceMemory(const DeviceMemoryParams& params, std::uint64_t most);

  std::uint64_t size() const { return bytes_.size(); }
  void read(std::uint64_t address, std::uint32_t bytes, const DmaReply& reply);
  // Returns the time at which the data is in place. `discard`: the payload is not stored (timing only).
  Duration write(std::uint64_t address, Payload&& data, const DmaReply& reply, bool discard);
  // Replies when the writes so far are in place.
  void after_writes(const DmaReply& reply);

  // --- CPU accesses at the present time. False: out of range, or not whole aligned words of 4 bytes.
  bool store(std::uint64_t offset, std::span<const std::byte> data) override;
  bool load(std::uint64_t offset, std::span<std::byte> out) override;

  // Drops accesses under way, and zeroes all bytes, so that the next owner cannot read old data.
  void reset();

  void count_turn() { ++counters_.turns; }
  const DeviceMemoryCounters& counters() const { return counters_; }

 private:
  struct Access {
    enum class Kind : std::uint8_t { read, write, nothing };
    Kind kind = Kind::nothing;
    std::uint64_t address = 0;
    Payload data;  // a read: its length
    DmaReply reply;
  };

  bool holds(std::uint64_t address, std::uint64_t bytes) const;
  bool is_word(std::uint64_t offset, std::size_t bytes) const;
  Duration occupy(std::uint64_t address, std::uint64_t bytes);
  void access_due();

  const DeviceMemoryParams params_;
  std::vector<std::byte> bytes_;
  Duration free_;
  DelayLine<Access> under_way_{[this] { access_due(); }};
  DeviceMemoryCounters counters_;
};

}  // namespace rnicsim::nic
