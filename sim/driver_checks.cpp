// SPDX-License-Identifier: Apache-2.0
#include "sim/driver_checks.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "model/driver_check/driver_check.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/system.h"

namespace rnicsim::sim {

struct DriverChecks::Watched {
  Watched(Adapter& adapter, const driver_check::CheckParams& params)
      : label(adapter.label()), check(std::make_shared<driver_check::DriverCheck>(adapter.nic(), params)) {
    check->tell([this](const driver_check::Finding& finding) {
      std::string text = fmt::format("rnicsim: check: {}: {}\n", label, finding.line());
      for (const auto& access : finding.accesses) text += fmt::format("  {}\n", access);
      fmt::print(stderr, "{}", text);
    });
    // A guest does not report which memory its driver maps.
    if (adapter.in_guest()) return;
    // With several devices in a host, each device has an IOMMU domain of its own for the kernel, and processes share
    // one. Hosts also unpin memory during destruction, possibly after the check is gone: hence the weak_ptr.
    const auto own = adapter.root_complex().own_domain();
    adapter.iommu().mapping.subscribe([watching = std::weak_ptr(check), own](const host::IommuMapping& mapping) {
      const auto told = watching.lock();
      const Pasid pasid = mapping.domain == own ? kKernelPasid : mapping.domain;
      if (!told || (mapping.domain == kKernelPasid && own != kKernelPasid)) return;
      mapping.pinned ? told->mapped(pasid, mapping.address, mapping.length)
                     : told->unmapped(pasid, mapping.address, mapping.length);
    });
  }

  const std::string label;
  const std::shared_ptr<driver_check::DriverCheck> check;
};

DriverChecks::DriverChecks(System& system, const driver_check::CheckParams& params) {
  for (std::size_t i = 0; i < system.adapters(); ++i)
    watched_.push_back(std::make_unique<Watched>(system.adapter(i), params));
}

DriverChecks::~DriverChecks() = default;

bool DriverChecks::finish() {
  std::size_t findings = 0;
  for (const auto& watched : watched_) {
    auto& check = *watched->check;
    check.finish();
    findings += check.findings().size();
    std::string text = fmt::format("rnicsim: check: {}: {} accesses, {} findings\n", watched->label, check.accesses(),
                                   check.findings().size());
    const auto burndown = check.burndown();
    for (std::size_t at = 0; at < burndown.size();) {
      const auto end = burndown.find('\n', at);
      text += fmt::format("  {}\n", burndown.substr(at, end - at));
      at = end + 1;
    }
    fmt::print(stderr, "{}", text);
  }
  return findings == 0;
}

}  // namespace rnicsim::sim
