// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/device_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnicsim::nic {

void DeviceMemoryParams::describe(ParamVisitor& visit) {
  visit.param("size", size, "memory on the device that programs can allocate; as ConnectX-5's; 0: none",
              {0, double(kMost)});
  visit.param("latency", latency, "fixed part of an access to the device's memory; docs/timing.md", {0, 1e9});
  visit.param("line_interval", line_interval, "time of each line of 64 bytes (or part) of an access", {0, 1e9});
  visit.refuse(size.bytes % kPage != 0, "size", "is not a multiple of 4 KiB");
}

void DeviceMemoryCounters::describe(CounterVisitor& visit) const {
  visit.counter("reads", reads, "requests", "reads of the device's own memory for work requests");
  visit.counter("read_bytes", read_bytes, "bytes", "bytes of these accesses");
  visit.counter("writes", writes, "requests", "writes to the device's own memory for work requests");
  visit.counter("write_bytes", write_bytes, "bytes", "bytes of these accesses");
  visit.counter("cpu_loads", cpu_loads, "requests", "words that the CPU loaded from the device's own memory");
  visit.counter("cpu_stores", cpu_stores, "requests", "stores of the CPU to the device's own memory");
  visit.counter("turns", turns, "turns",
                "writes of a queue pair that waited until its writes to the other memory (host or device) had landed");
  visit.busy("busy", busy_ps, 1, "time that the memory's port was busy");
  visit.waited("wait", wait_ps, "time that accesses waited, sum of all accesses");
}

DeviceMemory::DeviceMemory(const DeviceMemoryParams& params, std::uint64_t most)
    : params_(params), bytes_(std::min(params.size.bytes, most)) {}

void DeviceMemory::read(std::uint64_t address, std::uint32_t bytes, const DmaReply& reply) {
  ++counters_.reads;
  counters_.read_bytes += bytes;
  const auto done = occupy(address, bytes) + params_.latency;
  under_way_.push(done, {Access::Kind::read, address, Payload(bytes), reply});
}

Duration DeviceMemory::write(std::uint64_t address, Payload&& data, const DmaReply& reply, bool discard) {
  ++counters_.writes;
  counters_.write_bytes += data.size();
  const auto done = occupy(address, data.size()) + params_.latency;
  under_way_.push(done, {discard ? Access::Kind::nothing : Access::Kind::write, address, std::move(data), reply});
  return done;
}

void DeviceMemory::after_writes(const DmaReply& reply) {
  under_way_.push(std::max(now(), free_) + params_.latency, {Access::Kind::nothing, 0, {}, reply});
}

bool DeviceMemory::store(std::uint64_t offset, std::span<const std::byte> data) {
  if (!is_word(offset, data.size())) return false;
  ++counters_.cpu_stores;
  occupy(offset, data.size());
  std::memcpy(bytes_.data() + offset, data.data(), data.size());
  return true;
}

bool DeviceMemory::load(std::uint64_t offset, std::span<std::byte> out) {
  if (!is_word(offset, out.size())) return false;
  ++counters_.cpu_loads;
  occupy(offset, out.size());
  std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return true;
}

void DeviceMemory::reset() {
  under_way_.clear();
  free_ = now();
  std::ranges::fill(bytes_, std::byte{});
}

bool DeviceMemory::holds(std::uint64_t address, std::uint64_t bytes) const {
  return address <= bytes_.size() && bytes <= bytes_.size() - address;
}

bool DeviceMemory::is_word(std::uint64_t offset, std::size_t bytes) const {
  constexpr std::uint64_t kWord = 4;
  return bytes != 0 && offset % kWord == 0 && bytes % kWord == 0 && holds(offset, bytes);
}

// Returns the time until which the port is busy with the access.
Duration DeviceMemory::occupy(std::uint64_t address, std::uint64_t bytes) {
  constexpr auto kLine = DeviceMemoryParams::kLine;
  const auto lines = bytes == 0 ? 0 : (address % kLine + bytes - 1) / kLine + 1;
  const auto busy = params_.line_interval * static_cast<std::int64_t>(lines);
  const auto begins = std::max(now(), free_);
  counters_.wait_ps += static_cast<Counter>((begins - now()).ps);
  counters_.busy_ps += static_cast<Counter>(busy.ps);
  return free_ = begins + busy;
}

void DeviceMemory::access_due() {
  Access access;
  while (under_way_.pop_due(access)) {
    auto result = AccessResult::ok;
    const auto bytes = access.data.size();
    if (access.kind != Access::Kind::nothing && !holds(access.address, bytes)) {
      result = AccessResult::bus_error;
    } else if (access.kind == Access::Kind::read && bytes != 0) {
      std::memcpy(access.data.writable().data(), bytes_.data() + access.address, bytes);
    } else if (access.kind == Access::Kind::write && bytes != 0) {
      std::memcpy(bytes_.data() + access.address, access.data.bytes().data(), bytes);
    }
    auto data = access.kind == Access::Kind::read ? std::move(access.data) : Payload{};
    // The client's callback may reset the device.
    const auto [client, kind, tag] = access.reply;
    if (client != nullptr) client->dma_done(kind, tag, result, std::move(data));
  }
}

}  // namespace rnicsim::nic
