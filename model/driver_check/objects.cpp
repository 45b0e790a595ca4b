// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/objects.h"

#include <fmt/format.h>

namespace rnicsim::driver_check {

const char* name_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::eq: return "event queue";
    case ObjectKind::cq: return "completion queue";
    case ObjectKind::qp: return "queue pair";
    case ObjectKind::srq: return "shared receive queue";
    case ObjectKind::key: return "key";
  }
  return "";
}

std::string in_words(const MemoryRange& range) {
  const auto of = [&range](const char* what) { return fmt::format("{} {}", what, range.number); };
  switch (range.kind) {
    case MemoryKind::send_ring: return of("send ring of queue pair");
    case MemoryKind::receive_ring: return of("receive ring of queue pair");
    case MemoryKind::qp_record: return of("doorbell record of queue pair");
    case MemoryKind::cq_ring: return of("ring of completion queue");
    case MemoryKind::cq_record: return of("doorbell record of completion queue");
    case MemoryKind::eq_ring: return of("ring of event queue");
    case MemoryKind::srq_ring: return of("ring of shared receive queue");
    case MemoryKind::srq_record: return of("doorbell record of shared receive queue");
    case MemoryKind::command_queue: return "command queue";
    case MemoryKind::icm: return of("ICM of table");
  }
  return "";
}

bool Objects::exists(ObjectKind kind, std::uint32_t number) const {
  switch (kind) {
    case ObjectKind::eq: return eqs.contains(number);
    case ObjectKind::cq: return cqs.contains(number);
    case ObjectKind::qp: return qps.contains(number);
    case ObjectKind::srq: return srqs.contains(number);
    case ObjectKind::key: break;
  }
  for (const auto& [index, region] : regions)
    if (region.key == number) return true;
  return false;
}

std::optional<Duration> Objects::destroyed_at(ObjectKind kind, std::uint32_t number) const {
  const auto found = gone_.find({kind, number});
  return found != gone_.end() ? std::optional(found->second) : std::nullopt;
}

bool Objects::lives(std::uint32_t qpn, std::uint64_t life) const {
  const auto found = qps.find(qpn);
  return found != qps.end() && found->second.life == life;
}

void Objects::make(std::uint32_t qpn, const nic::QpContext& context) {
  qps[qpn] = {.context = context, .life = ++lives_};
}

void Objects::destroy(ObjectKind kind, std::uint32_t number, Duration at) {
  if (gone_.size() >= kMostGone) gone_.clear();
  gone_[{kind, number}] = at;
  switch (kind) {
    case ObjectKind::eq: eqs.erase(number); return remove(MemoryKind::eq_ring, number);
    case ObjectKind::cq:
      cqs.erase(number);
      remove(MemoryKind::cq_ring, number);
      return remove(MemoryKind::cq_record, number);
    case ObjectKind::qp:
      qps.erase(number);
      remove(MemoryKind::send_ring, number);
      remove(MemoryKind::receive_ring, number);
      return remove(MemoryKind::qp_record, number);
    case ObjectKind::srq:
      srqs.erase(number);
      remove(MemoryKind::srq_ring, number);
      return remove(MemoryKind::srq_record, number);
    case ObjectKind::key: return;
  }
}

void Objects::destroy_region(std::uint32_t index, Duration at) {
  const auto found = regions.find(index);
  if (found == regions.end()) return;
  destroy(ObjectKind::key, found->second.key, at);
  regions.erase(found);
}

void Objects::destroy_all(Duration at) {
  while (!qps.empty()) destroy(ObjectKind::qp, qps.begin()->first, at);
  while (!srqs.empty()) destroy(ObjectKind::srq, srqs.begin()->first, at);
  while (!cqs.empty()) destroy(ObjectKind::cq, cqs.begin()->first, at);
  while (!eqs.empty()) destroy(ObjectKind::eq, eqs.begin()->first, at);
  while (!regions.empty()) destroy_region(regions.begin()->first, at);
  std::erase_if(ranges_, [](const auto& one) { return one.second.kind == MemoryKind::icm; });
}

void Objects::add(Pasid pasid, const MemoryRange& range) {
  if (range.bytes == 0) return;
  remove(range.kind, range.number);
  const auto place = ranges_.emplace(std::pair(pasid, range.address), range);
  if (range.kind != MemoryKind::icm) places_[{range.kind, range.number}] = place;
}

void Objects::remove(MemoryKind kind, std::uint32_t number) {
  const auto place = places_.find({kind, number});
  if (place == places_.end()) return;
  ranges_.erase(place->second);
  places_.erase(place);
}

}  // namespace rnicsim::driver_check
