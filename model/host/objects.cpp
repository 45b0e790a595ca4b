// SPDX-License-Identifier: Apache-2.0
#include "model/host/objects.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "model/abi/device.h"

namespace rnicsim::host {
namespace {

// Lower numbers are reserved; kInvalidLkey has MPT index 1.
constexpr std::uint32_t kFirstCqn = 1;
constexpr std::uint32_t kFirstMptIndex = 2;

template <class Object>
int remove_unused(std::map<std::uint32_t, Object>& objects, NumberPool& numbers, Pasid owner, std::uint32_t number) {
  const Object* object = Objects::find(objects, owner, number);
  if (!object) return ENOENT;
  if (object->users != 0) return EBUSY;
  objects.erase(number);
  numbers.give_back(number);
  return 0;
}

template <class Object>
int add_owned(std::map<std::uint32_t, Object>& objects, NumberPool& numbers, Pasid owner, std::uint32_t& number) {
  const auto taken = numbers.take();
  if (!taken) return ENOMEM;
  number = *taken;
  objects.emplace(number, Object{owner});
  return 0;
}

}  // namespace

void Objects::set_limits(const abi::DeviceCapabilities& device) {
  pd_numbers_ = NumberPool(1, 1 + device.max_pd);
  uar_numbers_ = NumberPool(1, abi::kUarPages);  // page 0 is the kernel's
  cq_numbers = NumberPool(kFirstCqn, device.max_cq);
  mr_numbers = NumberPool(kFirstMptIndex, device.max_mr);
  srq_numbers = NumberPool(0, device.max_srq);
  qp_numbers = NumberPool(kFirstQpn, device.max_qp);
  counter_numbers = NumberPool(0, device.max_flow_counters);
  flow_numbers = NumberPool(0, device.max_flows);
  pages = RangePool(device.max_mtt);
  max_mr_size = device.max_mr_size;
  device_pages_ = RangePool(device.device_memory / DeviceRange::kPage);
}

void Objects::leave_to_processes(abi::DeviceCapabilities& device) {
  const auto take = [](abi::Be32& all, std::uint32_t taken) { all = all - std::min<std::uint32_t>(all, taken); };
  take(device.max_qp, kFirstQpn);
  take(device.max_cq, kFirstCqn);
  take(device.max_mr, kFirstMptIndex);
}

int Objects::alloc_pd(Pasid owner, std::uint32_t& number) { return add_owned(pds, pd_numbers_, owner, number); }
int Objects::dealloc_pd(Pasid process, std::uint32_t number) {
  const Pd* pd = find_usable(pds, process, number);
  return pd ? remove_unused(pds, pd_numbers_, pd->owner, number) : ENOENT;
}
int Objects::alloc_uar(Pasid owner, std::uint32_t& page) { return add_owned(uars, uar_numbers_, owner, page); }
int Objects::free_uar(Pasid owner, std::uint32_t page) { return remove_unused(uars, uar_numbers_, owner, page); }

int Objects::alloc_dm(Pasid owner, std::uint64_t bytes, std::uint64_t log_alignment, std::uint32_t& offset) {
  constexpr std::uint64_t kPage = DeviceRange::kPage;
  if (bytes == 0 || log_alignment > 63) return EINVAL;
  if (bytes > abi::kMostDeviceMemory) return ENOMEM;
  const DeviceRange range{.owner = owner, .bytes = static_cast<std::uint32_t>(bytes)};
  const auto first = device_pages_.take(range.pages(), std::max(std::uint64_t{1} << log_alignment, kPage) / kPage);
  if (!first) return ENOMEM;
  offset = *first * DeviceRange::kPage;
  device_ranges.emplace(offset, range);
  return 0;
}

int Objects::free_dm(Pasid process, std::uint32_t offset) {
  const DeviceRange* range = find_usable(device_ranges, process, offset);
  if (!range) return ENOENT;
  if (range->users != 0) return EBUSY;
  free_range(device_ranges.find(offset));
  return 0;
}

void Objects::free_range(std::map<std::uint32_t, DeviceRange>::iterator range) {
  device_pages_.give_back(range->first / DeviceRange::kPage, range->second.pages());
  device_ranges.erase(range);
}

int Objects::import_dm(Pasid holder, std::uint32_t context, std::uint32_t offset, std::uint32_t& bytes) const {
  const auto right = contexts_.find(context);
  const auto range = device_ranges.find(offset);
  if (right == contexts_.end() || right->second.holder != holder || range == device_ranges.end()) return ENOENT;
  if (range->second.owner != right->second.owner) return ENOENT;
  bytes = range->second.bytes;
  return 0;
}

std::optional<std::uint32_t> Objects::find_device_range(Pasid process, std::uint64_t offset,
                                                        std::uint64_t bytes) const {
  if (offset > abi::kMostDeviceMemory) return std::nullopt;
  const auto behind = device_ranges.upper_bound(static_cast<std::uint32_t>(offset));
  if (behind == device_ranges.begin()) return std::nullopt;
  const auto& [first, range] = *std::prev(behind);
  const bool inside = offset - first <= range.bytes && bytes <= range.bytes - (offset - first);
  return inside && may_use(process, range.owner) ? std::optional(first) : std::nullopt;
}

bool Objects::may_access_device_memory(Pasid process, std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > abi::kMostDeviceMemory) return false;
  const auto behind = device_ranges.upper_bound(static_cast<std::uint32_t>(offset));
  if (behind == device_ranges.begin()) return false;
  const auto& [first, range] = *std::prev(behind);
  const auto mapped = std::uint64_t{range.pages()} * DeviceRange::kPage;
  return offset - first <= mapped && bytes <= mapped - (offset - first) && may_use(process, range.owner);
}

int Objects::open_context(Pasid owner, const ContextFile& file, std::uint32_t& number) {
  const bool taken = std::ranges::any_of(contexts_, [&](const auto& entry) { return entry.second.file == file; });
  if (taken) return EEXIST;
  number = next_context_++;
  contexts_.emplace(number, ContextRight{owner, owner, file});
  return 0;
}

int Objects::import_context(Pasid holder, const ContextFile& file, std::uint32_t& number) {
  const auto found = std::ranges::find_if(contexts_, [&](const auto& entry) { return entry.second.file == file; });
  if (found == contexts_.end()) return EINVAL;
  number = next_context_++;
  contexts_.emplace(number, ContextRight{holder, found->second.owner, file});
  return 0;
}

int Objects::close_context(Pasid holder, std::uint32_t number) {
  const auto found = contexts_.find(number);
  if (found == contexts_.end() || found->second.holder != holder) return ENOENT;
  contexts_.erase(found);
  remove_unwanted();
  return 0;
}

void Objects::close_contexts(Pasid holder) {
  std::erase_if(contexts_, [&](const auto& entry) { return entry.second.holder == holder; });
  remove_unwanted();
}

int Objects::import_pd(Pasid holder, std::uint32_t context, std::uint32_t number) const {
  const auto right = contexts_.find(context);
  const auto pd = pds.find(number);
  if (right == contexts_.end() || right->second.holder != holder || pd == pds.end()) return ENOENT;
  return pd->second.owner == right->second.owner ? 0 : ENOENT;
}

bool Objects::may_use(Pasid process, Pasid owner) const {
  return process == owner || std::ranges::any_of(contexts_, [&](const auto& entry) {
           return entry.second.holder == process && entry.second.owner == owner;
         });
}

QueuePair* Objects::find_qp(Pasid process, std::uint32_t qpn) {
  const auto found = qps.find(qpn);
  if (found == qps.end()) return nullptr;
  auto& qp = found->second;
  const bool its = qp.xrcd ? std::ranges::find(qp.handles, process, &QueuePair::Handle::process) != qp.handles.end()
                           : qp.owner == process;
  return its ? &qp : nullptr;
}

int Objects::open_qp(Pasid process, std::uint32_t xrcd, std::uint32_t qpn, std::optional<std::uint32_t> events) {
  const auto qp = qps.find(qpn);
  const bool there = domains.has(process, xrcd) && qp != qps.end() && qp->second.xrcd == xrcd && !qp->second.going;
  if (!there) return EINVAL;
  qp->second.handles.push_back({process, events});
  domains.enter(process, xrcd);
  return 0;
}

bool Objects::close_handle(QueuePair& qp, Pasid process, std::uint32_t events) {
  if (qp.handles.size() < 2) return false;
  const auto its = [&](const QueuePair::Handle& handle) { return handle.process == process; };
  auto handle = std::ranges::find_if(qp.handles, [&](const auto& one) { return its(one) && one.events == events; });
  if (handle == qp.handles.end()) handle = std::ranges::find_if(qp.handles, its);
  qp.handles.erase(handle);
  domains.leave(process, *qp.xrcd);
  return true;
}

bool Objects::close_handles(QueuePair& qp, Pasid process) {
  const auto its = [&](const QueuePair::Handle& handle) { return handle.process == process; };
  if (std::ranges::all_of(qp.handles, its)) return false;
  std::erase_if(qp.handles, [&](const auto& handle) {
    if (!its(handle)) return false;
    domains.leave(process, *qp.xrcd);
    return true;
  });
  return true;
}

void Objects::add_cq(std::uint32_t cqn, const CompletionQueue& cq) {
  ++uars.at(cq.uar).users;
  cqs.emplace(cqn, cq);
}

void Objects::add_mr(std::uint32_t index, const MemoryRegion& mr) {
  ++pds.at(mr.place.pd).users;
  if (mr.place.device_range) ++device_ranges.at(*mr.place.device_range).users;
  mrs.emplace(index, mr);
}

void Objects::begin_move(MemoryRegion& mr, const RegionPlace& next) {
  ++pds.at(next.pd).users;
  mr.next = next;
}

void Objects::end_move(MemoryRegion& mr, bool moved) {
  if (moved) std::swap(mr.place, *mr.next);
  leave_pd(mr.next->pd);
  if (!mr.next->has_pages_of(mr.place)) pages.give_back(mr.next->first_page, mr.next->pages);
  mr.next.reset();
}

void Objects::add_mw(std::uint32_t index, const MemoryWindow& mw) {
  ++pds.at(mw.pd).users;
  mws.emplace(index, mw);
}

void Objects::add_srq(std::uint32_t srqn, const SharedReceiveQueue& srq) {
  ++pds.at(srq.pd).users;
  if (srq.xrcd) {
    ++cqs.at(srq.cqn).users;
    domains.enter(srq.owner, *srq.xrcd);
  }
  srqs.emplace(srqn, srq);
}

void Objects::add_qp(std::uint32_t qpn, const QueuePair& qp) {
  if (qp.xrcd) {
    domains.enter(qp.handles.front().process, *qp.xrcd);
    qps.emplace(qpn, qp);
    return;
  }
  ++pds.at(qp.pd).users;
  ++uars.at(qp.uar).users;
  ++cqs.at(qp.send_cqn).users;
  ++cqs.at(qp.receive_cqn).users;
  if (qp.srqn) ++srqs.at(*qp.srqn).users;
  qps.emplace(qpn, qp);
}

void Objects::add_rss(std::uint32_t number, const RssContext& rss) {
  for (const std::uint32_t qpn : rss.qpns) ++qps.at(qpn).users;
  rss_contexts.emplace(number, rss);
}

// Users of the QP or RSS context to which a flow leads.
std::uint32_t& Objects::users_of_receiver(std::uint32_t qpn) {
  const auto rss = rss_contexts.find(qpn);
  return rss != rss_contexts.end() ? rss->second.users : qps.at(qpn).users;
}

void Objects::add_flow(std::uint32_t number, const Flow& flow) {
  ++users_of_receiver(flow.qpn);
  if (flow.counter) ++counters.at(*flow.counter).users;
  flows.emplace(number, flow);
}

void Objects::remove_cq(std::uint32_t cqn) {
  const auto cq = cqs.find(cqn);
  --uars.at(cq->second.uar).users;
  cqs.erase(cq);
  cq_numbers.give_back(cqn);
}

void Objects::remove_mpt(std::uint32_t index) {
  if (const auto mw = mws.find(index); mw != mws.end()) {
    leave_pd(mw->second.pd);
    mws.erase(mw);
  } else {
    const auto mr = mrs.find(index);
    leave_place(mr->second.place);
    mrs.erase(mr);
  }
  mr_numbers.give_back(index);
}

void Objects::remove_srq(std::uint32_t srqn) {
  const auto srq = srqs.find(srqn);
  leave_pd(srq->second.pd);
  if (srq->second.xrcd) {
    --cqs.at(srq->second.cqn).users;
    domains.leave(srq->second.owner, *srq->second.xrcd);
  }
  srqs.erase(srq);
  srq_numbers.give_back(srqn);
}

void Objects::remove_qp(std::uint32_t qpn) {
  const auto found = qps.find(qpn);
  const auto& qp = found->second;
  if (qp.xrcd) {
    for (const auto& handle : qp.handles) domains.leave(handle.process, *qp.xrcd);
  } else {
    leave_pd(qp.pd);
    --uars.at(qp.uar).users;
    --cqs.at(qp.send_cqn).users;
    --cqs.at(qp.receive_cqn).users;
    if (qp.srqn) --srqs.at(*qp.srqn).users;
  }
  qps.erase(found);
  qp_numbers.give_back(qpn);
}

void Objects::remove_rss(std::uint32_t number) {
  const auto rss = rss_contexts.find(number);
  for (const std::uint32_t qpn : rss->second.qpns) --qps.at(qpn).users;
  rss_contexts.erase(rss);
  qp_numbers.give_back(number);
}

void Objects::remove_flow(std::uint32_t number) {
  const auto flow = flows.find(number);
  --users_of_receiver(flow->second.qpn);
  if (flow->second.counter) --counters.at(*flow->second.counter).users;
  flows.erase(flow);
  flow_numbers.give_back(number);
}

void Objects::remove_counter(std::uint32_t number) {
  counters.erase(number);
  counter_numbers.give_back(number);
}

template <class Object>
bool Objects::is_wanted(const Object& object) const {
  if (!object.orphan || object.users != 0) return true;
  return std::ranges::any_of(contexts_, [&](const auto& entry) { return entry.second.owner == object.owner; });
}

void Objects::remove_unwanted() {
  std::erase_if(pds, [&](const auto& entry) {
    if (is_wanted(entry.second)) return false;
    pd_numbers_.give_back(entry.first);
    return true;
  });
  for (auto range = device_ranges.begin(); range != device_ranges.end();) {
    const auto old = range++;
    if (!is_wanted(old->second)) free_range(old);
  }
}

void Objects::leave_place(const RegionPlace& place) {
  leave_pd(place.pd);
  pages.give_back(place.first_page, place.pages);
  if (!place.device_range) return;
  const auto range = device_ranges.find(*place.device_range);
  --range->second.users;
  if (!is_wanted(range->second)) free_range(range);
}

void Objects::leave_pd(std::uint32_t number) {
  const auto pd = pds.find(number);
  --pd->second.users;
  if (is_wanted(pd->second)) return;
  pds.erase(pd);
  pd_numbers_.give_back(number);
}

void Objects::remove_software_objects(Pasid owner) {
  close_contexts(owner);
  domains.close_all(owner);
  for (auto& [number, pd] : pds)
    if (pd.owner == owner) pd.orphan = true;
  for (auto& [offset, range] : device_ranges)
    if (range.owner == owner) range.orphan = true;
  remove_unwanted();
  std::erase_if(uars, [&](const auto& entry) {
    if (entry.second.owner != owner || entry.second.users != 0) return false;
    uar_numbers_.give_back(entry.first);
    return true;
  });
}

}  // namespace rnicsim::host
