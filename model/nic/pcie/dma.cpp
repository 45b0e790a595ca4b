// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/dma.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace rnicsim::nic {
namespace {

constexpr std::uint64_t kLine = 64;
constexpr std::uint64_t kCreditBytes = 16;              // a data credit, PCIe 2.6.1
constexpr double kLoadWindowPs = 2e6;                   // averaging window of the link's load
constexpr double kMostLoad = 0.95;                      // bound, because a queue is finite
constexpr Duration kCompletionTimeout{50'000'000'000};  // 50 ms, the end of PCIe's default range
constexpr std::uint32_t kMostOvertakings = 64;  // limit for passing one waiting write, which must not wait for ever

}  // namespace

Dma::Dma(sc_core::sc_module_name name, const DmaParams& params)
    : sc_module(name),
      params_(params),
      link_(params.link),
      largest_read_(largest_read(params)),
      bytes_a_ps_((link_.rate().bits_per_second << (kScale - 3)) / 1'000'000'000'000) {}

inline void Dma::Load::add(Duration at, Duration service) {
  const auto gap = static_cast<double>((at - last_).ps);
  load_ = (load_ * kLoadWindowPs + static_cast<double>(service.ps)) / (kLoadWindowPs + gap);
  last_ = at;
}

inline double Dma::Load::at(Duration at) const {
  const auto gap = static_cast<double>((at - last_).ps);
  return load_ * kLoadWindowPs / (kLoadWindowPs + gap);
}

void Dma::Load::reset() {
  last_ = now();
  load_ = 0;
}

DmaReply Dma::Closures::keep(Done&& done) {
  auto& kept = kept_.take();
  kept = std::move(done);
  return {this, 0, reinterpret_cast<std::uint64_t>(&kept)};
}

void Dma::Closures::dma_done(std::uint32_t, std::uint64_t tag, AccessResult result, Payload&& data) {
  auto& kept = *reinterpret_cast<Done*>(tag);
  auto done = std::move(kept);
  kept_.give_back(kept);
  done(result, std::move(data));
}

inline Dma::Access& Dma::take_access(const Place& place, const DmaReply& reply) {
  auto& access = accesses_.take();
  access.place = place;
  access.reply = reply;
  access.result = AccessResult::ok;
  return access;
}

void Dma::read(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling) {
  ++counters_.reads;
  counters_.read_bytes += bytes;
  ask(place, bytes, reply, sampling);
}

inline void Dma::ask(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling) {
  const auto requests = link_.read_request(place.offset, bytes);
  if (bytes > largest_read_ || requests.tlps > params_.read_tags) return read_in_parts(place, bytes, reply, sampling);
  auto& access = take_access(place, reply);
  access.data.shorten(bytes);
  access.sampled = false;
  access.discard = sampling.discard;
  access.ordered = sampling.ordered;
  access.relaxed = sampling.relaxed && !sampling.ordered;
  access.payload = sampling.payload;
  access.for_peer = sampling.for_peer;
  access.tlps = requests;
  access.asked = now();
  if (waiting_reads_.empty() && (waiting_writes_.empty() || passes_writes(access)) && fits(access))
    return issue_read(access);
  ++counters_.read_stalls;
  access.writes_before = writes_queued_;
  waiting_reads_.push_back(&access);
}

// Memory of the kernel, such as contexts, must never be read before an earlier write has landed.
bool Dma::passes_writes(const Access& read) const {
  return read.relaxed || (params_.relaxed_ordering && read.place.pasid != kKernelPasid && !read.ordered);
}

// Largest read that always fits, at any alignment.
std::uint32_t Dma::largest_read(const DmaParams& params) {
  const auto mrrs = params.link.max_read_request.bytes;
  const auto by_tags = std::max<std::uint64_t>(params.read_tags - 1, 1) * mrrs;
  return static_cast<std::uint32_t>(std::min(params.read_bytes.bytes, params.read_tags == 1 ? 64 : by_tags));
}

void Dma::read_in_parts(const Place& place, std::uint32_t bytes, const DmaReply& reply, Sampling sampling) {
  struct Whole {
    Payload data;
    DmaReply reply;
    AccessResult result = AccessResult::ok;
    std::uint32_t awaited = 0;
  };
  const auto whole = std::make_shared<Whole>(
      Whole{sampling.discard ? nothing(bytes) : Payload(bytes), reply, AccessResult::ok, bytes});
  const auto part = largest_read_;
  for (std::uint32_t offset = 0; offset < bytes;) {
    const auto room = part - static_cast<std::uint32_t>((place.offset + offset) % std::min<std::uint64_t>(part, 64));
    const auto size = std::min(room, bytes - offset);
    ask({place.pasid, place.address + offset, place.offset + offset}, size,
        closure([whole, offset, size, discard = sampling.discard](AccessResult result, const Payload& data) {
          if (result != AccessResult::ok) whole->result = result;
          if (!discard && !data.empty())
            std::memcpy(whole->data.writable().data() + offset, data.bytes().data(), data.size());
          whole->awaited -= size;
          const auto& [client, kind, tag] = whole->reply;
          if (whole->awaited == 0 && client != nullptr)
            client->dma_done(kind, tag, whole->result, std::move(whole->data));
        }),
        sampling);
    offset += size;
  }
}

// The payload of a discarded read: zeros, one shared buffer.
Payload Dma::nothing(std::uint32_t bytes) {
  if (zeros_.size() < bytes) {
    zeros_ = Payload(bytes);
    std::ranges::fill(zeros_.writable(), std::byte{0});
  }
  return zeros_.slice(0, bytes);
}

bool Dma::fits(const Access& read) const {
  return tags_in_use_ + read.tlps.tlps <= params_.read_tags &&
         bytes_in_flight_ + read.data.size() <= params_.read_bytes.bytes;
}

void Dma::issue_read(Access& access) {
  const auto at = now();
  const auto asks = count_to_host(at, access.tlps);
  const auto brings = count_to_device(link_.completion(access.place.offset, access.data.size()));
  tags_in_use_ += access.tlps.tlps;
  bytes_in_flight_ += access.data.size();
  const auto asked = to_host_.occupy(at, asks, counters_.to_host_wait_ps);
  const auto after = access.relaxed ? Duration{} : last_landing_;
  const auto at_host = std::max(asked + params_.read_latency, after);
  const auto waits = line_wait(access, at_host);
  const auto at_link = at_host + waits + queueing(at);
  const bool late = waits != Duration{};
  if (late) to_device_.steal(at, brings);
  const auto done = (late ? at_link + brings : to_device_.occupy(at_link, brings, counters_.to_device_wait_ps)) +
                    params_.read_internal;
  access.after = after;
  access.behind = access.relaxed ? 0 : writes_pushed_;
  if (issued) {
    const auto& [pasid, address, offset] = access.place;
    issued({false, pasid, address, access.data.size(), done - at, offset, &access});
  }
  late ? late_reads_.push(done, &access) : reads_.push(done, &access);
}

// Lines are aligned to the start of the region, as TLPs are. For a read of several lines only the first is checked: the
// others follow at the same distance.
inline Duration Dma::line_wait(const Access& read, Duration at) {
  if (!read.payload || params_.line_read == Duration{}) return {};
  const auto& [pasid, address, offset] = read.place;
  return line_reads_.wait(pasid, address - offset % kLine, at, params_.line_read);
}

Duration Dma::LineReads::wait(Pasid pasid, std::uint64_t line, Duration at, Duration each) {
  for (auto& known : lines_) {
    if (known.line != line || known.pasid != pasid) continue;
    const auto begins = std::max(at, known.free);
    known.free = begins + each;
    return begins - at;
  }
  std::erase_if(lines_, [at](const Line& known) { return known.free <= at; });
  lines_.push_back({pasid, line, at + each});
  return {};
}

// Reads queue in the host with writes to memory: a queue with several servers, so the wait is noticeable under load
// only. A wait below a nanosecond is 0, so that sums of an idle system are exact.
inline Duration Dma::queueing(Duration at) const {
  const auto load = std::min(load_.at(at), kMostLoad);
  const auto ns = static_cast<double>(params_.read_queueing.ps) / 1000 * load * load * load / (1 - load);
  return Duration{static_cast<std::int64_t>(ns) * 1000};
}

inline Duration Dma::count_to_host(Duration at, const TlpCount& tlps) {
  const auto busy = link_.time_for(tlps);
  counters_.to_host_tlps += tlps.tlps;
  counters_.to_host_bytes += tlps.bytes;
  counters_.to_host_busy_ps += static_cast<Counter>(busy.ps);
  load_.add(at, busy);
  return busy;
}

inline Duration Dma::count_to_device(const TlpCount& tlps) {
  const auto busy = link_.time_for(tlps);
  counters_.to_device_tlps += tlps.tlps;
  counters_.to_device_bytes += tlps.bytes;
  counters_.to_device_busy_ps += static_cast<Counter>(busy.ps);
  return busy;
}

void Dma::write(const Place& place, Payload&& data, const DmaReply& reply, Placement placement) {
  ++counters_.writes;
  counters_.write_bytes += data.size();
  auto& access = take_access(place, reply);
  access.data = std::move(data);
  access.discard = placement.discard;
  access.placement = placement;
  access.fence = false;
  access.tlps = link_.write(place.offset, access.data.size());
  access.credits = credits_of(access.tlps.tlps, access.data.size());
  if ((waiting_writes_.empty() || may_overtake(access)) && take_credits(access)) {
    if (!waiting_writes_.empty()) {
      ++overtaken_;
      ++counters_.overtakings;
    }
    return issue_write(access);
  }
  ++counters_.write_stalls;
  ++writes_queued_;
  waiting_bytes_ += access.data.size();
  waiting_writes_.push_back(&access);
  credits_back_.arm(next_credits());
}

inline bool Dma::may_overtake(const Access& write) const {
  return write.placement.relaxed && overtaken_ < kMostOvertakings;
}

// The writes of a list may land one by one, at any time (land_ahead_of).
Duration Dma::quiet_until(Duration next) const {
  const Duration from_next = next < Agenda::kNever - params_.write_latency ? next + params_.write_latency : next;
  const bool together = !bursts_.empty() && bursts_.front()->together != nullptr;
  return std::min({from_next, together ? next : bursts_.next(), lone_writes_.next(), relaxed_writes_.next()});
}

// A write of no bytes, after all others.
void Dma::after_writes(const DmaReply& reply) {
  auto& access = take_access({}, reply);
  access.data = {};
  access.discard = true;
  access.placement = {};
  access.fence = true;
  access.tlps = {};
  access.credits = {};
  if (waiting_writes_.empty()) return issue_write(access);
  ++writes_queued_;
  waiting_writes_.push_back(&access);
}

// A write larger than all credits is issued when it has all of them.
inline Dma::Credits Dma::credits_of(std::uint64_t tlps, std::uint64_t bytes) const {
  const auto data = std::min((bytes + kCreditBytes - 1) / kCreditBytes, params_.posted_data.bytes / kCreditBytes);
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(tlps, params_.posted_headers)),
          static_cast<std::uint32_t>(data)};
}

inline bool Dma::take_credits(const Access& write) {
  return_credits(posted_);
  if (!posted_relaxed_.empty()) return_credits(posted_relaxed_);
  const Credits sum{posted_sum_.headers + write.credits.headers, posted_sum_.data + write.credits.data};
  if (sum.headers > params_.posted_headers || sum.data > params_.posted_data.bytes / kCreditBytes) return false;
  posted_sum_ = sum;
  return true;
}

inline void Dma::return_credits(Fifo<Posted>& posted) {
  for (const auto at = now(); !posted.empty() && posted.front().until <= at; posted.pop_front()) {
    posted_sum_.headers -= posted.front().credits.headers;
    posted_sum_.data -= posted.front().credits.data;
  }
}

Duration Dma::next_credits() const {
  if (posted_relaxed_.empty()) return posted_.front().until;
  const auto relaxed = posted_relaxed_.front().until;
  return posted_.empty() ? relaxed : std::min(posted_.front().until, relaxed);
}

void Dma::issue_write(Access& access) {
  const auto at = now();
  if (access.fence) return push_landing(access, std::max(at, last_landing_));
  const bool right_behind = access.placement.right_behind;
  const auto service = count_to_host(at, access.tlps) + params_.write_issue;
  Duration lands;
  if (right_behind) {
    to_host_.steal(at, service);
    lands = lone_free_ = in_order(access, std::max(at, lone_free_) + service);
  } else {
    lands = to_host_.occupy(at, service, counters_.to_host_wait_ps) + params_.write_latency;
    if (!access.placement.relaxed) lands = in_order(access, lands);
  }
  last_landing_ = std::max(last_landing_, lands);
  if (!access.placement.relaxed || posted_.empty() || lands >= posted_.back().until)
    posted_.push_back({posted_.empty() ? lands : std::max(lands, posted_.back().until), access.credits});
  else
    posted_relaxed_.push_back({lands, access.credits});
  if (issued) {
    const auto& [pasid, address, offset] = access.place;
    issued({true, pasid, address, access.data.size(), lands - at, offset, nullptr});
  }
  if (right_behind) return lone_writes_.push(lands, &access);
  if (access.placement.relaxed && lands < last_burst_) return relaxed_writes_.push(lands, &access);
  push_landing(access, lands);
}

// A host that keeps writes in order may have to finish a write before it starts the next one at another address.
inline Duration Dma::in_order(const Access& write, Duration lands) {
  if (params_.ordered_write == Duration{}) return lands;
  const auto& [pasid, address, offset] = write.place;
  const bool continues = ordered_end_.pasid == pasid && ordered_end_.address == address;
  lands = std::max(lands, continues ? last_ordered_ : last_ordered_ + params_.ordered_write);
  ordered_end_ = {pasid, address + write.data.size(), 0};
  return last_ordered_ = lands;
}

inline void Dma::push_landing(Access& access, Duration lands) {
  last_burst_ = lands;
  access.number = writes_pushed_++;
  access.together = nullptr;
  if (joins_burst(access)) {
    last_write_->together = &access;
    burst_bytes_ += access.data.size();
    bursts_.delay_back(lands);
  } else {
    burst_bytes_ = access.data.size();
    bursts_.push(lands, &access);
  }
  last_write_ = &access;
}

// The CPU sends stores line by line.
void Dma::carry_mmio(std::uint64_t bytes) {
  const auto tlps = (bytes + kLine - 1) / kLine;
  to_device_.steal(now(), count_to_device({tlps, bytes + tlps * params_.link.request_header.bytes}));
}

// Posted requests pass reads that wait for tags; reads pass no earlier write.
void Dma::issue_waiting() {
  while (!waiting_writes_.empty() && take_credits(*waiting_writes_.front())) {
    auto& write = *waiting_writes_.front();
    waiting_writes_.pop_front();
    waiting_bytes_ -= write.data.size();
    ++writes_unqueued_;
    overtaken_ = 0;
    issue_write(write);
  }
  if (!waiting_writes_.empty()) credits_back_.arm(next_credits());
  while (!waiting_reads_.empty()) {
    auto& head = *waiting_reads_.front();
    const bool behind_a_write = !passes_writes(head) && writes_unqueued_ < head.writes_before;
    if (behind_a_write || !fits(head)) return;
    waiting_reads_.pop_front();
    issue_read(head);
  }
}

void Dma::reset() {
  const auto give_back_all = [this](auto& queue) {
    for (std::size_t i = 0; i < queue.size(); ++i) give_back(*queue[i]);
  };
  give_back_all(reads_);
  for (std::size_t i = 0; i < bursts_.size(); ++i)
    for (auto* write = bursts_[i]; write != nullptr; write = write->together) give_back(*write);
  give_back_all(lone_writes_);
  give_back_all(unanswered_);
  give_back_all(relaxed_writes_);
  give_back_all(waiting_reads_);
  give_back_all(waiting_writes_);
  for (Access* late = nullptr; late_reads_.pop(late);) give_back(*late);
  late_reads_.clear();
  unanswered_.clear();
  line_reads_.reset();
  reads_.clear();
  bursts_.clear();
  lone_writes_.clear();
  relaxed_writes_.clear();
  waiting_reads_.clear();
  waiting_writes_.clear();
  waiting_bytes_ = 0;
  posted_.clear();
  posted_relaxed_.clear();
  overtaken_ = 0;
  posted_sum_ = {};
  closures_.clear();
  credits_back_.disarm();
  writes_queued_ = writes_unqueued_ = writes_pushed_ = writes_landed_ = tags_in_use_ = bytes_in_flight_ = 0;
  to_host_.reset();
  to_device_.reset();
  load_.reset();
  lone_free_ = last_landing_ = last_burst_ = last_ordered_ = now();
  ordered_end_ = {};
}

inline bool Dma::adjoins(const Access& a, const Access& b, std::uint64_t burst_bytes) const {
  return a.place.address + a.data.size() == b.place.address && a.place.pasid == b.place.pasid &&
         a.discard == b.discard && burst_bytes + b.data.size() <= params_.burst.bytes;
}

void Dma::complete_reads() {
  Access* access;
  while (reads_.pop_due(access)) {
    make_room(*access);
    if (!access->sampled) sample_burst(*access);
    complete(*access);
  }
}

void Dma::complete_late_reads() {
  Access* access;
  while (late_reads_.pop_due(access)) {
    make_room(*access);
    land_ahead_of(*access);
    sample(*access);
    complete(*access);
  }
}

// If the host sends no completion, a read for a peer fails after the completion timeout. A read for the local process,
// which has ended, fails at once: its queue pair need not wait.
inline void Dma::complete(Access& read) {
  if (completed) {
    const bool ok = read.result == AccessResult::ok;
    completed({&read, read.result, ok || host_->answers(read.place.pasid)});
  }
  if (read.result == AccessResult::ok) return finish(read);
  ++counters_.errors;
  if (!read.for_peer || host_->answers(read.place.pasid)) return finish(read);
  ++counters_.read_timeouts;
  unanswered_.push(now() + kCompletionTimeout, &read);
}

void Dma::give_up_reads() {
  Access* access;
  while (unanswered_.pop_due(access)) finish(*access);
}

// The data of the read has arrived.
inline void Dma::make_room(const Access& read) {
  tags_in_use_ -= read.tlps.tlps;
  bytes_in_flight_ -= read.data.size();
  counters_.read_time_ps += static_cast<Counter>((now() - read.asked).ps);
  if (!waiting_reads_.empty()) issue_waiting();
}

// The client's callback may reset the device.
inline void Dma::finish(Access& access) {
  const auto [client, kind, tag] = access.reply;
  const auto result = access.result;
  auto data = std::move(access.data);
  accesses_.give_back(access);
  if (client != nullptr) client->dma_done(kind, tag, result, std::move(data));
}

void Dma::give_back(Access& access) {
  access.data = {};
  accesses_.give_back(access);
}

// Samples the read that is due, and later reads that continue its range.
inline void Dma::sample_burst(Access& first) {
  land_ahead_of(first);
  if (first.discard) return sample(first);
  std::size_t others = 0;
  std::uint64_t bytes = first.data.size();
  for (const auto* last = &first; others < reads_.size(); ++others) {
    const auto& next = *reads_[others];
    if (!adjoins(*last, next, bytes) || next.after > now() || next.behind > writes_landed_) break;
    last = &next;
    bytes += last->data.size();
  }
  others == 0 ? sample(first) : sample_together(first, others, bytes);
}

void Dma::sample_together(Access& first, std::size_t others, std::uint64_t bytes) {
  Payload whole(bytes);
  // If the burst fails, each access is sampled alone at its time, so that only the bad part fails.
  if (!host_->read(first.place.pasid, first.place.address, whole.writable())) return sample(first);
  std::uint32_t offset = 0;
  const auto cut = [&](Access& access) {
    access.data = whole.slice(offset, access.data.size());
    access.sampled = true;
    offset += access.data.size();
  };
  cut(first);
  for (std::size_t i = 0; i < others; ++i) cut(*reads_[i]);
}

void Dma::sample(Access& access) {
  const auto bytes = access.data.size();
  access.sampled = true;
  if (access.discard) {
    access.data = nothing(bytes);
    return;
  }
  access.data = Payload(bytes);
  const bool ok = bytes == 0 || host_->read(access.place.pasid, access.place.address, access.data.writable());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
}

// True if the last write has not landed and may wait for this one: one event serves both.
inline bool Dma::joins_burst(const Access& access) {
  if (bursts_.empty()) return false;
  return last_write_->placement.more && adjoins(*last_write_, access, burst_bytes_);
}

void Dma::land_bursts() {
  Access* first;
  while (bursts_.pop_due(first)) {
    const bool together = first->together != nullptr && writes_landed_ <= first->number && land_together(*first);
    for (auto* write = first; write != nullptr;) {
      auto& access = *write;
      write = access.together;
      if (access.number >= writes_landed_) {
        if (!together) land(access);
        writes_landed_ = access.number + 1;
      }
      access.data = {};
      finish(access);
    }
  }
}

// Lands writes that have arrived but wait for later ones: a read after them must see their data.
inline void Dma::land_ahead_of(const Access& read) {
  for (std::size_t i = 0; writes_landed_ < read.behind; ++i)
    for (auto* write = bursts_[i]; write != nullptr && write->number < read.behind; write = write->together) {
      if (write->number < writes_landed_) continue;
      land(*write);
      writes_landed_ = write->number + 1;
    }
}

bool Dma::land_together(const Access& first) {
  if (first.discard) return true;
  // Slices of one buffer (gathered by a sender in this process) need no copy.
  std::uint64_t bytes = 0;
  bool one_buffer = true;
  for (const auto* write = &first; write != nullptr; write = write->together) {
    one_buffer &= first.data.bytes().data() + bytes == write->data.bytes().data();
    bytes += write->data.size();
  }
  std::span<const std::byte> data(first.data.bytes().data(), bytes);
  if (!one_buffer) {
    scratch_.clear();
    for (const auto* write = &first; write != nullptr; write = write->together)
      scratch_.insert(scratch_.end(), write->data.bytes().begin(), write->data.bytes().end());
    data = scratch_;
  }
  return host_->write(first.place.pasid, first.place.address, data);
}

void Dma::land_each(DelayLine<Access*>& writes) {
  Access* access;
  while (writes.pop_due(access)) {
    land(*access);
    access->data = {};
    finish(*access);
  }
}

void Dma::land(Access& access) {
  if (access.discard) return;
  const bool ok = access.data.empty() || host_->write(access.place.pasid, access.place.address, access.data.bytes());
  access.result = ok ? AccessResult::ok : AccessResult::bus_error;
  if (!ok) ++counters_.errors;
}

}  // namespace rnicsim::nic
