// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/window_unit.h"

#include <utility>

#include "model/nic/contexts/fast_registration.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kRemoteChanges = access::kRemoteWrite | access::kRemoteAtomic;
constexpr std::uint32_t kWindowAccess = kRemoteChanges | access::kRemoteRead | access::kZeroBased;

// Checks of IBTA vol 1, 10.6.6.2 and 11.4.4.1.
AccessResult check_window(const MemoryRegion* window, const BindWindow& request) {
  const auto& binding = request.binding;
  if (window == nullptr || !window->is_window() || binding.key >> 8 != binding.window >> 8)
    return AccessResult::bad_key;
  if (window->pd != request.pd) return AccessResult::bad_pd;
  if ((binding.access & ~kWindowAccess) != 0) return AccessResult::denied;
  if (window->kind == RegionKind::window2)
    return window->valid || binding.length == 0 ? AccessResult::denied : AccessResult::ok;
  // Only the index is checked: after a failed or flushed bind the driver's tag is ahead of the entry's.
  return (binding.access & access::kZeroBased) == 0 ? AccessResult::ok : AccessResult::denied;
}

AccessResult check_region(const MemoryRegion* region, const BindWindow& request) {
  const auto& binding = request.binding;
  // The lkey must name the region, and the address must be in its bounds.
  const auto inside = check_access(region, {request.pd, access::kWindowBind}, {binding.region, binding.address, 0});
  if (inside != AccessResult::ok) return inside;
  if (region->kind != RegionKind::region) return AccessResult::bad_key;
  if (binding.length > region->length - (binding.address - region->start)) return AccessResult::bad_range;
  const bool needs_write = (binding.access & kRemoteChanges) != 0;
  const bool writable = (region->access & access::kLocalWrite) != 0;
  if ((region->access & access::kZeroBased) != 0 || (needs_write && !writable)) return AccessResult::denied;
  return AccessResult::ok;
}

}  // namespace

void WindowUnit::bind(const BindWindow& request) {
  enqueue([this, request] { begin_bind(request); });
}

void WindowUnit::fast_register(const FastRegister& request) {
  enqueue([this, request] { begin_register(request); });
}

void WindowUnit::invalidate(const Invalidate& request) {
  enqueue([this, request] { begin_invalidate(request); });
}

void WindowUnit::close(std::uint32_t index, Then then) {
  enqueue([this, index, then = std::move(then)] {
    find(index, [this, index, then](MemoryRegion* window) {
      if (window == nullptr || !window->valid) return end(then);
      unbind(index, *window, [this, then] { end(then); });
    });
  });
}

void WindowUnit::close_all_of(Qpn qpn, Then then) {
  enqueue([this, qpn, then = std::move(then)] { close_next_of(qpn, then); });
}

void WindowUnit::close_next_of(Qpn qpn, Then then) {
  const auto own = of_qps_.find(qpn.value);
  if (own == of_qps_.end()) return end(std::move(then));
  const auto index = *own->second.begin();
  find(index, [this, qpn, index, then = std::move(then)](MemoryRegion* window) {
    if (window != nullptr) return unbind(index, *window, [this, qpn, then] { close_next_of(qpn, then); });
    // The entry is lost, so that no access can use the window.
    of_qps_.erase(qpn.value);
    end(then);
  });
}

void WindowUnit::begin_bind(const BindWindow& request) {
  find(request.binding.window >> 8, [this, request](MemoryRegion* window) {
    if (const auto refused = check_window(window, request); refused != AccessResult::ok)
      return answer(request.tag, refused);
    if (request.binding.length != 0) return enter_region(request, *window);
    leave_region(*window, [this, request] { set(request, 0); });
  });
}

void WindowUnit::enter_region(const BindWindow& request, const MemoryRegion& window) {
  const auto index = request.binding.region >> 8;
  find(index, [this, request, index, window](MemoryRegion* region) {
    if (const auto refused = check_region(region, request); refused != AccessResult::ok)
      return answer(request.tag, refused);
    ++region->windows;
    contexts_.regions.changed(index);
    leave_region(window, [this, request, on_demand = region->access & access::kOnDemand] { set(request, on_demand); });
  });
}

// Decrements the window count of the region to which the window was bound.
void WindowUnit::leave_region(const MemoryRegion& window, Then then) {
  if (!window.valid) return then();
  ++counters_.closed;
  find(window.region, [this, index = window.region, then = std::move(then)](MemoryRegion* region) {
    if (region != nullptr) {
      --region->windows;
      contexts_.regions.changed(index);
    }
    then();
  });
}

// `on_demand`: this access bit of the region.
void WindowUnit::set(const BindWindow& request, std::uint32_t on_demand) {
  const auto& binding = request.binding;
  const auto index = binding.window >> 8;
  find(index, [this, request, binding, index, on_demand](MemoryRegion* window) {
    if (window == nullptr) return answer(request.tag, AccessResult::bad_key);
    const bool zero_based = (binding.access & access::kZeroBased) != 0;
    window->valid = binding.length != 0;
    window->key = binding.key;
    window->access = binding.access | on_demand;
    window->start = zero_based ? 0 : binding.address;
    window->length = binding.length;
    window->bus_address = binding.address;
    window->region = binding.region >> 8;
    window->qpn = request.qpn.value;
    contexts_.regions.changed(index);
    if (window->valid) ++counters_.bound;
    if (window->kind == RegionKind::window2) of_qps_[request.qpn.value].insert(index);
    answer(request.tag, AccessResult::ok);
  });
}

void WindowUnit::begin_register(const FastRegister& request) {
  const auto index = request.registration.key >> 8;
  find(index, [this, request, index](MemoryRegion* region) {
    const auto& wanted = request.registration;
    const auto result = check_registration(region, contexts_.page_ranges[index], request.pd, wanted);
    if (result == AccessResult::ok) {
      take_pages(*region, wanted);
      contexts_.regions.changed(index);
      ++counters_.registered;
    }
    answer(request.tag, result);
  });
}

// A window of type 2 can be invalidated by the queue pair to which it is bound; a region of kind fast_register by each
// queue pair of its protection domain.
void WindowUnit::begin_invalidate(const Invalidate& request) {
  const auto index = request.key >> 8;
  find(index, [this, request, index](MemoryRegion* window) {
    if (window == nullptr || !window->valid || window->key != request.key)
      return answer(request.tag, AccessResult::bad_key);
    if (window->kind == RegionKind::fast_register) return free_region(request, *window);
    if (window->kind != RegionKind::window2 || window->qpn != request.qpn.value)
      return answer(request.tag, AccessResult::denied);
    unbind(index, *window, [this, request] { answer(request.tag, AccessResult::ok); });
  });
}

// Accesses under way through the region's pages are refused, and the tables drop the pages: the driver may then write
// other addresses into the MTT.
void WindowUnit::free_region(const Invalidate& request, const MemoryRegion& region) {
  if (region.pd != request.pd) return answer(request.tag, AccessResult::bad_pd);
  const auto index = request.key >> 8;
  const auto pages = contexts_.page_ranges[index];
  contexts_.regions.renew(index, without_pages(region));
  contexts_.pages.flush(pages.first, pages.count);
  ++counters_.freed;
  flush(pages.count, [this, tag = request.tag] { answer(tag, AccessResult::ok); });
}

void WindowUnit::unbind(std::uint32_t index, MemoryRegion& window, Then then) {
  const auto was = window;
  window.valid = false;
  contexts_.regions.changed(index);
  if (const auto own = of_qps_.find(was.qpn); own != of_qps_.end() && own->second.erase(index) != 0)
    if (own->second.empty()) of_qps_.erase(own);
  leave_region(was, std::move(then));
}

void WindowUnit::answer(Tag tag, AccessResult result) {
  if (result != AccessResult::ok) ++counters_.refused;
  end([this, tag, result] { done({tag, result}); });
}

void WindowUnit::find(std::uint32_t index, Found found) {
  Duration wait;
  if (auto* entry = contexts_.regions.touch(index, wait)) {
    wait_ += wait;
    return found(entry);
  }
  contexts_.regions.await(index, std::move(found));
}

void WindowUnit::enqueue(Then work) {
  waiting_.push_back(std::move(work));
  run();
}

void WindowUnit::run() {
  if (std::exchange(running_, true)) return;
  while (!busy_ && !waiting_.empty()) {
    busy_ = true;
    wait_ = {};
    const auto work = std::exchange(waiting_.front(), {});
    waiting_.pop_front();
    work();
  }
  running_ = false;
}

void WindowUnit::end(Then then) {
  if (wait_ != Duration{}) return ending_.push(now() + std::exchange(wait_, {}), std::move(then));
  then();
  busy_ = false;
  run();
}

void WindowUnit::run_due() {
  Then then;
  while (ending_.pop_due(then)) end(std::move(then));
}

void WindowUnit::reset() {
  waiting_.clear();
  ending_.clear();
  of_qps_.clear();
  busy_ = false;
}

}  // namespace rnicsim::nic
