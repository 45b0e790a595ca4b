// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/page_faults.h"

#include <algorithm>
#include <utility>

#include "model/base/kernel.h"

namespace rnicsim::host {
namespace {

constexpr std::uint64_t kPageBytes = AddressSpace::kPage;

std::uint64_t pages_in(std::uint64_t address, std::uint64_t bytes) {
  return bytes == 0 ? 0 : (address + (bytes - 1)) / kPageBytes - address / kPageBytes + 1;
}

}  // namespace

void PageFaults::add(RootComplex& device) {
  devices_.push_back(&device);
  device.page_requested.bind([this, &device](PageRequest&& request) {
    work_.push(now() + params_.page_fault, [this, &device, request] { serve(device, request); });
  });
  device.invalidated.bind([this](std::uint32_t tag) { invalidated(tag); });
}

void PageFaults::run_due() {
  std::function<void()> work;
  while (work_.pop_due(work)) work();
}

void PageFaults::serve(RootComplex& device, const PageRequest& request) {
  if (is_leaving(request.pasid, request.address, kPageBytes))
    return held_up_.push_back([this, &device, request] { serve(device, request); });
  const int error = iommu_.bring_in(request.pasid, request.address, kPageBytes, request.write);
  ++(error == 0 ? counters_.page_faults : counters_.page_faults_failed);
  device.respond({request.index, error == 0});
}

void PageFaults::make_present(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable,
                              std::function<void(int)> done) {
  const auto pages = static_cast<std::int64_t>(pages_in(address, bytes));
  work_.push(now() + params_.page_in * pages, [this, process, address, bytes, writable, done = std::move(done)] {
    bring_in(process, address, bytes, writable, done);
  });
}

void PageFaults::bring_in(Pasid process, std::uint64_t address, std::uint64_t bytes, bool writable,
                          const std::function<void(int)>& done) {
  if (is_leaving(process, address, bytes))
    return held_up_.push_back([=, this] { bring_in(process, address, bytes, writable, done); });
  const int error = iommu_.bring_in(process, address, bytes, writable);
  if (error == 0) counters_.page_prefetch += pages_in(address, bytes);
  done(error);
}

bool PageFaults::is_leaving(Pasid process, std::uint64_t address, std::uint64_t bytes) const {
  return std::ranges::any_of(withdrawals_, [&](const auto& one) {
    const Withdrawal& range = one.second;
    return range.process == process && address / kPageBytes <= (range.address + (range.bytes - 1)) / kPageBytes &&
           range.address / kPageBytes <= (address + (bytes - 1)) / kPageBytes;
  });
}

bool PageFaults::withdraw(Pasid process, std::uint64_t address, std::uint64_t bytes, std::function<void()> done) {
  if (bytes == 0) return false;
  if (is_leaving(process, address, bytes)) {
    held_up_.push_back([=, this] {
      if (!withdraw(process, address, bytes, done) && done) done();
    });
    return true;
  }
  const auto runs = iommu_.withdraw(process, address, bytes);
  if (runs.empty()) return false;
  const auto number = next_withdrawal_++;
  withdrawals_.emplace(number, Withdrawal{process, address, bytes, runs.size() * devices_.size(), std::move(done)});
  for (const auto& run : runs) {
    counters_.page_invalidations += run.pages;
    for (auto* device : devices_) {
      invalidations_.emplace(next_tag_, number);
      device->invalidate({process, run.address, run.pages, next_tag_++});
    }
  }
  return true;
}

void PageFaults::invalidated(std::uint32_t tag) {
  const auto asked = invalidations_.find(tag);
  if (asked == invalidations_.end()) return;
  const auto found = withdrawals_.find(asked->second);
  invalidations_.erase(asked);
  if (--found->second.unanswered != 0) return;
  const Withdrawal ended = std::move(found->second);
  withdrawals_.erase(found);
  iommu_.release(ended.process, ended.address, ended.bytes);
  for (const auto& work : std::exchange(held_up_, {})) work();
  if (ended.done) ended.done();
}

void PageFaults::forget(Pasid process) { withdraw(process, 0, ~0ull, {}); }

}  // namespace rnicsim::host
