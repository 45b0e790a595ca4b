// SPDX-License-Identifier: Apache-2.0
// Work requests on device memory: in its slots, and on the counter word.
#include <algorithm>
#include <cstring>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::uint32_t kShortWrite = 300;  // bytes; the owner checks each word

}  // namespace

std::optional<Slot> Walker::take_slot(const Region& region) {
  const auto at = region.device->take();
  if (!at) return std::nullopt;
  if (region.reaches(*at, DeviceMemory::kSlot)) return Slot{region.device, *at};
  region.device->give_back(*at);
  return std::nullopt;
}

// Draws a place in the owner's device memory; false: none.
bool Walker::draw_remote_slot(Walker& owner, const Domain& domain, Request& request, unsigned right) {
  auto& wr = request.wr;
  auto& send = request.send;
  std::vector<std::shared_ptr<Region>> fit;
  for (const auto& region : owner.regions())
    if (region->device && region->domain->root() == &domain && (region->access & right)) fit.push_back(region);
  const auto region = any(fit);
  if (!region) return false;
  DeviceMemory& device = *region->device;
  std::uint32_t at = device.word_at(), length = DeviceMemory::kWord;
  const bool writes = right == IBV_ACCESS_REMOTE_WRITE;
  if (writes) {
    const auto slot = send.length <= kShortWrite || dice_.once_in(8) ? device.take() : std::nullopt;
    if (!slot) return false;
    at = *slot;
    length = DeviceMemory::kSlot;
  } else if (right == IBV_ACCESS_REMOTE_READ) {
    if (send.length > DeviceMemory::kGuard) return false;
    length = send.length;
    at = device.guard_at() + dice_.below(DeviceMemory::kGuard - length + 1);
  }
  if (!region->reaches(at, length)) {
    if (writes) device.give_back(at);
    return false;
  }
  send.target = region;
  send.remote_slot = Slot{region->device, at};
  send.remote = send.granted ? Remote::good : Remote::bad;
  auto key = region->mr->rkey;
  if (dice_.once_in(25)) {
    key ^= 1u << dice_.below(8);
    send.remote = Remote::bad;
  }
  const std::uint64_t address = at - region->offset;
  if (right == IBV_ACCESS_REMOTE_ATOMIC && address % DeviceMemory::kWord != 0) send.remote = Remote::bad;
  if (right != IBV_ACCESS_REMOTE_ATOMIC) {
    wr.wr.rdma = {address, key};
    return true;
  }
  const bool adds = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  send.counts = adds ? dice_.between(1, 3) : 1;
  send.least = device.least;
  device.added += send.counts;
  const auto counted = [](std::uint64_t count) { return count * DeviceMemory::kUnit; };
  wr.wr.atomic = {address, counted(adds ? send.counts : send.least), counted(send.least + 1), key};
  return true;
}

// Checks the effect of a successful send.
void Walker::check_remote_slot(const Send& send) {
  if (!send.target->intact) return;
  const auto& [device, at] = *send.remote_slot;
  const bool brings = send.region->intact && !send.region->null;
  const std::uint8_t* bytes = arena_.at(send.cell);
  if (send.counts != 0) {
    if (!brings) return;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    const std::uint64_t count = word & 0xffff;
    const bool adds = send.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (word != count * DeviceMemory::kUnit || count < send.least || count + (adds ? send.counts : 0) > device->added)
      return fail("an atomic on device memory brought " + std::to_string(word));
    const bool counts = adds || count == send.least;
    device->least = std::max(device->least, count + (counts ? send.counts : 0));
  } else if (send.opcode == IBV_WR_RDMA_READ) {
    for (std::uint32_t i = 0; brings && i < send.length; ++i)
      if (bytes[i] != device->guard(at + i)) return fail("a READ of device memory brought something else");
  } else {
    device->unchecked.insert(at);
    town_.walkers[send.owner]->written_.push_back(
        {{device, at}, send.length, send.id, send.zeros, now() + Duration{3'000'000}});
  }
}

// Acknowledged data may not be in memory yet: checked later.
void Walker::check_slots() {
  while (!written_.empty() && written_.front().from <= now() && !town_.broken) {
    const Written written = written_.front();
    written_.pop_front();
    DeviceMemory& device = *written.slot.device;
    if (!device.alive) continue;
    std::vector<std::uint8_t> bytes((written.length + 3) / 4 * 4);
    expect("ibv_memcpy_from_dm", ibv_memcpy_from_dm(bytes.data(), device.dm, written.slot.at, bytes.size()), {0});
    device.unchecked.erase(written.slot.at);
    const bool right =
        written.zeros ? is_zero(bytes.data(), written.length) : has_pattern(bytes.data(), written.length, written.id);
    if (!right) fail("a WRITE wrote something else to device memory");
  }
}

}  // namespace rnicsim::testing
