// SPDX-License-Identifier: Apache-2.0
// The kernel's handling of pages on demand: brings in pages that devices request, and withdraws pages that a process is
// about to move or unmap. A withdrawal ends when no device uses the pages any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/pcie.h"
#include "model/host/host_counters.h"
#include "model/host/host_params.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"

namespace rnicsim::host {

class PageFaults {
 public:
  PageFaults(const HostParams& params, Iommu& iommu) : params_(params), iommu_(iommu) {}

  // Registers a root complex whose device requests pages.
  void add(RootComplex& device);

  // Call before the process unmaps or moves the range. False: no page of it is on demand. True: `done` runs when the
  // devices have released the pages; until then no page of the range is brought in.
  bool withdraw(Pasid process, std::uint64_t address, std::uint64_t bytes, std::function<void()> done);
  // Brings pages in, which takes simulated time. `done` gets 0 or errno.
  void make_present(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable,
                    std::function<void(int)> done);
  // Withdraws all pages of a process that has ended.
  void forget(Pasid process);

  const PageFaultCounters& counters() const { return counters_; }

 private:
  struct Withdrawal {
    Pasid process;
    std::uint64_t address;
    std::uint64_t bytes;
    std::size_t unanswered;
    std::function<void()> done;
  };

  void run_due();
  void serve(RootComplex& device, const PageRequest& request);
  void bring_in(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable,
                const std::function<void(int)>& done);
  bool is_leaving(Pasid process, std::uint64_t address, std::uint64_t bytes) const;
  void invalidated(std::uint32_t tag);

  const HostParams params_;
  Iommu& iommu_;
  std::vector<RootComplex*> devices_;
  EventQueue<std::function<void()>> work_{[this] { run_due(); }};
  std::map<std::uint64_t, Withdrawal> withdrawals_;       // by number
  std::map<std::uint32_t, std::uint64_t> invalidations_;  // by tag: the number of the withdrawal
  std::vector<std::function<void()>> held_up_;            // requests that wait for the end of a withdrawal
  std::uint64_t next_withdrawal_ = 0;
  std::uint32_t next_tag_ = 0;
  PageFaultCounters counters_;
};

}  // namespace rnicsim::host
