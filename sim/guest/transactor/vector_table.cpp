// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/vector_table.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/transactor/pci_registers.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint32_t kEntryBytes = 16;
constexpr std::uint32_t kMasked = 1;

std::uint64_t address_of(std::uint32_t vector) { return pci::kMessageWindow + kEntryBytes * std::uint64_t{vector}; }

}  // namespace

VectorTable::VectorTable(GuestPort& port)
    : port_(port), table_(port.msix().table), eventfds_(port.msix().vectors), written_(kEntryBytes * vectors()) {
  forget_writes();
}

bool VectorTable::covers(std::uint64_t bar_offset, std::size_t bytes) const {
  return bar_offset >= table_ && bytes <= written_.size() && bar_offset - table_ <= written_.size() - bytes;
}

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
  write_entries(0, vectors());
  enable();
}

void VectorTable::restore() {
  forget_writes();
  if (!any()) return;
  write_entries(0, vectors());
  enable();
}

bool VectorTable::any() const {
  return std::ranges::any_of(eventfds_, [](const Descriptor& eventfd) { return bool(eventfd); });
}

// An assigned eventfd enables MSI-X, as with VFIO of the kernel.
void VectorTable::enable() {
  if (vectors() == 0) return;
  const auto at = port_.msix().control;
  std::uint16_t control = 0;
  const auto bytes = std::as_writable_bytes(std::span(&control, 1));
  port_.read_config(at, bytes);
  const auto wanted = static_cast<std::uint16_t>(any() ? control | pci::kMsixEnable : control & ~pci::kMsixEnable);
  if (wanted == control) return;
  control = wanted;
  port_.write_config(at, bytes);
}

// Enables memory space for these writes, if it is disabled.
void VectorTable::write_entries(std::uint32_t first, std::uint32_t count) {
  std::uint16_t command = 0;
  const auto bytes = std::as_writable_bytes(std::span(&command, 1));
  port_.read_config(pci::kCommand, bytes);
  const auto before = command;
  command |= pci::kCommandMemory;
  if (command != before) port_.write_config(pci::kCommand, bytes);
  for (std::uint32_t vector = first; vector < first + count; ++vector) {
    const std::uint32_t words[] = {std::uint32_t(address_of(vector)), std::uint32_t(address_of(vector) >> 32), vector,
                                   eventfds_[vector] ? 0 : kMasked};
    port_.write_bar(table_ + kEntryBytes * vector, std::as_bytes(std::span(words)));
  }
  if (command == before) return;
  command = before;
  port_.write_config(pci::kCommand, bytes);
}

void VectorTable::interrupt(std::uint64_t address) {
  const auto vector = (address - pci::kMessageWindow) / kEntryBytes;
  if (vector < vectors()) trigger(static_cast<std::uint32_t>(vector));
}

// Does not block: if the eventfd is full, the virtual machine already has an interrupt pending.
void VectorTable::trigger(std::uint32_t vector) {
  if (!eventfds_[vector]) return;
  pollfd ready{eventfds_[vector].get(), POLLOUT, 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  constexpr std::uint64_t kOne = 1;
  if (::write(eventfds_[vector].get(), &kOne, sizeof kOne) != sizeof kOne)
    port_.complain(fmt::format("interrupt {}: its eventfd cannot be written", vector));
}

void VectorTable::forget_writes() {
  std::ranges::fill(written_, std::byte{0});
  for (std::uint32_t vector = 0; vector < vectors(); ++vector) written_[kEntryBytes * vector + 12] = std::byte{kMasked};
}

void VectorTable::read(std::uint64_t bar_offset, std::span<std::byte> bytes) const {
  std::ranges::copy(std::span(written_).subspan(bar_offset - table_, bytes.size()), bytes.begin());
}

void VectorTable::write(std::uint64_t bar_offset, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, written_.begin() + static_cast<std::ptrdiff_t>(bar_offset - table_));
}

}  // namespace rnicsim::sim
