#include "sim/rerun/recorded_software.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/nic/nic.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/host.h"
#include "sim/recording/software_recorder.h"
#include "sim/system.h"

namespace rnicsim::sim::rerun {

RecordedSoftware::RecordedSoftware(sc_core::sc_module_name name, System& system, const RecordedSteps& steps)
    : sc_module(name), steps_(steps) {
  for (std::size_t i = 0; i < system.hosts(); ++i) hosts_.push_back(std::make_unique<Host>(system.host(i).name()));
  for (std::uint32_t i = 0; i < system.adapters(); ++i) connect(system, i);
  if (!steps_.steps().empty()) due_.arm(steps_.steps().front().at);
}

// As an adapter is connected to its root complex where the kernel is simulated.
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
  // What a kernel would do is among the steps.
  root.interrupt.bind([](std::uint32_t) {});
  root.page_requested.bind([](PageRequest&&) {});
  root.invalidated.bind([](std::uint32_t) {});
}

void RecordedSoftware::play_due() {
  const auto& steps = steps_.steps();
  while (next_ < steps.size() && steps[next_].at <= now()) play(steps[next_++]);
  if (next_ < steps.size()) due_.arm(steps[next_].at);
}

void RecordedSoftware::play(const Step& step) {
  Host& host = *host_of_[step.adapter];
  const auto domain = Pasid(step.process);
  switch (step.kind) {
    case EventKind::memory: return host.memory[domain].store(step.address, steps_.bytes_of(step));
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

// A kernel's own memory is there before the recording begins.
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
