// The kernel's work on pages on demand: brings in what devices ask for, and takes back what a process is about to move
// or to unmap, which ends only when no device uses it any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/pcie.h"
#include "model/host/host_counters.h"
#include "model/host/host_params.h"
#include "model/host/iommu.h"
#include "model/host/root_complex.h"

namespace rnicsim::host {

class PageFaults {
 public:
  PageFaults(const HostParams& params, Iommu& iommu) : params_(params), iommu_(iommu) {}

  // The device behind it asks, too.
  void add(RootComplex& device);

  // The process is about to do away with that range. False: nothing of it is on demand; else `done` runs when the
  // devices are done with it, and until then no page of it is brought in.
  bool withdraw(Pasid process, std::uint64_t address, std::uint64_t bytes, std::function<void()> done);
  // Brings pages in, in the time that takes. `done` gets 0 or errno.
  void make_present(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable,
                    std::function<void(int)> done);
  // The process has ended.
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
  std::map<std::uint64_t, Withdrawal> withdrawals_;         // by number
  std::map<std::uint32_t, std::uint64_t> invalidations_;    // by tag: of which withdrawal
  std::vector<std::function<void()>> held_up_;              // by a withdrawal
  std::uint64_t next_withdrawal_ = 0;
  std::uint32_t next_tag_ = 0;
  PageFaultCounters counters_;
};

}  // namespace rnicsim::host
