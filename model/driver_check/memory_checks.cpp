// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/memory_checks.h"

#include <fmt/format.h>

#include <boost/endian/conversion.hpp>
#include <optional>
#include <string>

namespace rnicsim::driver_check {
namespace {

constexpr std::uint64_t kBusPage = 4096;
constexpr std::uint32_t kVectorBytes = 16;

}  // namespace

void MemoryChecks::aborted(Pasid pasid, std::uint64_t address, std::size_t bytes, bool write) {
  // No finding: the process of this PASID has ended, and the kernel destroys its objects.
  if (!context_.pcie.answers(pasid)) return;
  std::string what;
  context_.objects.each_at(pasid, address, bytes,
                           [&](const MemoryRange& range) { what = fmt::format(" ({})", in_words(range)); });
  const auto access = fmt::format("DMA {} of {} bytes at {:#x}{}{}", write ? "write" : "read", bytes, address,
                                  pasid != kKernelPasid ? fmt::format(" of PASID {}", pasid) : "", what);
  const Subject subject{About::memory, address / kBusPage << 20 | pasid};
  const auto at = context_.maps.unmapped_at(pasid, address, bytes);
  if (at)
    return context_.reports.add(FindingKind::unmapped, subject,
                                fmt::format("{}: the memory was unmapped {}", access, CheckContext::ago(*at)));
  const auto turned_address = boost::endian::endian_reverse(address);
  std::array<std::byte, 4> there;
  if (turned_address != address && context_.peek(pasid, turned_address, there))
    return context_.reports.add(
        FindingKind::wrong_endianness, subject,
        fmt::format("{}: no memory at this address; in big-endian order the address is {:#x}, which is in memory",
                    access, turned_address));
  context_.reports.add(FindingKind::never_mapped, subject,
                       fmt::format("{}: {}", access,
                                   context_.maps.is_mapped(pasid, address)
                                       ? "a part of the range is not mapped, or not mapped for writing"
                                       : "no memory was ever mapped at this address"));
}

void MemoryChecks::refused(const nic::Refusal& refusal) {
  using Why = nic::Refusal::Why;
  if (refusal.what != nic::Refusal::What::memory || refusal.why != Why::bad_key) return;
  const auto key = refusal.object;
  const auto& objects = context_.objects;
  // No finding for a window: each bind changes its key.
  if (const auto entry = objects.regions.find(key >> 8);
      entry != objects.regions.end() && (entry->second.is_window() || entry->second.key == key))
    return;
  const Subject subject{About::key, key};
  const auto access = fmt::format("queue pair {}: access to {:#x} by key {:#x}", refusal.qpn, refusal.address, key);
  if (const auto at = objects.destroyed_at(ObjectKind::key, key))
    return context_.reports.add(FindingKind::destroyed_object, subject,
                                fmt::format("{}: the key was destroyed {}", access, CheckContext::ago(*at)));
  const auto swapped = boost::endian::endian_reverse(key);
  if (objects.exists(ObjectKind::key, swapped))
    return context_.reports.add(FindingKind::wrong_endianness, subject,
                                fmt::format("{}: no such key; in big-endian order the key is {:#x}", access, swapped));
  context_.reports.add(FindingKind::unknown_object, subject, fmt::format("{}: no such key", access));
}

void InterruptChecks::accessed(const nic::HostAccess& access) {
  const auto& pci = context_.personality.layout.pci;
  if (access.space != nic::HostAccess::Space::bar || !access.write || access.offset < pci.msix_table) return;
  const auto vector = (access.offset - pci.msix_table) / kVectorBytes;
  if (vector < pci.msix_vectors) routed_.insert(static_cast<std::uint32_t>(vector));
}

// A driver that polls writes no MSI-X vector: its lost interrupts are no finding.
void InterruptChecks::raised(const nic::InterruptRaised& raised) {
  using Outcome = nic::InterruptRaised::Outcome;
  const auto vector = raised.vector;
  if (raised.outcome == Outcome::sent) {
    pending_.erase(vector);
  } else if (raised.outcome == Outcome::pending) {
    pending_.try_emplace(vector, now());
  } else if (routed_.contains(vector)) {
    context_.reports.add(
        FindingKind::interrupt_lost, {About::vector, vector},
        fmt::format("vector {} is raised while MSI-X is disabled: the interrupt is lost and does not become pending",
                    vector));
  }
}

void InterruptChecks::check_pending() {
  for (const auto& [vector, since] : pending_)
    if (now() - since >= context_.params.masked_for) forgotten(vector, since);
}

void InterruptChecks::finish() {
  for (const auto& [vector, since] : pending_) forgotten(vector, since);
}

void InterruptChecks::forgotten(std::uint32_t vector, Duration since) {
  if (!routed_.contains(vector)) return;
  context_.reports.add(FindingKind::interrupt_masked, {About::vector, vector},
                       fmt::format("vector {} was raised {} while masked, and the driver has not unmasked the vector: "
                                   "the interrupt stays pending",
                                   vector, CheckContext::ago(since)));
}

void InterruptChecks::was_reset() {
  routed_.clear();
  pending_.clear();
}

}  // namespace rnicsim::driver_check
