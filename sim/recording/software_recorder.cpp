#include "sim/recording/software_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/base/kernel.h"
#include "model/host/iommu.h"
#include "model/host/root_complex.h"
#include "sim/adapter.h"
#include "sim/config/config_error.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// A process of a host: PASIDs are each host's own.
std::uint64_t key_of(std::uint32_t host, std::uint64_t domain) { return std::uint64_t(host) << 32 | domain; }

std::uint64_t domain_of(const host::RootComplex& root, Pasid pasid) {
  return pasid == kKernelPasid ? root.own_domain() : pasid;
}

template <class Access>
void for_each_line(std::uint64_t address, std::size_t bytes, Access access) {
  constexpr auto kLine = SoftwareRecorder::kLine;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, kLine - (address + done) % kLine);
    access(address + done, done, part);
    done += part;
  }
}

}  // namespace

SoftwareRecorder::SoftwareRecorder(System& system, EventSink& sink) : sink_(sink) {
  if (system.boundary() != nullptr) throw ConfigError("--record-software: not with several processes");
  for (std::uint32_t i = 0; i < system.adapters(); ++i) {
    Adapter& adapter = system.adapter(i);
    if (adapter.in_guest())
      throw ConfigError(fmt::format("--record-software: the software of {} is not simulated", adapter.label()));
    watch(i, adapter);
    if (adapter.device() == 0) watch_iommu(i, adapter);
  }
}

SoftwareRecorder::~SoftwareRecorder() = default;

void SoftwareRecorder::watch(std::uint32_t index, Adapter& adapter) {
  auto& root = adapter.root_complex();
  const std::uint32_t host = adapter.interface().host;
  subscribe(root.requested, [this, index](const host::CpuRequest& made) { request(index, made); });
  subscribe(root.dma_read, [this, index, host, &root](const host::DmaRead& done) {
    read(index, key_of(host, domain_of(root, done.pasid)), done.address, done.bytes);
  });
  subscribe(root.dma_written, [this, host, &root](const host::DmaWrite& done) {
    written(key_of(host, domain_of(root, done.pasid)), done.address, done.bytes);
  });
}

void SoftwareRecorder::watch_iommu(std::uint32_t index, Adapter& adapter) {
  auto& iommu = adapter.iommu();
  subscribe(iommu.presence, [this, index, host = adapter.interface().host](const host::IommuProcess& process) {
    if (!process.attached) {
      memory_.erase(key_of(host, process.domain));
      last_ = nullptr;
    }
    const auto state = process.attached ? ProcessState::attached : ProcessState::detached;
    write(index, EventKind::process, {process.domain, std::uint64_t(state)});
  });
  subscribe(iommu.mapping, [this, index](const host::IommuMapping& range) {
    write(index, EventKind::memory_pinned,
          {range.domain, range.address, range.length, range.writable ? 1u : 0u, range.pinned ? 1u : 0u});
  });
  subscribe(iommu.demand, [this, index](const host::IommuDemand& range) {
    write(index, EventKind::memory_on_demand, {range.domain, range.address, range.length});
  });
  subscribe(iommu.fault, [this, index](const host::IommuFault& fault) {
    if (fault.reason != host::IommuFault::Reason::not_mapped) return;
    const auto domain =
        fault.from.pasid == kKernelPasid ? host::Iommu::own_domain(fault.from.function) : fault.from.pasid;
    write(index, EventKind::memory_absent, {domain, fault.address, fault.length});
  });
}

void SoftwareRecorder::request(std::uint32_t index, const host::CpuRequest& request) {
  using Kind = host::CpuRequest::Kind;
  switch (request.kind) {
    case Kind::mmio_write:
      for (std::size_t part = 0; part < request.length; part += kLine)
        write(index, EventKind::mmio_write, {request.offset, request.length, part},
              request.bytes.subspan(part, std::min<std::size_t>(kLine, request.length - part)));
      return;
    case Kind::mmio_read:
      return write(index, EventKind::mmio_read, {request.offset, request.length});
    case Kind::config_write: {
      std::uint64_t value = 0;
      std::memcpy(&value, request.bytes.data(), std::min(request.bytes.size(), sizeof value));
      return write(index, EventKind::config_write, {request.offset, request.length, value});
    }
    case Kind::config_read:
      return write(index, EventKind::config_read, {request.offset, request.length});
  }
}

void SoftwareRecorder::read(std::uint32_t index, std::uint64_t process, std::uint64_t address,
                            std::span<const std::byte> bytes) {
  for_each_line(address, bytes.size(), [&](std::uint64_t at, std::size_t done, std::size_t part) {
    Page& known = page(process, at / kPage);
    std::byte* const before = known.bytes.data() + at % kPage;
    Duration& touched = known.touched[at % kPage / kLine];
    const auto found = bytes.subspan(done, part);
    if (std::memcmp(before, found.data(), part) != 0) {
      std::memcpy(before, found.data(), part);
      write(index, EventKind::memory, {process & 0xffffffff, at, part, std::uint64_t(touched.ps)}, found);
    }
    touched = now();
  });
}

void SoftwareRecorder::written(std::uint64_t process, std::uint64_t address, std::span<const std::byte> bytes) {
  for_each_line(address, bytes.size(), [&](std::uint64_t at, std::size_t done, std::size_t part) {
    Page& known = page(process, at / kPage);
    std::memcpy(known.bytes.data() + at % kPage, bytes.data() + done, part);
    known.touched[at % kPage / kLine] = now();
  });
}

SoftwareRecorder::Page& SoftwareRecorder::page(std::uint64_t process, std::uint64_t number) {
  if (last_ != nullptr && process == last_process_ && number == last_number_) return *last_;
  auto& known = memory_[process][number];
  if (!known) known = std::make_unique<Page>();
  last_ = known.get();
  last_process_ = process;
  last_number_ = number;
  return *last_;
}

void SoftwareRecorder::write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields) {
  sink_.write(make_event(now(), index, kind, fields));
}

void SoftwareRecorder::write(std::uint32_t index, EventKind kind, std::initializer_list<std::uint64_t> fields,
                             std::span<const std::byte> words) {
  auto event = make_event(now(), index, kind, fields);
  std::memcpy(event.fields.data() + fields.size(), words.data(), words.size());
  sink_.write(event);
}

}  // namespace rnicsim::sim
