// Memory on the device: work requests reach it through regions of its own kind, the CPU through the BAR. A port takes
// one access at a time, a line each interval, in the order they come; what is read is there, and what is written is in
// its place, a latency later. So a read sees the writes ahead of it. The CPU's stores and loads take their lines' time,
// and effect at once: the doorbell behind a store finds it done.
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
  // Instead of a process's PASID in a place: it lies here, and its address counts from the first byte.
  static constexpr Pasid kPlace = ~Pasid{0};

  // Of at most `most` bytes.
  DeviceMemory(const DeviceMemoryParams& params, std::uint64_t most);

  std::uint64_t size() const { return bytes_.size(); }
  void read(std::uint64_t address, std::uint32_t bytes, const DmaReply& reply);
  // When it will be in its place. `discard`: payload that nobody looks at (timing only).
  Duration write(std::uint64_t address, Payload&& data, const DmaReply& reply, bool discard);
  // The writes so far are in their places.
  void after_writes(const DmaReply& reply);

  // --- The CPU's, at the present time. False: not inside, or not whole aligned words of 4 bytes.
  bool store(std::uint64_t offset, std::span<const std::byte> data) override;
  bool load(std::uint64_t offset, std::span<std::byte> out) override;

  // What is under way is forgotten, and all bytes are zeros: what the next owner reads tells nothing of the last.
  void reset();

  void count_turn() { ++counters_.turns; }
  const DeviceMemoryCounters& counters() const { return counters_; }

 private:
  struct Access {
    enum class Kind : std::uint8_t { read, write, nothing };
    Kind kind = Kind::nothing;
    std::uint64_t address = 0;
    Payload data;               // of a read: its length
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
