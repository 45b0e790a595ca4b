// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/software_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/base/kernel.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

// Key of a process: PASIDs are numbered in each host separately.
std::uint64_t key_of(std::uint32_t host, std::uint64_t domain) { return std::uint64_t(host) << 32 | domain; }

std::uint64_t domain_of(const host::RootComplex& root, Pasid pasid) {
  return pasid == kKernelPasid ? root.own_domain() : pasid;
}

// Calls `access(address, offset, bytes)` for each part between multiples of `size`.
template <class Access>
void for_each_part(std::uint64_t address, std::size_t bytes, std::size_t size, Access access) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, size - (address + done) % size);
    access(address + done, done, part);
    done += part;
  }
}

}  // namespace

SoftwareRecorder::SoftwareRecorder(System& system, EventSink& sink) : sink_(sink) {
  if (system.boundary() != nullptr) throw ConfigError("--record-software cannot be combined with several processes");
  for (std::uint32_t i = 0; i < system.adapters(); ++i) {
    Adapter& adapter = system.adapter(i);
    if (adapter.in_guest())
      throw ConfigError(fmt::format("--record-software: the software of {} is not simulated", adapter.label()));
    host_of_.push_back(adapter.interface().host);
    if (adapter.device() == 0) {
      seen_.emplace_back(system.config().host_of(adapter.interface().host).cpu.cost(abi::CpuCost::detect));
      watch_iommu(i, adapter);
    }
    watch(i, adapter);
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
    written(host, domain_of(root, done.pasid), done.address, done.bytes);
  });
  subscribe(root.interrupts,
            [this, index, host, counts = std::vector<std::uint64_t>()](const host::Interrupt& interrupt) mutable {
              if (interrupt.vector >= counts.size()) counts.resize(interrupt.vector + 1);
              seen_[host].add({Awaited::interrupt, index, interrupt.vector, ++counts[interrupt.vector], now()}, now());
            });
  subscribe(root.answered, [this, index, host, count = std::uint64_t{0}](const host::MmioAnswered&) mutable {
    seen_[host].add({Awaited::answer, index, 0, ++count, now()}, now());
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
    write_step(index, EventKind::process, {process.domain, std::uint64_t(state)});
  });
  subscribe(iommu.mapping, [this, index](const host::IommuMapping& range) {
    write_step(index, EventKind::memory_pinned,
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
  write_awaited(index);
  switch (request.kind) {
    case Kind::mmio_write:
      for (std::size_t part = 0; part < request.length; part += kLine)
        write(index, EventKind::mmio_write, {request.offset, request.length, part},
              request.bytes.subspan(part, std::min<std::size_t>(kLine, request.length - part)));
      return;
    case Kind::mmio_read: return write(index, EventKind::mmio_read, {request.offset, request.length});
    case Kind::config_write: {
      std::uint64_t value = 0;
      std::memcpy(&value, request.bytes.data(), std::min(request.bytes.size(), sizeof value));
      return write(index, EventKind::config_write, {request.offset, request.length, value});
    }
    case Kind::config_read: return write(index, EventKind::config_read, {request.offset, request.length});
  }
}

void SoftwareRecorder::read(std::uint32_t index, std::uint64_t process, std::uint64_t address,
                            std::span<const std::byte> bytes) {
  for_each_part(address, bytes.size(), kPage, [&](std::uint64_t at, std::size_t done, std::size_t part) {
    Page& known = page(process, at / kPage);
    std::byte* const before = known.bytes.data() + at % kPage;
    const auto found = bytes.subspan(done, part);
    if (std::memcmp(before, found.data(), part) != 0) {
      for_each_part(at, part, kLine, [&](std::uint64_t line, std::size_t from, std::size_t length) {
        if (std::memcmp(before + from, found.data() + from, length) != 0)
          write_stores(index, process, line, found.subspan(from, length), known);
      });
      std::memcpy(before, found.data(), part);
    }
    known.touch(at % kPage, at % kPage + part, now());
  });
}

// Writes the words of a line from the first that differs to the last that differs.
void SoftwareRecorder::write_stores(std::uint32_t index, std::uint64_t process, std::uint64_t address,
                                    std::span<const std::byte> found, const Page& known) {
  std::size_t first = found.size(), end = 0;
  Duration since;
  for_each_part(address, found.size(), kWord, [&](std::uint64_t at, std::size_t done, std::size_t part) {
    if (std::memcmp(known.bytes.data() + at % kPage, found.data() + done, part) == 0) return;
    first = std::min(first, done);
    end = done + part;
    since = std::max(since, known.word_touched(at % kPage / kWord));
  });
  write(index, EventKind::memory, {process & 0xffffffff, address + first, end - first, std::uint64_t(since.ps)},
        found.subspan(first, end - first));
}

void SoftwareRecorder::Page::touch(std::size_t begin, std::size_t end, Duration now) {
  if (begin == 0 && end == kPage) return void(whole_touched = now);
  const std::size_t first = (begin + kLine - 1) / kLine, last = end / kLine;
  const auto touch_words = [&](std::size_t from, std::size_t to) {
    if (from >= to) return;
    if (!words) words = std::make_unique<Words>();
    for (std::size_t word = from / kWord; word * kWord < to; ++word) (*words)[word] = now;
  };
  if (first > last) return touch_words(begin, end);  // all within one line
  touch_words(begin, first * kLine);
  std::fill(touched.begin() + std::ptrdiff_t(first), touched.begin() + std::ptrdiff_t(last), now);
  touch_words(last * kLine, end);
}

void SoftwareRecorder::Page::count_write(std::size_t begin, std::size_t end) {
  if (begin == 0 && end == kPage) return void(++whole_writes);
  for (std::size_t line = begin / kLine; line * kLine < end; ++line) ++writes[line];
}

void SoftwareRecorder::written(std::uint32_t host, std::uint64_t domain, std::uint64_t address,
                               std::span<const std::byte> bytes) {
  DeviceOutput output{Awaited::memory, domain, 0, 0, now()};
  for_each_part(address, bytes.size(), kPage, [&](std::uint64_t at, std::size_t done, std::size_t part) {
    Page& known = page(key_of(host, domain), at / kPage);
    const std::size_t begin = at % kPage, end = begin + part;
    std::memcpy(known.bytes.data() + begin, bytes.data() + done, part);
    known.touch(begin, end, now());
    known.count_write(begin, end);
    output.address = (at + part - 1) / kLine * kLine;
    output.count = known.writes_of((end - 1) / kLine);
  });
  if (output.count != 0) seen_[host].add(output, now());
}

void SoftwareRecorder::write_awaited(std::uint32_t index) {
  if (const auto output = seen_[host_of_[index]].take(now()))
    write(index, EventKind::awaited,
          {std::uint64_t(output->what), output->owner, output->address, output->count, std::uint64_t(output->at.ps)});
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
