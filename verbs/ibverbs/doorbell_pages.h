// SPDX-License-Identifier: Apache-2.0
// Doorbell pages of a context, and their assignment to QPs. The first QPs get a page each and need no lock. Later QPs
// share the remaining pages; each takes the page with the fewest users. Pages are requested from the kernel when
// needed. Environment: RNICSIM_TOTAL_UUARS (most pages, default 16) and RNICSIM_NUM_LOW_LAT_UUARS (pages with a
// single QP, default 4, less than the total).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "verbs/ibverbs/queue_lock.h"
#include "verbs/port/device_port.h"
#include "verbs/provider/uar.h"

namespace rnicsim::verbs {

struct DoorbellPage {
  DoorbellPage(DeviceAccess& device, std::uint32_t page);

  // Called before a write to the page; the write takes abi::CpuCost::mmio_write.
  void pass_lock(CpuTime& cpu) {
    if (shared) cpu.pass_lock(lock, abi::CpuCost::mmio_write);
  }

  provider::Uar uar;
  std::uint32_t users = 0;
  bool shared = false;     // may have several QPs, which take the lock
  bool of_thread = false;  // belongs to a thread domain and is freed with it; its QPs need no lock
  TimedLock lock;
};

class DoorbellPages {
 public:
  struct Limits {
    std::uint32_t total = 16;
    std::uint32_t dedicated = 4;
  };
  static Limits limits_from_environment();

  // `first` is the page that the context has already: it arms CQs and serves the first QP.
  DoorbellPages(DevicePort& port, std::uint32_t first, const Limits& limits);
  ~DoorbellPages();
  DoorbellPages(const DoorbellPages&) = delete;
  DoorbellPages& operator=(const DoorbellPages&) = delete;

  DoorbellPage& first() const { return *pages_.front(); }
  // Page for one more QP. When the kernel has no free page, existing pages are shared.
  DoorbellPage& take();
  // Page for a thread domain; nullptr: the kernel has no free page.
  DoorbellPage* take_for_thread();
  // Adds a QP to the page of its thread domain.
  void share(DoorbellPage& page);
  void give_back(DoorbellPage& page);

 private:
  DoorbellPage* unused(bool shared) const;
  DoorbellPage* add(bool shared);
  DoorbellPage& least_used() const;
  std::uint32_t count(bool shared) const;

  DevicePort& port_;
  const Limits limits_;
  QueueLock lock_;
  std::vector<std::unique_ptr<DoorbellPage>> pages_;
};

}  // namespace rnicsim::verbs
