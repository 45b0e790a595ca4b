// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/shared_receives.h"

#include <algorithm>
#include <utility>

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kEntriesAtOnce = 8;
constexpr std::uint32_t kLow = 4;  // with fewer entries at hand, more are read

std::uint16_t entry_count(const SharedReceiveQueue& srq) { return static_cast<std::uint16_t>(1u << srq.log_entries); }

}  // namespace

bool SharedReceives::may_take(const SrqTake& take) const {
  return !take.xrcd || contexts_.xrc_cqns.contains(take.srqn);
}

void SharedReceives::take(const SrqTake& take) {
  if (!may_take(take)) {
    ++counters_.refused;
    return taken(SrqTaken{.tag = take.tag, .qpn = take.qpn, .srqn = take.srqn, .refused = true});
  }
  work_[take.srqn].takes.push_back({take, reads_});
  proceed(take.srqn);
}

void SharedReceives::give_back(const SrqGiveBack& back) {
  if (back.life == 0 || contexts_.srqs.serial(back.srqn) != back.life) return;  // the queue was destroyed meanwhile
  ++counters_.given_back;
  auto& work = work_[back.srqn];
  work.returned.push_back(back.index);
  ++work.uncounted;
  proceed(back.srqn);
}

void SharedReceives::modified(std::uint32_t srqn, std::uint32_t attributes) {
  auto& work = work_[srqn];
  if ((attributes & SrqModification::kLimit) != 0) {
    work.check_limit = true;
    work.armed_at = reads_;
  }
  // Entries under way are from the old ring, which belongs to the driver again; the record is unchanged.
  const bool of_ring = work.read && work.read->what != Read::What::record;
  if ((attributes & SrqModification::kRing) != 0 && of_ring) work.read.reset();
  proceed(srqn);
}

void SharedReceives::fail(std::uint32_t srqn) {
  work_[srqn].fails = true;
  proceed(srqn);
}

void SharedReceives::destroyed(std::uint32_t srqn) {
  const auto found = work_.find(srqn);
  if (found == work_.end()) return;
  Answers answers;
  fail_takes(srqn, found->second, answers);
  work_.erase(found);
  for (auto& answer : answers) taken(std::move(answer));
}

void SharedReceives::reset() {
  work_.clear();
  at_hand_.clear();
}

void SharedReceives::proceed(std::uint32_t srqn) {
  auto& work = work_[srqn];
  if (work.looking) return;
  Duration wait;
  auto* srq = contexts_.srqs.touch(srqn, wait);
  if (srq != nullptr && wait == Duration{}) return serve(srqn, *srq);
  work.looking = true;
  srq != nullptr ? at_hand_.push(now() + wait, srqn) : await(srqn);
}

void SharedReceives::due() {
  std::uint32_t srqn;
  while (at_hand_.pop_due(srqn)) await(srqn);
}

void SharedReceives::await(std::uint32_t srqn) {
  contexts_.srqs.await(srqn, [this, srqn](SharedReceiveQueue* srq) {
    const auto found = work_.find(srqn);
    if (found == work_.end()) return;
    found->second.looking = false;
    // Without its context nothing about the queue is known.
    srq != nullptr ? serve(srqn, *srq) : destroyed(srqn);
  });
}

// `srq` is valid until the first output: so outputs come last.
void SharedReceives::serve(std::uint32_t srqn, SharedReceiveQueue& srq) {
  auto& work = work_[srqn];
  Answers answers;
  srq.taken = static_cast<std::uint16_t>(srq.taken - std::exchange(work.uncounted, 0));
  if (work.held.empty()) work.next = srq.head;
  const auto taken_before = srq.taken;
  if (srq.xrc) answer_looks(srqn, srq, work, answers);
  if (std::exchange(work.fails, false) && !srq.dead) die(srqn, srq, work);
  if (work.read && work.read->done) absorb(srqn, srq, work, answers);
  srq.dead ? fail_takes(srqn, work, answers) : hand_out(srqn, srq, work, answers);
  if (srq.dead) work.returned.clear();
  const bool gave = srq.taken != taken_before;
  if (gave) work.check_limit = true;
  if (srq.limit == 0 || work.posted() >= srq.limit) work.check_limit = false;
  std::optional<Read> read;
  if (!work.read && !srq.dead) read = next_read(srq, work, gave);
  if (read) {
    if (read->what == Read::What::record) work.check_limit = false;
    read->number = ++reads_;
    read->taken = srq.taken;
    work.read = *read;
  }
  if (work.idle()) work_.erase(srqn);
  if (read) begin(srqn, *read);
  for (auto& answer : answers) taken(std::move(answer));
}

void SharedReceives::begin(std::uint32_t srqn, Read& read) {
  ++(read.what == Read::What::record ? counters_.record_reads : counters_.entry_reads);
  dma_.read(read.pasid, read.address, read.bytes, {this, srqn, read.number});
}

void SharedReceives::dma_done(std::uint32_t srqn, std::uint64_t number, AccessResult result, Payload&& data) {
  const auto found = work_.find(srqn);
  if (found == work_.end() || !found->second.read || found->second.read->number != number) return;
  auto& done = *found->second.read;
  done.done = true;
  done.ok = result == AccessResult::ok;
  done.data = std::move(data);
  proceed(srqn);
}

// Refuses takes of other domains, and answers takes that only ask about the queue.
void SharedReceives::answer_looks(std::uint32_t srqn, const SharedReceiveQueue& srq, Work& work, Answers& answers) {
  std::erase_if(work.takes, [&](const Waiting& waiting) {
    const auto& take = waiting.take;
    const bool ours = take.xrcd == srq.xrcd;
    if (ours && !take.looks) return false;
    ++(ours ? counters_.looks : counters_.refused);
    answers.push_back({.tag = take.tag, .qpn = take.qpn, .srqn = srqn, .pd = srq.pd, .refused = !ours});
    return true;
  });
}

void SharedReceives::absorb(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, Answers& answers) {
  const auto read = std::move(*work.read);
  work.read.reset();
  if (srq.dead) return;
  bool sane = read.ok;
  if (sane && read.what == Read::What::record) sane = absorb_record(srqn, srq, work, read, answers);
  if (sane && read.what == Read::What::entries) sane = absorb_entries(srq, work, read);
  if (!sane) return die(srqn, srq, work);
  if (read.what != Read::What::returned) return;
  ++counters_.entries_read;
  work.returned.pop_front();
  auto entry = personality_.decode_shared_receive(read.data.bytes(), read.first).receive;
  hand_over(srqn, srq, work, std::move(entry), answers);
}

// False: more entries are posted than the queue can hold.
bool SharedReceives::absorb_record(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, const Read& read,
                                   Answers& answers) {
  const auto producer = personality_.receives_posted(read.data.bytes());
  const auto fetched = srq.taken + work.held.size() + work.returned.size();
  const auto ahead = static_cast<std::uint16_t>(producer - fetched);
  if (ahead >= entry_count(srq)) return false;
  work.ahead = ahead;
  // Compared with the count when the read began: entries taken since may also have been posted since.
  const auto posted = static_cast<std::uint16_t>(producer - read.taken);
  if (srq.limit != 0 && posted < srq.limit && read.number > work.armed_at) {
    srq.limit = 0;
    ++counters_.limits;
    events_.write(EventWriter::kAsynchronousEqn, EventType::srq_limit, srqn);
  }
  if (work.posted() == 0) answer_empty(srqn, work, read.number, answers);
  return true;
}

void SharedReceives::answer_empty(std::uint32_t srqn, Work& work, std::uint64_t read, Answers& answers) {
  for (; !work.takes.empty() && work.takes.front().asked < read; work.takes.pop_front()) {
    const auto& take = work.takes.front().take;
    ++counters_.empty;
    answers.push_back({.tag = take.tag, .qpn = take.qpn, .srqn = srqn});
  }
}

// False: an entry names an invalid successor.
bool SharedReceives::absorb_entries(const SharedReceiveQueue& srq, Work& work, const Read& read) {
  const std::size_t stride = std::size_t{1} << srq.log_stride;
  const auto bytes = read.data.bytes();
  for (std::size_t at = 0; at + stride <= bytes.size() && work.ahead != 0; at += stride) {
    if (work.next != read.first + at / stride) break;
    auto entry = personality_.decode_shared_receive(bytes.subspan(at, stride), work.next);
    if (entry.next >= entry_count(srq)) return false;
    work.held.push_back(std::move(entry.receive));
    work.next = entry.next;
    --work.ahead;
    ++counters_.entries_read;
  }
  return true;
}

// A returned entry is read again before any later entry is given out.
void SharedReceives::hand_out(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, Answers& answers) {
  while (!work.takes.empty() && work.returned.empty() && !work.held.empty()) {
    auto entry = std::move(work.held.front());
    work.held.pop_front();
    srq.head = work.held.empty() ? work.next : work.held.front().index;
    hand_over(srqn, srq, work, std::move(entry), answers);
  }
}

void SharedReceives::hand_over(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work, ReceiveWqe&& entry,
                               Answers& answers) {
  const auto take = work.takes.front().take;
  work.takes.pop_front();
  ++srq.taken;
  ++counters_.taken;
  answers.push_back({.tag = take.tag,
                     .qpn = take.qpn,
                     .srqn = srqn,
                     .life = contexts_.srqs.serial(srqn),
                     .pd = srq.pd,
                     .receive = std::move(entry),
                     .cqn = {srq.cqn}});
}

std::optional<SharedReceives::Read> SharedReceives::next_read(const SharedReceiveQueue& srq, const Work& work,
                                                              bool gave) const {
  const auto entries = [&](Read::What what, std::uint16_t first, std::uint32_t count) {
    const auto stride = 1u << srq.log_stride;
    return Read{.what = what,
                .pasid = srq.pasid,
                .address = srq.ring + std::uint64_t{first} * stride,
                .bytes = count * stride,
                .first = first};
  };
  const Read record{.what = Read::What::record,
                    .pasid = srq.pasid,
                    .address = srq.doorbell_record,
                    .bytes = personality_.layout.qp_record};
  const auto chain = [&] {
    const std::uint32_t to_end = entry_count(srq) - work.next;
    return entries(Read::What::entries, work.next, std::min({std::uint32_t{work.ahead}, kEntriesAtOnce, to_end}));
  };
  if (!work.takes.empty()) {
    if (!work.returned.empty()) return entries(Read::What::returned, work.returned.front(), 1);
    return work.ahead != 0 ? chain() : record;
  }
  if (work.check_limit) return record;
  if (work.held.size() < kLow && work.ahead != 0) return chain();
  if (gave && work.posted() < kLow) return record;
  return std::nullopt;
}

void SharedReceives::die(std::uint32_t srqn, SharedReceiveQueue& srq, Work& work) {
  srq.dead = true;
  work.held.clear();
  work.ahead = 0;
  ++counters_.errors;
  events_.write(EventWriter::kAsynchronousEqn, EventType::srq_error, srqn);
}

void SharedReceives::fail_takes(std::uint32_t srqn, Work& work, Answers& answers) {
  // For an XRC queue pair a destroyed queue is refused.
  for (const auto& waiting : work.takes) {
    const bool gone = !may_take(waiting.take);
    answers.push_back(
        {.tag = waiting.take.tag, .qpn = waiting.take.qpn, .srqn = srqn, .failed = !gone, .refused = gone});
  }
  work.takes.clear();
}

}  // namespace rnicsim::nic
