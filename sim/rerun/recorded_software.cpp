// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/recorded_software.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/nic/nic.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/recording/software_recorder.h"
#include "sim/simulated_host.h"
#include "sim/system.h"

namespace rnicsim::sim::rerun {

RecordedSoftware::RecordedSoftware(sc_core::sc_module_name name, System& system, const RecordedSteps& steps, Pace pace)
    : sc_module(name), steps_(steps), pace_(pace) {
  for (std::size_t i = 0; i < system.hosts(); ++i)
    hosts_.push_back(
        std::make_unique<Host>(system.host(i).name(), steps, pace, [this](const Step& step) { play(step); }));
  for (std::uint32_t i = 0; i < system.adapters(); ++i) connect(system, i);
  for (std::uint32_t i = 0; i < steps.steps().size(); ++i) {
    const Step& step = steps.steps()[i];
    Host& host = *host_of_[step.adapter];
    host.player.add(i);
    if (step.wait == Step::Wait::for_access && pace == Pace::as_possible)
      host.memory[Pasid(step.process)].name_word(step.address);
  }
  for (const auto& host : hosts_) host->player.start();
}

bool RecordedSoftware::has_ended() const {
  return std::ranges::all_of(hosts_, [](const auto& host) { return host->player.has_ended(); });
}

Duration RecordedSoftware::played() const {
  Duration last;
  for (const auto& host : hosts_) last = std::max(last, host->player.played());
  return last;
}

Duration RecordedSoftware::requested() const {
  Duration last;
  for (const auto& host : hosts_) last = std::max(last, host->player.requested());
  return last;
}

std::optional<Duration> RecordedSoftware::next_due() const {
  std::optional<Duration> first;
  for (const auto& host : hosts_)
    if (const auto at = host->player.next_due()) first = std::min(first.value_or(*at), *at);
  return first;
}

std::optional<Duration> RecordedSoftware::stuck_since() const {
  return next_due() ? std::nullopt : std::optional(played());
}

std::string RecordedSoftware::describe_waits() const {
  std::string text;
  for (const auto& host : hosts_) {
    if (!host->player.waits()) continue;
    const Step& step = host->player.next_request();
    const auto& output = *steps_.awaited_by(step);
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: '{}' of the recorded {} waits for ", host->name, info(step.kind).name, to_string(step.at));
    switch (output.what) {
      case Awaited::memory: text += fmt::format("write {} of a device at {:#x}", output.count, output.address); break;
      case Awaited::interrupt: text += fmt::format("interrupt {} of vector {}", output.count, output.address); break;
      case Awaited::answer: text += fmt::format("the value of read {}", output.count); break;
    }
  }
  return text;
}

// Connects the adapter to its root complex in the same way as on a host with a simulated kernel.
void RecordedSoftware::connect(System& system, std::uint32_t index) {
  Adapter& adapter = system.adapter(index);
  const auto& interface = adapter.interface();
  host_of_.push_back(hosts_[interface.host].get());
  auto& root = *root_complexes_.emplace_back(std::make_unique<host::RootComplex>(
      fmt::format("root_complex{}", index).c_str(), system.config().host_of(interface.host), host_of_.back()->iommu,
      interface.device));
  auto& nic = adapter.nic();
  root.bar.bind(nic.bar());
  root.config.bind(nic.config());
  nic.dma().bind(root.upstream);
  nic.blocks().pcie.reach(root);
  root.reach(nic.blocks().pcie);
  // No reaction here: the kernel's reactions are among the recorded steps.
  root.interrupt.bind([](std::uint32_t) {});
  root.page_requested.bind([](PageRequest&&) {});
  root.invalidated.bind([](std::uint32_t) {});
  if (pace_ == Pace::as_possible) watch(index, *host_of_.back());
}

void RecordedSoftware::watch(std::uint32_t index, Host& host) {
  auto& root = *root_complexes_[index];
  root.dma_written.subscribe([&root, &host](const host::DmaWrite& done) {
    const std::uint64_t domain = done.pasid == kKernelPasid ? root.own_domain() : done.pasid;
    constexpr std::uint64_t kLine = SoftwareRecorder::kLine;
    for (std::uint64_t line = done.address / kLine; line * kLine < done.address + done.length; ++line)
      host.player.outputs().came(Awaited::memory, domain, line * kLine);
  });
  root.interrupts.subscribe([index, &host](const host::Interrupt& interrupt) {
    host.player.outputs().came(Awaited::interrupt, index, interrupt.vector);
  });
  root.answered.subscribe(
      [index, &host](const host::MmioAnswered&) { host.player.outputs().came(Awaited::answer, index, 0); });
}

void RecordedSoftware::play(const Step& step) {
  Host& host = *host_of_[step.adapter];
  const auto domain = Pasid(step.process);
  switch (step.kind) {
    case EventKind::memory: return store(host.memory[domain], step);
    case EventKind::memory_absent: return host.memory[domain].remove(step.address, step.length);
    case EventKind::memory_pinned: return pin(host, step);
    case EventKind::process:
      if (step.address == std::uint64_t(ProcessState::attached)) {
        attach(host, domain);
      } else if (host.attached.erase(domain) != 0) {
        host.iommu.detach(domain);
        host.memory.erase(domain);
      }
      return;
    default: return request(step);
  }
}

void RecordedSoftware::store(RecordedMemory& memory, const Step& step) {
  const auto bytes = steps_.bytes_of(step);
  const auto wait = pace_ == Pace::recorded && step.wait == Step::Wait::for_access ? Step::Wait::none : step.wait;
  switch (wait) {
    case Step::Wait::none: return memory.store(step.address, bytes);
    case Step::Wait::for_access: return memory.store_after_access(step.address, bytes);
    case Step::Wait::no_longer:
      if (pace_ == Pace::as_possible) memory.wait_no_longer(step.address, bytes);
  }
}

void RecordedSoftware::request(const Step& step) {
  using Kind = host::CpuRequest::Kind;
  auto& root = *root_complexes_[step.adapter];
  const auto offset = std::uint32_t(step.address);
  std::array<std::byte, sizeof(std::uint64_t)> data{};
  switch (step.kind) {
    case EventKind::mmio_write: {
      Payload payload(step.length);
      std::ranges::copy(steps_.bytes_of(step), payload.writable().begin());
      return root.mmio_write(offset, std::move(payload));
    }
    case EventKind::mmio_read: return root.mmio_read(offset, std::uint32_t(step.length), [](std::uint64_t) {});
    case EventKind::config_read:
      root.config_request(Kind::config_read, std::uint16_t(offset), std::span(data).first(step.length));
      return;
    case EventKind::config_write:
      std::ranges::copy(steps_.bytes_of(step), data.begin());
      root.config_request(Kind::config_write, std::uint16_t(offset), std::span(data).first(step.length));
      return;
    default: return;
  }
}

// Attaches the domain if needed: a kernel's own memory is attached before the recording begins.
RecordedMemory& RecordedSoftware::attach(Host& host, Pasid domain) {
  auto& memory = host.memory[domain];
  if (host.attached.try_emplace(domain, true).second) host.iommu.attach(domain, memory);
  return memory;
}

void RecordedSoftware::pin(Host& host, const Step& step) {
  const auto domain = Pasid(step.process);
  attach(host, domain);
  if (step.pinned)
    host.iommu.pin(domain, step.address, step.length, step.writable);
  else
    host.iommu.unpin(domain, step.address, step.length, step.writable);
}

}  // namespace rnicsim::sim::rerun
