#include "model/host/iommu.h"

#include <spdlog/spdlog.h>

#include <cerrno>

#include "model/base/kernel.h"

namespace rnicsim::host {
namespace {

// A fault is one line for people, but a device gone wild would drown everything else.
constexpr Counter kFaultsLogged = 8;

bool wraps(std::uint64_t address, std::uint64_t bytes) { return address + bytes < address; }

auto interval(std::uint64_t address, std::uint64_t bytes) {
  return boost::icl::interval<std::uint64_t>::right_open(address, address + bytes);
}

}  // namespace

const char* to_string(IommuFault::Reason reason) {
  switch (reason) {
    case IommuFault::Reason::no_process:
      return "no process has this PASID";
    case IommuFault::Reason::not_pinned:
      return "the range was never registered";
    case IommuFault::Reason::not_mapped:
      return "the process has unmapped the range";
  }
  return "";
}

void Iommu::attach(Pasid pasid, AddressSpace& space) { processes_.insert_or_assign(pasid, Process{&space, {}}); }
void Iommu::detach(Pasid pasid) {
  processes_.erase(pasid);
  departed_.insert(pasid);
}

int Iommu::pin(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  if (wraps(address, bytes)) return EINVAL;
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) return ESRCH;
  if (bytes == 0) return 0;
  // The ends are looked at; a hole in between shows when the device gets there.
  for (const std::uint64_t end : {address, address + bytes - 1}) {
    std::byte probe[1];
    if (!process->second.space->read(end, probe)) return EFAULT;
  }
  process->second.pins += std::pair(interval(address, bytes), 1u);
  return 0;
}

int Iommu::unpin(Pasid pasid, std::uint64_t address, std::uint64_t bytes) {
  if (wraps(address, bytes)) return EINVAL;
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) return ESRCH;
  if (bytes == 0) return 0;
  if (!pinned(process->second, address, bytes)) return EINVAL;
  process->second.begin = process->second.end = 0;
  process->second.pins -= std::pair(interval(address, bytes), 1u);
  return 0;
}

bool Iommu::pinned(Process& process, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t end = address + bytes;
  if (address >= process.begin && end <= process.end) return true;
  const auto& pins = process.pins;
  // Neighbours with different counts are separate segments: walk them without a gap.
  const auto first = pins.find(address);
  for (auto segment = first; segment != pins.end() && segment->first.lower() <= address; ++segment) {
    address = segment->first.upper();
    if (address < end) continue;
    process.begin = first->first.lower();
    process.end = address;
    return true;
  }
  return false;
}

bool Iommu::read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  AddressSpace* space = translate(pasid, address, bytes.size(), false);
  if (!space) return false;
  if (!space->read(address, bytes)) {
    record(pasid, address, bytes.size(), false, IommuFault::Reason::not_mapped);
    return false;
  }
  ++counters_.reads;
  counters_.read_bytes += bytes.size();
  return true;
}

bool Iommu::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  AddressSpace* space = translate(pasid, address, bytes.size(), true);
  if (!space) return false;
  if (!space->write(address, bytes)) {
    record(pasid, address, bytes.size(), true, IommuFault::Reason::not_mapped);
    return false;
  }
  ++counters_.writes;
  counters_.write_bytes += bytes.size();
  return true;
}

AddressSpace* Iommu::translate(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool write) {
  const auto process = processes_.find(pasid);
  if (process == processes_.end()) {
    record(pasid, address, bytes, write, IommuFault::Reason::no_process);
    return nullptr;
  }
  if (wraps(address, bytes) || (bytes != 0 && !pinned(process->second, address, bytes))) {
    record(pasid, address, bytes, write, IommuFault::Reason::not_pinned);
    return nullptr;
  }
  return process->second.space;
}

// What was under way when a process ended is no mistake of a program's.
bool Iommu::has_ended(Pasid pasid) const {
  const auto process = processes_.find(pasid);
  return process == processes_.end() ? departed_.contains(pasid) : !process->second.space->exists();
}

void Iommu::record(Pasid pasid, std::uint64_t address, std::uint64_t bytes, bool write, IommuFault::Reason reason) {
  const IommuFault what{now(), pasid, address, bytes, write, reason};
  ++counters_.faults;
  if (!has_ended(pasid) && ++faults_told_ <= kFaultsLogged)
    spdlog::warn("{}: at {}: DMA {} of {} bytes at {:#x}, PASID {}, aborted: {}{}", host_, to_string(what.at),
                 write ? "write" : "read", bytes, address, pasid, to_string(reason),
                 faults_told_ == kFaultsLogged ? " (further ones are only counted)" : "");
  fault(what);
}

}  // namespace rnicsim::host
