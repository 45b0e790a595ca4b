// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/access_checks.h"

#include <fmt/format.h>

namespace rnicsim::driver_check {
namespace {

constexpr std::uint16_t kCommandRegister = 0x04;  // Command, PCI configuration space
constexpr std::uint64_t kBaseAlignment = 4096;
constexpr unsigned kBusAddressBits = 52;

const char* word_of(bool write) { return write ? "write" : "read"; }

}  // namespace

void AccessChecks::accessed(const nic::HostAccess& access) {
  if (access.write || access.space != space_ || access.offset != offset_) repeated_ = 0;
  if (access.space == nic::HostAccess::Space::config) {
    if (access.write && access.offset <= kCommandRegister + 1u &&
        access.offset + access.bytes.size() > kCommandRegister)
      restored_ = true;
    return;
  }
  if (reset_ && now() - *reset_ < context_.params.reset_window)
    context_.reports.add(FindingKind::reset_window, {About::reset, resets_},
                         fmt::format("{} of {} {} after a function-level reset: wait {} before the first access",
                                     word_of(access.write), context_.log.place(access.space, access.offset),
                                     in_words(now() - *reset_), in_words(context_.params.reset_window)));
  if (access.write) validate_queue_base(access);
}

// An address in the wrong byte order can look valid as well: the check tests which of both addresses has memory.
void AccessChecks::validate_queue_base(const nic::HostAccess& access) {
  const auto& pci = context_.personality.layout.pci;
  if (access.bytes.size() != 8 || access.offset < pci.registers || context_.log.register_at(access.offset) == nullptr)
    return;
  const auto in_page = static_cast<std::uint32_t>(access.offset - pci.registers);
  const auto queue_of = [&](std::span<const std::byte> bytes) -> std::uint64_t {
    const auto written = context_.personality.write_registers({}, in_page, bytes);
    return written && written->command_queue ? *written->command_queue : 0;
  };
  const auto value = queue_of(access.bytes);
  const auto other_order = turned(access.bytes, 8);
  const auto swapped = queue_of(std::span(other_order).first(8));
  if (value == 0 || swapped == value || swapped % kBaseAlignment != 0 || swapped >> kBusAddressBits != 0) return;
  std::array<std::byte, 4> byte;
  const bool nonsense = value >> kBusAddressBits != 0 || value % kBaseAlignment != 0;
  if (!nonsense && (context_.peek(kKernelPasid, value, byte) || !context_.peek(kKernelPasid, swapped, byte))) return;
  context_.reports.add(
      FindingKind::wrong_endianness, {About::place, access.offset},
      fmt::format("write to {}: no command queue can be at {:#x}; in big-endian order the address is {:#x}",
                  context_.log.place(access.space, access.offset), value, swapped));
}

void AccessChecks::answered(const nic::HostAnswer& answer) {
  if (!answer.accepted || answer.bytes.size() > value_.size()) {
    repeated_ = 0;
    return;
  }
  const bool same = repeated_ != 0 && answer.space == space_ && answer.offset == offset_ &&
                    answer.bytes.size() == size_ && std::ranges::equal(answer.bytes, std::span(value_).first(size_));
  if (!same) {
    space_ = answer.space;
    offset_ = answer.offset;
    size_ = answer.bytes.size();
    std::ranges::copy(answer.bytes, value_.begin());
    repeated_ = 1;
    since_ = now();
    return;
  }
  if (++repeated_ != context_.params.polls) return;
  context_.reports.add(
      FindingKind::no_progress, {About::place, answer.offset},
      fmt::format(
          "{} read {} times in a row, for {}, with the same value each time: no work in progress can change the value",
          context_.log.place(answer.space, answer.offset), repeated_, in_words(now() - since_)));
}

void AccessChecks::refused(const nic::Refusal& refusal) {
  using What = nic::Refusal::What;
  using Why = nic::Refusal::Why;
  auto& reports = context_.reports;
  const auto place = [&] { return context_.log.place(nic::HostAccess::Space::bar, refusal.address); };
  if (refusal.what == What::dma_read || refusal.what == What::dma_write) {
    if (refusal.why == Why::bus_master_off)
      reports.add(FindingKind::bus_master_off, {About::reset, resets_},
                  fmt::format("the device needs a DMA {} at {:#x}, but bus mastering is off in Command{}",
                              word_of(refusal.what == What::dma_write), refusal.address,
                              reset_ && !restored_ ? ": a function-level reset cleared the bit" : ""));
    return;
  }
  if (refusal.what != What::mmio_read && refusal.what != What::mmio_write) return;
  context_.log.refuse();
  const bool write = refusal.what == What::mmio_write;
  if (refusal.why == Why::memory_off) {
    const auto cause = reset_ && !restored_
                           ? fmt::format("a function-level reset {} cleared Command and BAR0: restore them",
                                         CheckContext::ago(*reset_))
                           : std::string("set bit 1 of Command first");
    return reports.add(FindingKind::memory_space_off, {About::reset, resets_},
                       fmt::format("{} of {} while memory space is off: {}", word_of(write), place(), cause));
  }
  if (refusal.why == Why::bad_alignment) {
    if (reports.has(FindingKind::wrong_endianness, {About::place, refusal.address})) return;
    return reports.add(FindingKind::bad_alignment, {About::place, refusal.address},
                       fmt::format("write to {}: the address is not aligned to {} bytes", place(), kBaseAlignment));
  }
  refused_place(refusal.address, write);
}

void AccessChecks::refused_place(std::uint64_t offset, bool write) {
  auto& reports = context_.reports;
  const auto size = context_.log.last_size();
  const auto place = context_.log.place(nic::HostAccess::Space::bar, offset);
  const auto& pci = context_.personality.layout.pci;
  if (const auto* one = context_.log.register_at(offset)) {
    if (!(write ? one->writable : one->readable))
      return reports.add(
          FindingKind::wrong_direction, {About::place, offset << 1 | write},
          fmt::format("{} of {}: the register is {} only", word_of(write), place, write ? "read" : "write"));
    return reports.add(
        FindingKind::wrong_width, {About::place, offset << 1 | write},
        fmt::format("{} of {} bytes at {}: {} has {} bits", word_of(write), size, place, one->name, one->bits));
  }
  const bool in_uar = offset >= pci.uar && offset - pci.uar < std::uint64_t{pci.uar_pages} * pci.uar_page_bytes;
  if (in_uar && !write)
    return reports.add(FindingKind::wrong_direction, {About::place, offset << 1},
                       fmt::format("read of {}: UAR pages are write only", place));
  reports.add(FindingKind::no_register, {About::place, offset << 1 | write},
              fmt::format("{} of {} bytes at {}: no {} register at this offset", word_of(write), size, place,
                          write ? "writable" : "readable"));
}

void AccessChecks::was_reset() {
  reset_ = now();
  ++resets_;
  restored_ = false;
  repeated_ = 0;
}

}  // namespace rnicsim::driver_check
