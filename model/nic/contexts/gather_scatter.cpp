// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/gather_scatter.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kCacheLine = 64;

}  // namespace

struct GatherScatter::Job {
  Tag tag;
  Qpn qpn;
  bool is_gather;
  bool frame;  // the bytes of a raw packet
  AccessRequest access;
  Regions regions;
  Payload payload;
  bool more = false;
  std::uint8_t room = 0;  // bytes that may be padded
  Translated behind{};    // place of the padding
  std::vector<Translated> places{};
  std::vector<Translation::Hold> holds{};  // holds of pages on demand
  std::size_t awaited = 0;
  bool translated = false;
  bool forgotten = false;
  AccessResult result = AccessResult::ok;
};

bool GatherScatter::only_place(const Regions& regions, const AccessRequest& access, Translated& found) const {
  if (regions.size() != 1 || regions[0].length == 0 || !translation_.translate_now(access, regions[0], found))
    return false;
  // No range: the place is in the null region.
  return found.result != AccessResult::ok || found.ranges.size() == 1;
}

GatherScatter::Order& GatherScatter::order(Qpn qpn) {
  auto* order = orders_.find(qpn.value);
  return order != nullptr ? *order : orders_.put(qpn.value, std::make_unique<Order>());
}

inline GatherScatter::Access& GatherScatter::take_access(Tag tag, Qpn qpn, const Translated& found,
                                                         std::uint32_t length) {
  auto& access = accesses_.take();
  access.tag = tag;
  access.qpn = qpn;
  access.result = found.result;
  access.place = found.only_place();
  access.length = length;
  access.order = nullptr;
  access.frame = access.remote = false;
  access.relaxed = found.relaxed;
  return access;
}

void GatherScatter::gather(Gather&& request) {
  const AccessRequest access{request.pd, request.access, request.qpn, request.remote};
  Translated found;
  if (only_place(request.regions, access, found)) {
    auto& one = take_access(request.tag, request.qpn, found, request.regions[0].length);
    one.frame = request.frame;
    one.remote = request.remote;
    return found.wait == Duration{} ? begin(one) : at_hand_.push(now() + found.wait, &one);
  }
  gather_in_parts(std::move(request), access);
}

void GatherScatter::gather_in_parts(Gather&& request, const AccessRequest& access) {
  translate(std::make_shared<Job>(Job{.tag = request.tag,
                                      .qpn = request.qpn,
                                      .is_gather = true,
                                      .frame = request.frame,
                                      .access = access,
                                      .regions = std::move(request.regions),
                                      .payload = {}}));
}

void GatherScatter::scatter(Scatter&& request) {
  taken({request.qpn, request.payload.size()});
  const AccessRequest access{request.pd, request.access, request.qpn, request.remote};
  auto& order = this->order(request.qpn);
  if (order.jobs.empty() && request.room == 0) {
    Translated found;
    if (only_place(request.regions, access, found)) {
      auto& one = take_access(request.tag, request.qpn, found, request.regions[0].length);
      one.order = &order;
      one.epoch = order.epoch;
      one.payload = std::move(request.payload);
      one.more = request.more;
      // Waiting accesses may be due now without having begun: keep the order.
      if (order.waiting == 0 && found.wait == Duration{}) return begin(one);
      ++order.waiting;
      waiting_bytes_ += one.payload.size();
      order.until = std::max(now() + found.wait, order.until);
      return at_hand_.push(order.until, &one);
    }
  }
  scatter_in_parts(std::move(request), access, order);
}

void GatherScatter::scatter_in_parts(Scatter&& request, const AccessRequest& access, Order& order) {
  waiting_bytes_ += request.payload.size();
  order.jobs.push_back(std::make_shared<Job>(Job{.tag = request.tag,
                                                 .qpn = request.qpn,
                                                 .is_gather = false,
                                                 .frame = false,
                                                 .access = access,
                                                 .regions = std::move(request.regions),
                                                 .payload = std::move(request.payload),
                                                 .more = request.more,
                                                 .room = request.room}));
  translate(order.jobs.back());
}

void GatherScatter::begin_due() {
  Access* access;
  while (at_hand_.pop_due(access)) {
    if (access->job) {
      const auto job = std::move(access->job);
      accesses_.give_back(*access);
      if (!job->forgotten) write_ready(job->qpn);
    } else if (access->order == nullptr) {
      begin(*access);
    } else {
      waiting_bytes_ -= access->payload.size();
      if (access->epoch != access->order->epoch) {
        refuse(*access, AccessResult::denied);
      } else {
        --access->order->waiting;
        begin(*access);
      }
    }
  }
}

void GatherScatter::begin(Access& access) {
  translated({access.tag, access.qpn});
  if (access.result != AccessResult::ok) return refuse(access, access.result);
  if (access.order == nullptr)
    memory_.read(access.place, access.length, {this, kGather, access.tag},
                 {.discard = timing_only_ && !access.frame, .relaxed = access.relaxed, .for_peer = access.remote});
  else
    memory_.write(access.order->writes, access.place, std::move(access.payload), {this, kScatter, access.tag},
                  {.more = access.more, .discard = timing_only_, .relaxed = access.relaxed});
  accesses_.give_back(access);
}

// The callback may reset this unit.
void GatherScatter::refuse(Access& access, AccessResult result) {
  access.payload = {};
  accesses_.give_back(access);
  dma_done(access.order == nullptr ? kGather : kScatter, access.tag, result, {});
}

void GatherScatter::dma_done(std::uint32_t kind, std::uint64_t tag, AccessResult result, Payload&& data) {
  (kind == kGather ? gathered : scattered)({tag, result, std::move(data)});
}

// Writes jobs that are translated, in order. A callback may bring the next scatter at once.
void GatherScatter::write_ready(Qpn qpn) {
  for (;;) {
    auto& order = this->order(qpn);
    if (order.jobs.empty() || !order.jobs.front()->translated) return;
    // Accesses that wait only for the second level came earlier.
    if (order.waiting != 0) {
      auto& turn = accesses_.take();
      turn.job = order.jobs.front();
      return at_hand_.push(order.until, &turn);
    }
    // If a page was withdrawn during the wait, the job is translated again.
    if (auto& head = *order.jobs.front(); !hold(head)) {
      head.translated = false;
      const auto again = order.jobs.front();
      return translate(again);
    }
    const auto job = std::move(order.jobs.front());
    order.jobs.pop_front();
    waiting_bytes_ -= job->payload.size();
    write(job);
  }
}

void GatherScatter::forget(Qpn qpn) {
  auto* order = orders_.find(qpn.value);
  if (order == nullptr) return;
  ++order->epoch;
  order->waiting = 0;
  order->until = {};
  const auto jobs = std::exchange(order->jobs, {});
  for (const auto& job : jobs) {
    job->forgotten = true;
    waiting_bytes_ -= job->payload.size();
  }
  for (const auto& job : jobs) scattered({job->tag, AccessResult::denied, {}});
  memory_.forget(order->writes);
}

void GatherScatter::reset() {
  memory_.reset();
  orders_.clear();
  at_hand_.clear();
  accesses_.clear();
  waiting_bytes_ = 0;
}

void GatherScatter::check(const AccessCheck& request) {
  const AccessRequest access{request.pd, request.access, request.qpn, request.remote};
  if (const auto result = translation_.check_now(access, request.region)) return checked({request.tag, *result});
  translation_.check(access, request.region, [this, tag = request.tag](AccessResult result) {
    checked({tag, result});
  });
}

void GatherScatter::look(const PresenceCheck& request) {
  struct Looks {
    std::size_t left;
    AccessResult result = AccessResult::ok;
  };
  const auto looks = std::make_shared<Looks>(Looks{request.regions.size() + 1});
  const auto answer = [this, looks, tag = request.tag](AccessResult result) {
    if (result == AccessResult::absent) looks->result = result;
    if (--looks->left == 0) checked({tag, looks->result});
  };
  const AccessRequest access{request.pd, request.access, request.qpn};
  for (const auto& region : request.regions) translation_.look(access, region, request.waits, answer);
  answer(AccessResult::ok);
}

// Holds all pages of the job, or none.
bool GatherScatter::hold(Job& job) {
  const auto held = [](const Translation::Hold& hold) { return hold->begin(); };
  if (job.result == AccessResult::ok && std::ranges::all_of(job.holds, held)) return true;
  job.holds.clear();
  return job.result != AccessResult::ok;
}

void GatherScatter::translate(const JobPtr& job) {
  const auto empty = [](const Region& region) { return region.length == 0; };
  job->regions.erase(std::ranges::remove_if(job->regions, empty).begin(), job->regions.end());
  job->places.resize(job->regions.size());
  job->awaited = job->regions.size() + 1;
  const auto answer = [this, job](AccessResult result) {
    if (job->result == AccessResult::ok) job->result = result;
    if (--job->awaited != 0) return;
    translated({job->tag, job->qpn});
    if (job->is_gather) return read_when_held(job);
    job->translated = true;
    if (!job->forgotten) write_ready(job->qpn);
  };
  for (std::size_t i = 0; i < job->regions.size(); ++i)
    translation_.translate(job->access, job->regions[i], [this, job, i, answer](const Translated& place) {
      job->places[i] = place;
      if (auto hold = translation_.take_hold()) job->holds.push_back(std::move(hold));
      answer(place.result);
    });
  if (job->room != 0 && !job->regions.empty()) {
    const auto& last = job->regions.back();
    ++job->awaited;
    // Bytes outside of the region are not padded.
    translation_.translate(job->access, {last.key, last.address + last.length, job->room},
                           [job, answer](const Translated& place) {
                             job->behind = place;
                             answer(AccessResult::ok);
                           });
  }
  answer(AccessResult::ok);
}

void GatherScatter::read_when_held(const JobPtr& job) { hold(*job) ? read(job) : translate(job); }

void GatherScatter::read(const JobPtr& job) {
  if (job->result != AccessResult::ok || job->regions.empty()) return gathered({job->tag, job->result, {}});
  const bool discard = timing_only_ && !job->frame;
  std::uint32_t total = 0;
  bool null = false;
  for (std::size_t i = 0; i < job->regions.size(); ++i) {
    total += job->regions[i].length;
    job->awaited += job->places[i].ranges.size();
    null |= job->places[i].ranges.empty();
  }
  if (null || job->awaited > 1) job->payload = Payload(total);
  // Bytes of the null region are zeros.
  if (null && !discard) std::ranges::fill(job->payload.writable(), std::byte{});
  if (job->awaited == 0) return gathered({job->tag, AccessResult::ok, std::move(job->payload)});
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < job->regions.size(); ++i) {
    auto at = offset;
    const auto& place = job->places[i];
    for (std::size_t range = 0; range < place.ranges.size(); ++range) {
      auto done = [this, job, at, discard](AccessResult result, Payload bytes) {
        if (job->payload.empty())
          job->payload = std::move(bytes);
        else if (!discard && !bytes.empty())
          std::memcpy(job->payload.writable().data() + at, bytes.bytes().data(), bytes.size());
        part_done(job, result);
      };
      memory_.read(place.place(range), place.ranges[range].length, memory_.closure(std::move(done)),
                   {.discard = discard, .relaxed = place.relaxed, .for_peer = job->access.remote});
      at += place.ranges[range].length;
    }
    offset += job->regions[i].length;
  }
}

// Extends the last write to the end of its cache line, as far as there is room.
void GatherScatter::pad(Job& job) {
  auto& last = job.places.back();
  const auto& behind = job.behind;
  if (behind.result != AccessResult::ok || last.ranges.empty() || behind.ranges.empty()) return;
  auto& range = last.ranges.back();
  if (behind.pasid != last.pasid || behind.ranges[0].address != range.address + range.length) return;
  const auto to_end = static_cast<std::uint32_t>(-(range.offset + range.length) % kCacheLine);
  const auto padding = std::min(to_end, behind.ranges[0].length);
  if (padding == 0) return;
  Payload padded(job.payload.size() + padding);
  std::ranges::copy(job.payload.bytes(), padded.writable().begin());
  std::ranges::fill(padded.writable().last(padding), std::byte{});
  job.payload = std::move(padded);
  range.length += padding;
}

void GatherScatter::write(const JobPtr& job) {
  if (job->result != AccessResult::ok || job->regions.empty()) return scattered({job->tag, job->result, {}});
  if (job->room != 0) pad(*job);
  for (const auto& place : job->places) job->awaited += place.ranges.size();
  // Writes to the null region are discarded.
  if (job->awaited == 0) return scattered({job->tag, AccessResult::ok, {}});
  auto& writes = order(job->qpn).writes;
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < job->regions.size(); ++i) {
    auto at = offset;
    const auto& place = job->places[i];
    for (std::size_t range = 0; range < place.ranges.size(); ++range) {
      const auto length = place.ranges[range].length;
      memory_.write(writes, place.place(range), job->payload.slice(at, length),
                    memory_.closure([this, job](AccessResult result, Payload) { part_done(job, result); }),
                    {.more = job->more, .discard = timing_only_, .relaxed = place.relaxed});
      at += length;
    }
    offset += job->regions[i].length;
  }
}

void GatherScatter::part_done(const JobPtr& job, AccessResult result) {
  if (job->result == AccessResult::ok) job->result = result;
  if (--job->awaited != 0) return;
  job->holds.clear();
  DmaDone done{job->tag, job->result, {}};
  if (job->is_gather) done.payload = std::move(job->payload);
  job->is_gather ? gathered(std::move(done)) : scattered(std::move(done));
}

}  // namespace rnicsim::nic
