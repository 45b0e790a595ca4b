// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/completion.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rnicsim::nic {
namespace {

using namespace rnicsim::literals;

std::uint32_t occupied(const CompletionQueue& queue) { return (queue.producer - queue.consumer) & kCounterMask; }
bool full(const CompletionQueue& queue) { return !queue.ignore_overrun && occupied(queue) >= 1u << queue.log_entries; }
bool half_full(const CompletionQueue& queue) {
  return !queue.ignore_overrun && 2 * occupied(queue) >= 1u << queue.log_entries;
}

}  // namespace

Completion::Completion(sc_core::sc_module_name name, const Personality& personality, ContextCache& contexts, Dma& dma,
                       EventWriter& events, PcieEndpoint& pcie)
    : sc_module(name), personality_(personality), contexts_(contexts), dma_(dma), events_(events), pcie_(pcie) {}

std::uint32_t Completion::consumer_in(const Payload& record) const {
  return personality_.cqes_consumed(record.bytes());
}

bool Completion::passes_over(const CqeWrite& request) {
  if (request.life == 0 || contexts_.srqs.serial(request.cqe.source_qpn) == request.life) return false;
  ++counters_.orphans;
  return true;
}

void Completion::write(CqeWrite&& request) {
  const auto cqn = request.cqn.value;
  if (passes_over(request)) return;
  if (!waiting_.empty() && waiting_.contains(cqn)) return hold(std::move(request));
  Duration wait;
  auto* queue = contexts_.cqs.touch(cqn, wait);
  const bool at_hand = queue != nullptr && wait == Duration{};
  if (at_hand && !queue->dead && !full(*queue)) return write_entry(*queue, request);
  hold(std::move(request));
  if (at_hand) return drain(cqn, queue);
  if (queue != nullptr) return at_hand_.push(now() + wait, cqn);
  await(cqn);
}

void Completion::hold(CqeWrite&& request) {
  auto& entries = waiting_[request.cqn.value].entries;
  entries.push_back(std::move(request));
}

void Completion::await(std::uint32_t cqn) {
  contexts_.cqs.await(cqn, [this, cqn](CompletionQueue* found) { drain(cqn, found); });
}

void Completion::drain_due() {
  std::uint32_t cqn;
  while (at_hand_.pop_due(cqn)) await(cqn);
}

void Completion::drain(std::uint32_t cqn, CompletionQueue* queue) {
  const auto found = waiting_.find(cqn);
  if (found == waiting_.end() || found->second.refreshing) return;
  if (queue == nullptr || queue->dead) return lose(cqn);
  auto& entries = found->second.entries;
  while (!entries.empty()) {
    if (!passes_over(entries.front())) {
      if (full(*queue)) return refresh(cqn, *queue);
      write_entry(*queue, entries.front());
    }
    entries.pop_front();
  }
  stop_waiting(cqn);
}

void Completion::stop_waiting(std::uint32_t cqn) {
  const auto node = waiting_.extract(cqn);
  if (node.empty()) return;
  for (const auto& event : node.mapped().events) events_.write(EventWriter::kAsynchronousEqn, event.type, event.number);
}

std::vector<Qpn> Completion::losers_of(std::uint32_t cqn) const {
  std::vector<Qpn> losers;
  const auto found = waiting_.find(cqn);
  if (found == waiting_.end()) return losers;
  for (const auto& entry : found->second.entries)
    if (entry.cqe.xrc) losers.push_back({entry.cqe.qpn});
  return losers;
}

// A CQ in error, or without a context, loses its waiting entries.
void Completion::lose(std::uint32_t cqn) {
  auto losers = losers_of(cqn);
  stop_waiting(cqn);
  if (!losers.empty()) overrun({{cqn}, std::move(losers)});
}

void Completion::announce_behind(Cqn cqn, const EventOut& event) {
  if (const auto found = waiting_.find(cqn.value); found != waiting_.end())
    return found->second.events.push_back(event);
  events_.write(EventWriter::kAsynchronousEqn, event.type, event.number);
}

void Completion::write_entry(CompletionQueue& queue, CqeWrite& request) {
  const auto& cqe = request.cqe;
  const auto bytes = personality_.layout.cqe;
  const auto at = queue.producer & ((1u << queue.log_entries) - 1);
  Payload entry(bytes);
  personality_.encode(cqe, {queue.producer, queue.log_entries, pcie_.clock()}, request.payload.bytes(),
                      entry.writable());
  if (!request.payload.empty()) ++counters_.inline_cqes;
  const auto cqn = request.cqn.value;
  ++counters_.cqes;
  if (cqe.syndrome != roce::Status::success) ++counters_.error_cqes;
  if (written) written({request.cqn, queue.producer, cqe, !request.payload.empty()});
  const auto reply = landed ? DmaReply{this, cqn, queue.producer} : DmaReply{};
  dma_.write(queue.pasid, queue.ring + std::uint64_t{at} * bytes, std::move(entry), reply,
             {.right_behind = request.behind_payload});
  queue.producer = (queue.producer + 1) & kCounterMask;
  if (request.solicited) queue.solicited = queue.producer;
  if (queue.armed == Arm::next || (queue.armed == Arm::solicited && request.solicited))
    withhold(queue, cqn, queue.withheld + 1);
  if (half_full(queue) && !looking_.contains(cqn)) look_ahead(cqn, queue);
}

void Completion::dma_done(std::uint32_t cqn, std::uint64_t index, AccessResult, Payload&&) {
  landed({{cqn}, static_cast<std::uint32_t>(index)});
}

// Reads the consumer before the queue seems full, so that no entry has to wait for the read.
void Completion::look_ahead(std::uint32_t cqn, const CompletionQueue& queue) {
  looking_.insert(cqn);
  dma_.read(queue.pasid, queue.doorbell_record, personality_.layout.cq_record,
            dma_.closure([this, cqn](AccessResult result, const Payload& record) {
              if (looking_.erase(cqn) == 0) return;
              Duration wait;
              auto* found = contexts_.cqs.touch(cqn, wait);
              if (found != nullptr && result == AccessResult::ok) take_consumer(*found, consumer_in(record));
            }));
}

void Completion::take_consumer(CompletionQueue& queue, std::uint32_t consumer) {
  // A consumer beyond the producer is invalid: it would free space that is in use.
  if (((queue.producer - consumer) & kCounterMask) <= occupied(queue)) queue.consumer = consumer;
}

// `cqes` CQEs wait for the event of an armed CQ. The event is raised now; with moderation, when there are enough CQEs
// or the first one has waited for the period.
void Completion::withhold(CompletionQueue& queue, std::uint32_t cqn, std::uint32_t cqes) {
  const bool first = std::exchange(queue.withheld, cqes) == 0;
  if (queue.event_due()) return raise(queue, cqn);
  if (!first) return;
  ++counters_.moderated_events;
  start_period(queue, cqn);
}

void Completion::start_period(const CompletionQueue& queue, std::uint32_t cqn) {
  moderation_timers_.arm(moderations_[cqn], cqn, now() + 1_us * queue.moderation_period);
}

void Completion::raise(CompletionQueue& queue, std::uint32_t cqn) {
  queue.armed = Arm::none;
  queue.withheld = 0;
  if (const auto timer = moderations_.find(cqn); timer != moderations_.end()) timer->second.cancel();
  events_.write(queue.eqn, EventType::completion, cqn);
}

void Completion::end_moderations() {
  const auto timer_of = [this](std::uint32_t cqn) {
    const auto found = moderations_.find(cqn);
    return found != moderations_.end() ? &found->second : nullptr;
  };
  moderation_timers_.look(timer_of, [&](std::uint32_t cqn) {
    contexts_.cqs.lookup(cqn, [=, this](CompletionQueue* queue) {
      // While the context was being filled, the event may have been raised and the next period begun.
      const auto* timer = timer_of(cqn);
      const bool anew = timer != nullptr && timer->armed();
      if (queue != nullptr && queue->withheld != 0 && !anew) raise(*queue, cqn);
    });
  });
}

void Completion::moderated(std::uint32_t cqn) {
  contexts_.cqs.lookup(cqn, [=, this](CompletionQueue* queue) {
    if (queue == nullptr || queue->withheld == 0) return;
    queue->event_due() ? raise(*queue, cqn) : start_period(*queue, cqn);
  });
}

// The queue seems full: the driver may have consumed entries since the last read.
void Completion::refresh(std::uint32_t cqn, const CompletionQueue& queue) {
  waiting_[cqn].refreshing = true;
  dma_.read(queue.pasid, queue.doorbell_record, personality_.layout.cq_record,
            dma_.closure([this, cqn](AccessResult result, const Payload& record) { refreshed(cqn, result, record); }));
}

void Completion::refreshed(std::uint32_t cqn, AccessResult result, const Payload& record) {
  const auto found = waiting_.find(cqn);
  if (found == waiting_.end()) return;
  found->second.refreshing = false;
  std::optional<std::uint32_t> consumer;
  if (result == AccessResult::ok) consumer = consumer_in(record);
  contexts_.cqs.lookup(cqn, [this, cqn, consumer](CompletionQueue* queue) {
    if (queue == nullptr) return;
    if (consumer) take_consumer(*queue, *consumer);
    full(*queue) ? die(cqn, *queue) : drain(cqn, queue);
  });
}

// The driver does not consume during a resize, so the entries found here are those that it copies.
void Completion::resize(const CqResize& request) {
  contexts_.cqs.lookup(request.cqn, [this, request](CompletionQueue* queue) {
    if (queue == nullptr || queue->dead) return resized({Resize::dead, 0});
    dma_.read(queue->pasid, queue->doorbell_record, personality_.layout.cq_record,
              dma_.closure([this, request](AccessResult result, const Payload& record) {
                std::optional<std::uint32_t> consumer;
                if (result == AccessResult::ok) consumer = consumer_in(record);
                resize_at(consumer, request);
              }));
  });
}

void Completion::resize_at(std::optional<std::uint32_t> consumer, const CqResize& request) {
  contexts_.cqs.lookup(request.cqn, [this, consumer, request](CompletionQueue* queue) {
    if (queue == nullptr || queue->dead) return resized({Resize::dead, 0});
    if (consumer) take_consumer(*queue, *consumer);
    if (occupied(*queue) > 1u << std::min(queue->log_entries, request.log_entries))
      return resized({Resize::too_small, 0});
    queue->ring = request.ring;
    queue->log_entries = request.log_entries;
    resized({Resize::done, queue->producer});
  });
}

void Completion::die(std::uint32_t cqn, CompletionQueue& queue) {
  queue.dead = true;
  auto losers = losers_of(cqn);
  stop_waiting(cqn);
  ++counters_.cq_overruns;
  events_.write(EventWriter::kAsynchronousEqn, EventType::cq_error, cqn);
  overrun({{cqn}, std::move(losers)});
}

void Completion::arm(std::uint32_t cqn, bool solicited_only, std::uint32_t consumer) {
  contexts_.cqs.lookup(cqn, [=, this](CompletionQueue* queue) {
    if (queue == nullptr || queue->dead) return;
    const auto ahead = [&](std::uint32_t position) { return (position - consumer) & kCounterMask; };
    const auto behind_limit = (kCounterMask + 1) / 2;
    const bool any = !solicited_only || queue->armed == Arm::next;
    queue->armed = any ? Arm::next : Arm::solicited;
    const auto position = any ? queue->producer : queue->solicited;
    if (ahead(position) == 0 || ahead(position) >= behind_limit) return;
    // Only the fact, not the number of solicited CQEs is known.
    withhold(*queue, cqn, std::max(queue->withheld, any ? ahead(position) : 1));
  });
}

void Completion::forget_qp(Qpn qpn) {
  const auto its = [qpn](const CqeWrite& entry) { return entry.cqe.qpn == qpn.value && !entry.cqe.xrc; };
  std::vector<CqeWrite> gone;
  for (auto& [cqn, waiting] : waiting_) {
    std::ranges::copy_if(waiting.entries, std::back_inserter(gone), its);
    std::erase_if(waiting.entries, its);
    std::erase_if(waiting.events, [qpn](const EventOut& event) { return event.number == qpn.value; });
  }
  for (auto& entry : gone) forgotten(std::move(entry));
}

}  // namespace rnicsim::nic
