// SPDX-License-Identifier: Apache-2.0
// Device memory: allocated, registered and freed. Objects in use are busy.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::size_t kMostDevices = 3, kMostRegions = 16;
constexpr unsigned kAllOfDevice =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t kLogPage = 12;

std::uint32_t whole_words(std::uint32_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

DeviceMemory::DeviceMemory(std::uint32_t owner, std::uint32_t context, std::uint32_t slots)
    : walker_(owner), context_(context), slots_(slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) free_.push_back({slot * kSlot, {}});
}

std::optional<std::uint32_t> DeviceMemory::take() {
  const auto found = std::ranges::find_if(free_, [this](const Free& one) { return may_be_taken(one); });
  if (found == free_.end()) return std::nullopt;
  const auto slot = found->slot;
  free_.erase(found);
  return slot;
}

bool DeviceMemory::has_slot() const {
  return std::ranges::any_of(free_, [this](const Free& one) { return may_be_taken(one); });
}

// True: a range of that many pages is free for certain, wherever the other allocations lie.
bool Walker::has_room_for(std::uint32_t pages) const {
  std::uint32_t taken = 0;
  const auto& known = town_.devices[host()];
  for (const auto& device : known) taken += device->pages();
  const auto all = std::uint32_t(device_bytes_ / DeviceMemory::kPage);
  const auto gaps = std::uint32_t(known.size()) + 1;
  return taken <= all && pages <= (all - taken + gaps - 1) / gaps;
}

void Walker::make_device_memory(std::uint32_t context) {
  if (devices_.size() >= kMostDevices || (!devices_.empty() && dice_.once_in(2)))
    return make_device_region(dice_.one_of(devices_));
  auto device = std::make_shared<DeviceMemory>(index_, context, dice_.between(1, 8));
  ibv_alloc_dm_attr wanted{device->length(), dice_.once_in(4) ? dice_.below(20) : 0, 0};
  const bool fits = has_room_for(device->pages()) && wanted.log_align_req <= kLogPage;
  // Entered before the call: another process may be within a call at the same time.
  town_.devices[host()].insert(device);
  device->dm = ibv_alloc_dm(contexts_[context], &wanted);
  if (!expect("ibv_alloc_dm", made(device->dm), fits ? std::set{0} : std::set{0, ENOMEM}) || device->dm == nullptr) {
    town_.devices[host()].erase(device);
    return;
  }
  if (device->dm->handle % (1u << wanted.log_align_req) != 0) fail("ibv_alloc_dm: not aligned");
  std::array<std::uint8_t, DeviceMemory::kGuard> bytes;
  for (const auto at : {0u, device->guard_at()}) {
    expect("ibv_memcpy_from_dm", ibv_memcpy_from_dm(bytes.data(), device->dm, at, bytes.size()), {0});
    if (!is_zero(bytes.data(), bytes.size())) fail("ibv_alloc_dm gave memory that is not zero");
  }
  for (std::uint32_t i = 0; i < bytes.size(); ++i) bytes[i] = device->guard(device->guard_at() + i);
  expect("ibv_memcpy_to_dm", ibv_memcpy_to_dm(device->dm, device->guard_at(), bytes.data(), bytes.size()), {0});
  devices_.push_back(device);
  make_device_region(device);
}

void Walker::make_device_region(const std::shared_ptr<DeviceMemory>& device) {
  auto region = std::make_shared<Region>();
  region->domain = any_stocked_domain(device->context());
  if (!region->domain || regions_.size() >= kMostRegions) return;
  region->device = device;
  if (dice_.once_in(4)) region->offset = dice_.below(device->length());
  region->length =
      dice_.once_in(4) ? dice_.below(device->length() - region->offset + 1) : device->length() - region->offset;
  region->access = IBV_ACCESS_ZERO_BASED | (dice_.once_in(4) ? dice_.below(16) : kAllOfDevice);
  if (region->access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) region->access |= IBV_ACCESS_LOCAL_WRITE;
  region->mr = ibv_reg_dm_mr(region->domain->pd, device->dm, region->offset, region->length, region->access);
  if (!expect("ibv_reg_dm_mr", made(region->mr), {0})) return;
  ++region->domain->users;
  ++device->users;
  regions_.push_back(region);
}

// True: the guarded area is unchanged, and the counter word has a possible value.
bool Walker::is_whole(DeviceMemory& device) {
  std::array<std::uint8_t, DeviceMemory::kGuard + DeviceMemory::kWord> bytes;
  expect("ibv_memcpy_from_dm", ibv_memcpy_from_dm(bytes.data(), device.dm, device.guard_at(), bytes.size()), {0});
  for (std::uint32_t i = 0; i < DeviceMemory::kGuard; ++i)
    if (bytes[i] != device.guard(device.guard_at() + i)) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, &bytes[DeviceMemory::kGuard], sizeof word);
  const auto count = word & 0xffff;
  return word == count * DeviceMemory::kUnit && count >= device.least && count <= device.added;
}

void Walker::remove(const std::shared_ptr<DeviceMemory>& device) {
  const int wanted = device->users != 0 ? EBUSY : 0;
  if (wanted == 0 && !is_whole(*device)) fail("device memory that nobody may write changed");
  device->alive = wanted != 0;
  if (!expect("ibv_free_dm", ibv_free_dm(device->dm), {wanted}) || wanted != 0) return;
  town_.devices[host()].erase(device);
  std::erase(devices_, device);
}

void Walker::break_device_memory() {
  const auto device = any(devices_);
  if (!device) return;
  ibv_dm* dm = device->dm;
  const auto context = device->context();
  const auto domain = any_domain(context), stranger = any_domain(1 - context);
  if (!domain || !stranger) return;
  ibv_alloc_dm_attr wanted{64, 0, 0};
  std::array<std::uint8_t, 16> bytes{};
  const auto copy = [&](std::uint64_t offset, std::size_t length) {
    return dice_.once_in(2) ? ibv_memcpy_to_dm(dm, offset, bytes.data(), length)
                            : ibv_memcpy_from_dm(bytes.data(), dm, offset, length);
  };
  const auto region = [&](ibv_pd* pd, std::uint64_t offset, std::size_t length, unsigned access) {
    return made(ibv_reg_dm_mr(pd, dm, offset, length, access));
  };
  constexpr unsigned kAccess = IBV_ACCESS_ZERO_BASED | kAllOfDevice;
  switch (dice_.below(13)) {
    case 0:
      wanted.length = 0;
      expect("ibv_alloc_dm of nothing", made(ibv_alloc_dm(contexts_[context], &wanted)), {EINVAL});
      return;
    case 1:
      wanted.length = device_bytes_ + (dice_.once_in(2) ? 1 : dice_.bits() >> 1);
      expect("ibv_alloc_dm of more than there is", made(ibv_alloc_dm(contexts_[context], &wanted)), {ENOMEM});
      return;
    case 2: wanted.comp_mask = 1u << dice_.below(32); [[fallthrough]];
    case 3:
      if (wanted.comp_mask == 0) wanted.log_align_req = dice_.between(64, 300);
      expect("ibv_alloc_dm of nonsense", made(ibv_alloc_dm(contexts_[context], &wanted)), {EINVAL});
      return;
    case 4: garbled(dm->handle, "ibv_free_dm", [&] { return ibv_free_dm(dm); }); return;
    case 5: swapped(dm->context, "ibv_free_dm", [&] { return ibv_free_dm(dm); }); return;
    case 6: garbled(dm->handle, "ibv_memcpy_to_dm", [&] { return ibv_memcpy_to_dm(dm, 0, bytes.data(), 4); }); return;
    case 7: garbled(dm->handle, "ibv_reg_dm_mr", [&] { return region(domain->pd, 0, 64, kAccess); }); return;
    case 8: expect("ibv_reg_dm_mr in another context", region(stranger->pd, 0, 64, kAccess), {ENOENT}); return;
    case 9: {
      const auto offset = dice_.below(device->length() + 1);
      const auto length = std::size_t{device->length()} - offset + dice_.between(1, 9);
      expect("ibv_reg_dm_mr past the end", region(domain->pd, offset, length, kAccess), {EINVAL});
      expect("ibv_reg_dm_mr far past the end", region(domain->pd, ~0ull - dice_.below(8), 64, kAccess), {EINVAL});
      return;
    }
    case 10:
      expect("ibv_reg_dm_mr of bad rights",
             region(domain->pd, 0, 64,
                    dice_.once_in(2) ? kAllOfDevice : unsigned(IBV_ACCESS_ZERO_BASED) | IBV_ACCESS_REMOTE_WRITE),
             {EINVAL});
      return;
    case 11: {
      const auto length = dice_.between(1, 4) * 4, at = device->length() / 4 * 4 - length + dice_.between(1, 9) * 4;
      expect("a copy past the end of device memory", copy(at, length), {EINVAL});
      expect("a copy far past the end of device memory", copy(~0ull - 3, length), {EINVAL});
      return;
    }
    default:
      expect("a copy of no whole words", copy(dice_.below(4) * 4 + dice_.between(1, 3), 4), {EINVAL});
      expect("a copy of no whole words", copy(0, dice_.between(1, 3)), {EINVAL});
  }
}

void Walker::store_slot(const Slot& slot, std::uint32_t cell, std::uint32_t length) {
  expect("ibv_memcpy_to_dm", ibv_memcpy_to_dm(slot.device->dm, slot.at, arena_.at(cell), whole_words(length)), {0});
}

void Walker::load_slot(const Slot& slot, std::uint32_t cell, std::uint32_t length) {
  if (!slot.device->alive) return;
  expect("ibv_memcpy_from_dm", ibv_memcpy_from_dm(arena_.at(cell), slot.device->dm, slot.at, whole_words(length)), {0});
}

}  // namespace rnicsim::testing
