// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/send_wqe_cache.h"

#include <utility>

namespace rnicsim::nic {

void SendWqeCacheParams::describe(ParamVisitor& visit) {
  visit.param("entries", entries, "64 B blocks of send WQEs kept; docs/timing.md", {0, 1 << 20});
  visit.param("ways", ways, "blocks of a set", {1, 64});
  visit.param("miss_slots", miss_slots,
              "repeated reads of WQEs in progress, for the QPs of one path; each transmit unit has a path", {1, 1024});
  visit.param("ahead", ahead, "WQEs of a QP kept until their turn; further posted WQEs stay in the ring", {8, 1024});
  visit.param("replacement", replacement, "policy that selects the block of a set to evict",
              policy_names<Replacement>());
  visit.refuse(!CacheTags::can_be(entries, ways), "entries", "is not a multiple of", "ways");
}

SendWqeCache::SendWqeCache(const SendWqeCacheParams& params, std::uint32_t units, std::uint32_t block_bytes, Dma& dma)
    : block_bytes_(block_bytes), tags_(params.entries, params.ways, params.replacement), dma_(dma) {
  for (std::uint32_t i = 0; i < units; ++i) paths_.emplace_back(params.miss_slots, counters_.slots);
  counters_.slots.slots = units * params.miss_slots;
}

// A block's set is pseudo-random, so that the capacity does not depend on how blocks are divided among queue pairs.
// Keys are unique, since each step is invertible (finalizer of MurmurHash3).
std::uint64_t SendWqeCache::key(Qpn qpn, std::uint16_t block) {
  auto key = std::uint64_t{qpn.value} << 16 | block;
  key = (key ^ key >> 33) * 0xff51afd7ed558ccd;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53;
  return key ^ key >> 33;
}

void SendWqeCache::hold(const WqeHeld& wqe) {
  for (std::uint16_t block = 0; block < wqe.blocks; ++block) {
    const auto entry = key(wqe.qpn, static_cast<std::uint16_t>(wqe.index + block));
    if (!tags_.touch(entry)) tags_.insert(entry);
  }
}

void SendWqeCache::need(const WqeNeeded& wqe) {
  in_turn({wqe.qpn, wqe.index, wqe.blocks, wqe.pasid, wqe.address, wqe.tag, 0});
}

void SendWqeCache::retire(WqeRetired&& wqe) {
  const Lookup lookup{wqe.qpn, wqe.index, wqe.blocks, wqe.pasid, wqe.address, std::nullopt, ++tickets_};
  auto& line = this->line(wqe.qpn);
  line.push_back({std::move(wqe.cqe), false, lookup.ticket});
  in_turn(lookup);
  const bool waits = !line.empty() && line.back().ticket == lookup.ticket;
  if (waits && line.back().cqe) line.back().cqe->behind_payload = false;
}

PooledList<SendWqeCache::Waiting>& SendWqeCache::line(Qpn qpn) {
  auto* line = waiting_.find(qpn.value);
  return line != nullptr ? *line : waiting_.put(qpn.value, std::make_unique<PooledList<Waiting>>());
}

void SendWqeCache::in_turn(const Lookup& lookup) {
  auto& path = this->path(lookup.qpn);
  path.stalled.empty() && can_look_up(path, lookup) ? look_up(path, lookup) : stall(path, lookup);
}

void SendWqeCache::stall(Path& path, const Lookup& lookup) {
  ++counters_.slot_waits;
  path.stalled.push_back(lookup);
  path.stalled.back().since = now();
}

bool SendWqeCache::can_look_up(const Path& path, const Lookup& lookup) const {
  if (path.slots.free()) return true;
  for (std::uint16_t block = 0; block < lookup.blocks; ++block)
    if (!tags_.contains(key(lookup.qpn, static_cast<std::uint16_t>(lookup.index + block)))) return false;
  return true;
}

// A lookup for a completion removes the blocks.
void SendWqeCache::look_up(Path& path, const Lookup& lookup) {
  bool here = true;
  for (std::uint16_t block = 0; block < lookup.blocks; ++block) {
    const auto entry = key(lookup.qpn, static_cast<std::uint16_t>(lookup.index + block));
    here &= lookup.to_send ? tags_.touch(entry) : tags_.erase(entry);
  }
  ++counters_.lookups;
  ++(here ? counters_.hits : counters_.misses);
  if (here) return found(lookup);
  path.slots.take();  // free: can_look_up() was true
  read(lookup);
}

void SendWqeCache::found(const Lookup& lookup) {
  if (lookup.to_send) return at_hand(Tag{*lookup.to_send});
  complete(lookup.qpn, lookup.ticket);
}

void SendWqeCache::read(const Lookup& lookup) {
  reading_.push_back(Lookup(lookup));
  dma_.read(lookup.pasid, lookup.address, lookup.blocks * block_bytes_, {this, resets_, 0});
}

void SendWqeCache::dma_done(std::uint32_t resets, std::uint64_t, AccessResult, Payload&&) {
  if (resets != resets_) return;
  const auto lookup = reading_.front();
  reading_.pop_front();
  fetched(lookup);
}

// The bytes read are ignored: the engine has the decoded WQE.
void SendWqeCache::fetched(const Lookup& lookup) {
  auto& path = this->path(lookup.qpn);
  path.slots.give_back();
  if (lookup.to_send) hold({lookup.qpn, lookup.index, lookup.blocks});
  found(lookup);
  while (!path.stalled.empty() && can_look_up(path, path.stalled.front())) {
    const auto next = path.stalled.front();
    path.stalled.pop_front();
    counters_.slots.wait_ps += static_cast<Counter>((now() - next.since).ps);
    look_up(path, next);
  }
}

void SendWqeCache::complete(Qpn qpn, std::uint64_t ticket) {
  auto& line = this->line(qpn);
  for (auto& waiting : line)
    if (waiting.ticket == ticket) waiting.here = true;
  while (!line.empty() && line.front().here) {
    auto done = std::move(line.front().cqe);
    line.pop_front();
    if (done) cqe(std::move(*done));
  }
}

void SendWqeCache::forget_qp(Qpn qpn) {
  line(qpn).clear();
  std::erase_if(path(qpn).stalled, [qpn](const Lookup& lookup) { return lookup.qpn == qpn && !lookup.to_send; });
}

void SendWqeCache::reset() {
  ++resets_;
  tags_.clear();
  waiting_.clear();
  reading_.clear();
  for (auto& path : paths_) {
    path.stalled.clear();
    path.slots.clear();
  }
}

}  // namespace rnicsim::nic
