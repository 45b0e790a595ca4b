// SPDX-License-Identifier: Apache-2.0
// Device memory: ranges allocated by the kernel, accessed by the CPU in the BAR.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "model/abi/big_endian.h"
#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint64_t kWord = 4;  // bytes; the CPU accesses whole words, as with mlx5
constexpr std::uint64_t kDoubleWord = 8;
constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint64_t kMostAtOnce = abi::uar::kBlueFlameBytes;  // lines that leave the CPU in one burst

// Size of the next store at offset `at`: whole cache lines if possible, else a word.
std::uint64_t next_store(std::uint64_t at, std::uint64_t left) {
  if (at % kCacheLine == 0 && left >= kCacheLine)
    return std::min(left / kCacheLine * kCacheLine, kMostAtOnce - at % kMostAtOnce);
  return at % kDoubleWord == 0 && left >= kDoubleWord ? kDoubleWord : kWord;
}

int check_copy(const Dm& dm, std::uint64_t offset, std::size_t length) {
  if (!Context::of(dm.context).dms.holds(dm.handle, &dm)) return ENOENT;
  if (dm.port.inherited()) return ENODEV;
  if (offset > dm.length || length > dm.length - offset) return EINVAL;
  return offset % kWord != 0 || length % kWord != 0 ? EINVAL : 0;
}

int copy_to(ibv_dm* memory, std::uint64_t offset, const void* from, std::size_t length) {
  return guarded([&] {
    const Dm& dm = Dm::of(memory);
    if (const int error = check_copy(dm, offset, length)) return error;
    DevicePort& port = dm.port;
    std::span left(static_cast<const std::byte*>(from), length);
    for (std::uint64_t at = dm.handle + offset; !left.empty();) {
      const std::uint64_t bytes = next_store(at, left.size());
      port.mmio_write(std::uint32_t(abi::kDeviceMemoryBase + at), left.first(bytes));
      port.charge(abi::CpuCost::mmio_write);
      left = left.subspan(bytes);
      at += bytes;
    }
    return 0;
  });
}

// A load waits for the stores before it, and for its value.
int copy_from(void* to, ibv_dm* memory, std::uint64_t offset, std::size_t length) {
  return guarded([&] {
    const Dm& dm = Dm::of(memory);
    if (const int error = check_copy(dm, offset, length)) return error;
    DevicePort& port = dm.port;
    std::span left(static_cast<std::byte*>(to), length);
    for (std::uint64_t at = dm.handle + offset; !left.empty();) {
      const bool both = at % kDoubleWord == 0 && left.size() >= kDoubleWord;
      const std::uint64_t bytes = both ? kDoubleWord : kWord;
      const std::uint64_t value = port.mmio_read(std::uint32_t(abi::kDeviceMemoryBase + at), std::uint32_t(bytes));
      if (both)
        abi::store_be(left.data(), value);
      else
        abi::store_be(left.data(), std::uint32_t(value));
      left = left.subspan(bytes);
      at += bytes;
    }
    return 0;
  });
}

// A forked child may allocate with the inherited context. The memory is then its own: the parent's device port does
// not work.
DevicePort* port_of_process(Context& context) {
  if (!context.port.inherited()) return &context.port;
  return device_port(Device::of(context.context.device).number);
}

std::unique_ptr<Dm> make_dm(Context& context, DevicePort& port, std::uint32_t handle, std::uint64_t length) {
  auto dm = std::make_unique<Dm>(port);
  Dm& made = *dm;
  made.context = &context.context;
  made.memcpy_to_dm = copy_to;
  made.memcpy_from_dm = copy_from;
  made.handle = handle;
  made.length = length;
  return dm;
}

int allocate(Context& context, const ibv_alloc_dm_attr& wanted, ibv_dm*& allocated) {
  if (!context.has_feature(abi::feature::kDeviceMemory)) return EOPNOTSUPP;
  if (wanted.comp_mask != 0) return EINVAL;
  DevicePort* port = port_of_process(context);
  if (port == nullptr) return ENODEV;
  std::uint32_t handle = 0;
  if (const int error = port->alloc_dm(wanted.length, wanted.log_align_req, handle)) return error;
  auto dm = make_dm(context, *port, handle, wanted.length);
  allocated = dm.get();
  context.dms.add(handle, std::move(dm));
  return 0;
}

int import_dm(Context& context, std::uint32_t handle, ibv_dm*& imported) {
  if (!context.has_feature(abi::feature::kDeviceMemory)) return EOPNOTSUPP;
  std::uint32_t bytes = 0;
  if (const int error = context.port.import_dm(context.number, handle, bytes)) return error;
  auto dm = make_dm(context, context.port, handle, bytes);
  imported = dm.get();
  context.dms.add_import(std::move(dm));
  return 0;
}

}  // namespace

// Bytes of a word outside of the written range keep their values.
void store_on_device(DevicePort& port, std::uint64_t offset, const std::uint8_t* from, std::size_t length) {
  while (length != 0) {
    const std::uint64_t skipped = offset % kWord;
    const auto bytes = std::min<std::size_t>(length, kWord - skipped);
    const auto at = std::uint32_t(abi::kDeviceMemoryBase + offset - skipped);
    std::array<std::byte, kWord> word;
    if (bytes != kWord) abi::store_be(word.data(), std::uint32_t(port.mmio_read(at, kWord)));
    std::memcpy(word.data() + skipped, from, bytes);
    port.mmio_write(at, word);
    port.charge(abi::CpuCost::mmio_write);
    offset += bytes;
    from += bytes;
    length -= bytes;
  }
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes) {
  return guarded_object<ibv_dm>([&](ibv_dm*& dm) { return allocate(Context::of(context), *attributes, dm); });
}

int free_dm(ibv_dm* dm) {
  return guarded([&] {
    Context& context = Context::of(dm->context);
    if (!context.dms.holds(dm->handle, &Dm::of(dm))) return ENOENT;
    if (const int error = Dm::of(dm).port.free_dm(dm->handle)) return error;
    context.dms.take(Dm::of(dm));
    return 0;
  });
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  return guarded_object<ibv_dm>([&](ibv_dm*& dm) { return import_dm(Context::of(context), handle, dm); });
}

// The range, and regions that use it, stay.
void ibv_unimport_dm(ibv_dm* dm) {
  guarded([&] {
    Context& context = Context::of(dm->context);
    if (!context.dms.holds(dm->handle, &Dm::of(dm))) return ENOENT;
    context.dms.take(Dm::of(dm));
    return 0;
  });
}

}  // extern "C"
