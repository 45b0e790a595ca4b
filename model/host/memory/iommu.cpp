// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/iommu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "model/base/kernel.h"
#include "model/host/log.h"

namespace rnicsim::host {
namespace {

// A fault is one log line, but a broken device would flood the log.
constexpr Counter kFaultsLogged = 8;
constexpr std::uint64_t kPage = AddressSpace::kPage;
// SharedPage::device of private pages; the PASID takes the place of the inode.
constexpr std::uint64_t kPrivate = ~0ull;

bool wraps(std::uint64_t address, std::uint64_t bytes) { return address + bytes < address; }

auto interval(std::uint64_t address, std::uint64_t bytes) {
  return boost::icl::interval<std::uint64_t>::right_open(address, address + bytes);
}

}  // namespace

const char* to_string(IommuFault::Reason reason) {
  switch (reason) {
    case IommuFault::Reason::no_process: return "no process has this PASID";
    case IommuFault::Reason::not_pinned: return "the range was never registered";
    case IommuFault::Reason::read_only: return "the range was registered for reading";
    case IommuFault::Reason::not_mapped: return "the process has unmapped the range";
  }
  return "";
}

void Iommu::attach(Pasid pasid, AddressSpace& space) {
  processes_.insert_or_assign(pasid, Process{&space, {}, {}, {}});
  presence({pasid, true});
}
void Iommu::detach(Pasid pasid) {
  last_ = nullptr;
  processes_.erase(pasid);
  departed_.insert(pasid);
  presence({pasid, false});
}

Iommu::PinCount& Iommu::PinCount::operator+=(const PinCount& other) {
  all += other.all;
  writable += other.writable;
  return *this;
}
Iommu::PinCount& Iommu::PinCount::operator-=(const PinCount& other) {
  all -= other.all;
  writable -= other.writable;
  return *this;
}

int Iommu::pin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (wraps(address, bytes)) return EINVAL;
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) return ESRCH;
  if (bytes == 0) return 0;
  if (const int error = process->second.space->admit(address, bytes, writable)) return error;
  forget(process->second, address, bytes);
  process->second.pins += std::pair(interval(address, bytes), PinCount{1, writable ? 1u : 0u});
  mapping({pasid, address, bytes, true, writable});
  return 0;
}

int Iommu::unpin(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (wraps(address, bytes)) return EINVAL;
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) return ESRCH;
  if (bytes == 0) return 0;
  if (!has_pin(process->second.pins, address, bytes, writable)) return EINVAL;
  process->second.known[0] = process->second.known[1] = {};
  forget(process->second, address, bytes);
  process->second.pins -= std::pair(interval(address, bytes), PinCount{1, writable ? 1u : 0u});
  mapping({pasid, address, bytes, false, writable});
  return 0;
}

PageTranslation Iommu::page_translation(Requester from, std::uint64_t address) const {
  const auto process = processes_.find(domain_of(from));
  if (process == processes_.end()) return {};
  const auto page = process->second.on_demand.find(address / kPage);
  if (page == process->second.on_demand.end() || page->second.withdrawn) return {};
  return {.present = true, .writable = page->second.writable, .address = page->second.bus_address};
}

int Iommu::bring_in(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (bytes == 0) return 0;
  if (wraps(address, bytes)) return EFAULT;
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) return ESRCH;
  demand({pasid, address, bytes});
  auto& pages = process->second.on_demand;
  auto& space = *process->second.space;
  const auto there = [&](std::uint64_t page) {
    const auto found = pages.find(page);
    return found != pages.end() && (found->second.writable || !writable);
  };
  const std::uint64_t last = (address + bytes - 1) / kPage;
  for (std::uint64_t page = address / kPage; page <= last;) {
    if (there(page)) {
      ++page;
      continue;
    }
    std::uint64_t end = page + 1;
    while (end <= last && !there(end)) ++end;
    const std::uint64_t run = (end - page) * kPage;
    const std::uint64_t bus = space.place_on_bus(page * kPage, run);
    if (const int error = pin(pasid, bus, run, writable)) {
      space.left_bus(bus, run);
      return error;
    }
    for (const std::uint64_t first = page; page < end; ++page) {
      const OnDemandPage next{bus + (page - first) * kPage, writable};
      const auto [place, is_new] = pages.try_emplace(page, next);
      if (is_new) continue;
      unpin(pasid, place->second.bus_address, kPage, place->second.writable);
      if (place->second.bus_address != next.bus_address) space.left_bus(place->second.bus_address, kPage);
      place->second = next;
    }
  }
  return 0;
}

std::vector<Iommu::PageRun> Iommu::withdraw(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  std::vector<PageRun> runs;
  const auto process = processes_.find(pasid);
  if (process == processes_.end() || bytes == 0) return runs;
  const std::uint64_t last = wraps(address, bytes - 1) ? ~0ull / kPage : (address + (bytes - 1)) / kPage;
  auto& pages = process->second.on_demand;
  for (auto page = pages.lower_bound(address / kPage); page != pages.end() && page->first <= last; ++page) {
    if (std::exchange(page->second.withdrawn, true)) continue;
    if (!runs.empty() && runs.back().address + runs.back().pages * kPage == page->first * kPage)
      ++runs.back().pages;
    else
      runs.push_back({page->first * kPage, 1});
  }
  return runs;
}

void Iommu::release(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  const auto process = processes_.find(pasid);
  if (process == processes_.end() || bytes == 0) return;
  auto& pages = process->second.on_demand;
  const auto end = pages.upper_bound((address + (bytes - 1)) / kPage);
  for (auto page = pages.lower_bound(address / kPage); page != end;) {
    const auto [bus_address, writable, withdrawn] = page->second;
    page = pages.erase(page);
    unpin(pasid, bus_address, kPage, writable);
    process->second.space->left_bus(bus_address, kPage);
  }
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> Iommu::first_pinned(Pasid pasid, std::uint64_t address,
                                                                           std::uint64_t bytes) const {
  const auto process = processes_.find(pasid);
  if (process == processes_.end() || bytes == 0 || wraps(address, bytes)) return std::nullopt;
  const auto& pins = process->second.pins;
  const std::uint64_t end = address + bytes;
  auto segment = pins.lower_bound(interval(address, bytes));
  if (segment == pins.end() || segment->first.lower() >= end) return std::nullopt;
  const std::uint64_t begin = std::max(segment->first.lower(), address);
  std::uint64_t until = begin;
  for (; segment != pins.end() && segment->first.lower() <= until && until < end; ++segment)
    until = segment->first.upper();
  return std::pair(begin, std::min(until, end) - begin);
}

// A new pin may mean another page at the same address.
void Iommu::forget(Process& process, std::uint64_t address, std::uint64_t bytes) {
  process.frames.erase(process.frames.lower_bound(address / kPage),
                       process.frames.upper_bound((address + bytes - 1) / kPage));
}

std::optional<std::uint64_t> Iommu::physical(Requester from, std::uint64_t address) {
  const Pasid domain = domain_of(from);
  const auto process = processes_.find(domain);
  if (process == processes_.end() || address == ~0ull || !pinned(process->second, address, 1, false))
    return std::nullopt;
  const std::uint64_t page = address / kPage;
  const auto [known, unknown] = process->second.frames.try_emplace(page);
  if (unknown) {
    const auto shared = process->second.space->shared_page(address);
    known->second =
        frames_.try_emplace(shared.value_or(SharedPage{kPrivate, domain, page}), frames_.size()).first->second;
  }
  return known->second * kPage + address % kPage;
}

// A range with only writable pins has no read-only pin to remove.
bool Iommu::has_pin(const Pins& pins, std::uint64_t address, std::uint64_t bytes, bool writable) {
  const std::uint64_t end = address + bytes;
  for (auto segment = pins.find(address); segment != pins.end() && segment->first.lower() <= address; ++segment) {
    const auto& count = segment->second;
    if ((writable ? count.writable : count.all - count.writable) == 0) return false;
    address = segment->first.upper();
    if (address >= end) return true;
  }
  return false;
}

bool Iommu::pinned(Process& process, std::uint64_t address, std::uint64_t bytes, bool writable) {
  const std::uint64_t end = address + bytes;
  auto& known = process.known[writable];
  if (known.has(address, bytes)) return true;
  const auto& pins = process.pins;
  // Neighbours with different counts are separate segments: walk them without a gap.
  const auto first = pins.find(address);
  for (auto segment = first; segment != pins.end() && segment->first.lower() <= address; ++segment) {
    if (writable && segment->second.writable == 0) return false;
    address = segment->first.upper();
    if (address < end) continue;
    known.add({first->first.lower(), address});
    return true;
  }
  return false;
}

bool Iommu::read(Requester from, std::uint64_t address, std::span<std::byte> bytes) {
  AddressSpace* space = translate(from, address, bytes.size(), false);
  if (!space) return false;
  if (!space->read(address, bytes)) {
    record(from, address, bytes.size(), false, IommuFault::Reason::not_mapped);
    return false;
  }
  auto& counters = counters_[from.function];
  ++counters.reads;
  counters.read_bytes += bytes.size();
  return true;
}

bool Iommu::write(Requester from, std::uint64_t address, std::span<const std::byte> bytes) {
  AddressSpace* space = translate(from, address, bytes.size(), true);
  if (!space) return false;
  if (!space->write(address, bytes)) {
    record(from, address, bytes.size(), true, IommuFault::Reason::not_mapped);
    return false;
  }
  auto& counters = counters_[from.function];
  ++counters.writes;
  counters.write_bytes += bytes.size();
  return true;
}

bool Iommu::peek(Requester from, std::uint64_t address, std::span<std::byte> bytes) {
  const auto process = processes_.find(domain_of(from));
  if (process == processes_.end() || bytes.empty() || wraps(address, bytes.size())) return false;
  return pinned(process->second, address, bytes.size(), false) && process->second.space->read(address, bytes);
}

AddressSpace* Iommu::find(const Requester& from, std::uint64_t address, std::uint64_t bytes, bool write) {
  const auto process = processes_.find(domain_of(from));
  if (process == processes_.end()) {
    record(from, address, bytes, write, IommuFault::Reason::no_process);
    return nullptr;
  }
  if (wraps(address, bytes) || (bytes != 0 && !pinned(process->second, address, bytes, write))) {
    const bool readable = write && !wraps(address, bytes) && pinned(process->second, address, bytes, false);
    record(from, address, bytes, write, readable ? IommuFault::Reason::read_only : IommuFault::Reason::not_pinned);
    return nullptr;
  }
  last_ = &process->second;
  last_domain_ = process->first;
  return last_->space;
}

void Iommu::lost_write(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  ++counters_.front().faults;
  fault(IommuFault{now(), pasid, address, bytes, true, IommuFault::Reason::not_mapped});
}

// Accesses under way when a process ends are not an error of a program.
bool Iommu::has_ended(const Requester& from) const {
  const auto process = processes_.find(domain_of(from));
  return process == processes_.end() ? departed_.contains(domain_of(from)) : !process->second.space->exists();
}

bool Iommu::answers(Requester from) const {
  const auto process = processes_.find(domain_of(from));
  return process == processes_.end() || process->second.space->exists();
}

void Iommu::record(const Requester& from, std::uint64_t address, std::uint64_t bytes, bool write,
                   IommuFault::Reason reason) {
  const IommuFault what{now(), from, address, bytes, write, reason};
  ++counters_[from.function].faults;
  if (!has_ended(from) && ++faults_told_ <= kFaultsLogged)
    log_warning(fmt::format("{}: at {}: DMA {} of {} bytes at {:#x}, PASID {}, aborted: {}{}", host_,
                            to_string(what.at), write ? "write" : "read", bytes, address, from.pasid, to_string(reason),
                            faults_told_ == kFaultsLogged ? " (further ones are only counted)" : ""));
  fault(what);
}

}  // namespace rnicsim::host
