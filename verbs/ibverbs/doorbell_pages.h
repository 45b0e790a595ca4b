// The doorbell pages of a context, and which queue pair rings which. The first queue pairs get a page each, which needs
// no lock; the others share the rest, each time the page with the fewest users. Pages are taken from the kernel as they
// are needed. Environment: RNICSIM_TOTAL_UUARS (pages at most, 16) and RNICSIM_NUM_LOW_LAT_UUARS (pages for one queue
// pair alone, 4; less than all).
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

  // Before a write to the page, which takes the CPU abi::CpuCost::mmio_write.
  void pass_lock(CpuTime& cpu) {
    if (shared) cpu.pass_lock(lock, abi::CpuCost::mmio_write);
  }

  provider::Uar uar;
  std::uint32_t users = 0;
  bool shared = false;  // for more queue pairs than one: behind the lock
  bool of_thread = false;  // a thread domain's: it goes with it, and its queue pairs need no lock
  TimedLock lock;
};

class DoorbellPages {
 public:
  struct Limits {
    std::uint32_t total = 16;
    std::uint32_t dedicated = 4;
  };
  static Limits limits_from_environment();

  // The context's first page exists already: it arms CQs, and is the first queue pair's.
  DoorbellPages(DevicePort& port, std::uint32_t first, const Limits& limits);
  ~DoorbellPages();
  DoorbellPages(const DoorbellPages&) = delete;
  DoorbellPages& operator=(const DoorbellPages&) = delete;

  DoorbellPage& first() const { return *pages_.front(); }
  // For one more queue pair. When the kernel has no more pages, those that there are are shared.
  DoorbellPage& take();
  // For a thread domain; nullptr when the kernel has no more.
  DoorbellPage* take_for_thread();
  // One more queue pair of its thread domain.
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
