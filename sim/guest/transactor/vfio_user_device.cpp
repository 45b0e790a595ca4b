// SPDX-License-Identifier: Apache-2.0
// Regions and interrupts of the function in vfio-user.
#include <fmt/format.h>

#include <algorithm>

#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/transactor/vfio_user.h"
#include "sim/guest/transactor/vfio_user_bodies.h"

namespace rnicsim::sim {
namespace {

using namespace vfio_user;

std::uint64_t bytes_of_region(const GuestPort& port, std::uint32_t region) {
  if (region >= kRegions) throw RequestError(EINVAL, fmt::format("no region {}", region));
  return region == kBar0 ? port.bar_bytes() : region == kConfig ? port.config_bytes() : 0;
}

void refuse_outside(const GuestPort& port, std::uint32_t region, std::uint64_t offset, std::uint64_t count) {
  const auto size = bytes_of_region(port, region);
  if (offset > size || count > size - offset)
    throw RequestError(
        EINVAL, fmt::format("{} bytes at {:#x} are not inside region {}, of {} bytes", count, offset, region, size));
}

}  // namespace

std::vector<std::byte> VfioUser::region_info(Bytes body) const {
  const auto asked = query_of<RegionInfo>(body);
  const auto size = bytes_of_region(port_, asked.index);
  RegionInfo info;
  info.argsz = sizeof info;
  info.flags = size != 0 ? RegionInfo::kRead | RegionInfo::kWrite : 0;
  info.index = asked.index;
  info.bytes = size;
  return bytes_of(info);
}

std::vector<std::byte> VfioUser::irq_info(Bytes body) const {
  const auto asked = query_of<IrqInfo>(body);
  if (asked.index >= kIrqs) throw RequestError(EINVAL, fmt::format("unknown interrupt type {}", asked.index));
  const bool there = asked.index == kMsix;
  return bytes_of(IrqInfo{sizeof(IrqInfo), there ? IrqInfo::kEventfd : 0, asked.index, there ? vectors_.vectors() : 0});
}

std::vector<std::byte> VfioUser::set_irqs(GuestMessage& message) {
  const auto set = body_of<IrqSet>(message.body);
  const auto data = set.flags & IrqSet::kDataMask;
  const auto action = set.flags & IrqSet::kActionMask;
  auto& eventfds = message.descriptors;
  if (set.index >= kIrqs) throw RequestError(EINVAL, fmt::format("unknown interrupt type {}", set.index));
  if (data != IrqSet::kNone && data != IrqSet::kBool && data != IrqSet::kEventfd)
    throw RequestError(EINVAL, fmt::format("flags {:#x}: the kind of data is not unique", set.flags));
  const auto vectors = set.index == kMsix ? vectors_.vectors() : 0;
  if (set.start > vectors || set.count > vectors - set.start)
    throw RequestError(EINVAL, fmt::format("interrupts {} to {} of type {}, which has {}", set.start,
                                           std::uint64_t{set.start} + set.count, set.index, vectors));
  if (action == IrqSet::kMask || action == IrqSet::kUnmask)
    throw RequestError(EOPNOTSUPP, "these interrupts are masked in the MSI-X table");
  if (action != IrqSet::kTrigger)
    throw RequestError(EINVAL, fmt::format("flags {:#x}: the action is not unique", set.flags));
  if (data == IrqSet::kNone && set.count == 0) {
    if (set.index == kMsix) vectors_.release_all();
    return {};
  }
  const auto wanted = Bytes(message.body).subspan(sizeof set);
  if (data == IrqSet::kBool && wanted.size() < set.count)
    throw RequestError(EINVAL, fmt::format("{} booleans for {} interrupts", wanted.size(), set.count));
  if (data == IrqSet::kEventfd && !eventfds.empty() && eventfds.size() != set.count)
    throw RequestError(EINVAL, fmt::format("{} eventfds for {} interrupts", eventfds.size(), set.count));
  for (std::uint32_t i = 0; i < set.count; ++i) {
    const auto vector = set.start + i;
    if (data == IrqSet::kEventfd && !eventfds.empty())
      vectors_.assign(vector, std::move(eventfds[i]));
    else if (data == IrqSet::kEventfd)
      vectors_.release(vector);
    else if (data == IrqSet::kNone || wanted[i] != std::byte{0})
      vectors_.trigger(vector);
  }
  return {};
}

// A read that the device refuses returns ones, as on a bus.
std::vector<std::byte> VfioUser::read_region(Bytes body) {
  const auto access = body_of<RegionAccess>(body);
  refuse_outside(port_, access.region, access.offset, access.count);
  if (access.count > most_data_) throw RequestError(EINVAL, fmt::format("{} bytes at once", access.count));
  auto answer = bytes_of(access);
  answer.resize(sizeof access + access.count);
  const auto data = std::span(answer).subspan(sizeof access);
  if (access.count == 0) return answer;
  if (access.region == kConfig)
    port_.read_config(static_cast<std::uint32_t>(access.offset), data);
  else if (vectors_.covers(access.offset, data.size()))
    vectors_.read(access.offset, data);
  else
    port_.read_bar(access.offset, data);
  return answer;
}

std::vector<std::byte> VfioUser::write_region(Bytes body) {
  const auto access = body_of<RegionAccess>(body);
  const auto data = body.subspan(sizeof access);
  if (access.count > data.size())
    throw RequestError(EINVAL, fmt::format("the request writes {} bytes, but has {}", access.count, data.size()));
  write(access.region, access.offset, data.first(access.count));
  return bytes_of(access);
}

std::vector<std::byte> VfioUser::write_regions(Bytes body) {
  const auto count = body_of<std::uint64_t>(body);
  const auto writes = body.subspan(sizeof count);
  if (count > writes.size() / sizeof(RegionWriteOfMany))
    throw RequestError(EINVAL, fmt::format("{} writes in {} bytes", count, writes.size()));
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto one = body_of<RegionWriteOfMany>(writes.subspan(i * sizeof(RegionWriteOfMany)));
    if (one.count > sizeof one.data) throw RequestError(EINVAL, fmt::format("a write of {} bytes", one.count));
    write(one.region, one.offset, std::span(one.data).first(one.count));
  }
  return bytes_of(count);
}

void VfioUser::write(std::uint32_t region, std::uint64_t offset, Bytes data) {
  refuse_outside(port_, region, offset, data.size());
  if (data.empty()) return;
  if (region == kConfig) {
    port_.write_config(static_cast<std::uint32_t>(offset), data);
    find_reset();
  } else if (vectors_.covers(offset, data.size())) {
    vectors_.write(offset, data);
  } else {
    port_.write_bar(offset, data);
  }
}

// Eventfds stay assigned after a reset, as with VFIO of the kernel.
void VfioUser::find_reset() {
  if (port_.function_resets() == resets_seen_) return;
  resets_seen_ = port_.function_resets();
  vectors_.restore();
}

}  // namespace rnicsim::sim
