#include "sim/guest/vector_table.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sim/guest/guest_port.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint32_t kEntryBytes = 16;
constexpr std::uint32_t kMasked = 1;

std::uint64_t address_of(std::uint32_t vector) { return abi::kMsiWindow + kEntryBytes * std::uint64_t{vector}; }

}  // namespace

void VectorTable::assign(std::uint32_t vector, Descriptor eventfd) {
  eventfds_[vector] = std::move(eventfd);
  write_entries(vector, 1);
  enable();
}

void VectorTable::release(std::uint32_t vector) {
  eventfds_[vector].reset();
  write_entries(vector, 1);
  enable();
}

void VectorTable::release_all() {
  for (auto& eventfd : eventfds_) eventfd.reset();
  write_entries(0, kVectors);
  enable();
}

void VectorTable::restore() {
  forget_writes();
  if (!any()) return;
  write_entries(0, kVectors);
  enable();
}

bool VectorTable::any() const {
  return std::ranges::any_of(eventfds_, [](const Descriptor& eventfd) { return bool(eventfd); });
}

// An eventfd enables MSI-X, as with VFIO of the kernel.
void VectorTable::enable() {
  std::uint16_t control = 0;
  const auto bytes = std::as_writable_bytes(std::span(&control, 1));
  port_.read_config(abi::config::kMsixControl, bytes);
  const auto wanted = static_cast<std::uint16_t>(any() ? control | abi::config::kMsixEnable
                                                       : control & ~abi::config::kMsixEnable);
  if (wanted == control) return;
  control = wanted;
  port_.write_config(abi::config::kMsixControl, bytes);
}

// Memory space is enabled for these writes, if it is not.
void VectorTable::write_entries(std::uint32_t first, std::uint32_t count) {
  std::uint16_t command = 0;
  const auto bytes = std::as_writable_bytes(std::span(&command, 1));
  port_.read_config(abi::config::kCommand, bytes);
  const auto before = command;
  command |= abi::config::kCommandMemory;
  if (command != before) port_.write_config(abi::config::kCommand, bytes);
  for (std::uint32_t vector = first; vector < first + count; ++vector) {
    const std::uint32_t words[] = {std::uint32_t(address_of(vector)), std::uint32_t(address_of(vector) >> 32), vector,
                                   eventfds_[vector] ? 0 : kMasked};
    port_.write_bar(abi::kMsixTable + kEntryBytes * vector, std::as_bytes(std::span(words)));
  }
  if (command == before) return;
  command = before;
  port_.write_config(abi::config::kCommand, bytes);
}

void VectorTable::interrupt(std::uint64_t address) {
  const auto vector = (address - abi::kMsiWindow) / kEntryBytes;
  if (vector < kVectors) trigger(static_cast<std::uint32_t>(vector));
}

// Never blocks: when the eventfd is full, the virtual machine has an interrupt to take already.
void VectorTable::trigger(std::uint32_t vector) {
  if (!eventfds_[vector]) return;
  pollfd ready{eventfds_[vector].get(), POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  constexpr std::uint64_t kOne = 1;
  if (::write(eventfds_[vector].get(), &kOne, sizeof kOne) != sizeof kOne)
    port_.complain(fmt::format("interrupt {}: its eventfd cannot be written", vector));
}

void VectorTable::forget_writes() {
  written_ = {};
  for (std::uint32_t vector = 0; vector < kVectors; ++vector)
    written_[kEntryBytes * vector + 12] = std::byte{kMasked};
}

void VectorTable::read(std::uint64_t bar_offset, std::span<std::byte> bytes) const {
  std::ranges::copy(std::span(written_).subspan(bar_offset - abi::kMsixTable, bytes.size()), bytes.begin());
}

void VectorTable::write(std::uint64_t bar_offset, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, written_.begin() + static_cast<std::ptrdiff_t>(bar_offset - abi::kMsixTable));
}

}  // namespace rnicsim::sim
