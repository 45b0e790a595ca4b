// SPDX-License-Identifier: Apache-2.0
// The contexts of one kind that are on the device: a cache, and the misses under way. The owner reads and decodes a
// fill, and writes back and deletes an evicted context.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/fifo.h"
#include "model/nic/contexts/cache.h"

namespace rnicsim::nic {

class Residency {
 public:
  using Then = std::function<void()>;

  Residency(const CacheParams& params, std::size_t clients) : cache_(params, clients), held_up_(clients) {}

  std::function<void(std::uint64_t key)> fill;  // reads the context; then calls filled() or dropped()
  std::function<void(std::uint64_t key)> evicted;

  // Time until a resident context is available; nullopt: a miss, so await() it.
  std::optional<Duration> touch(std::size_t client, std::uint64_t key) {
    if (misses_ != 0 && held_up_[client].misses) return std::nullopt;
    const auto outcome = cache_.look_up(client, key);
    return outcome.resident ? std::optional(outcome.wait) : std::nullopt;
  }
  // The same for a resident context; nullopt: nothing has changed.
  std::optional<Duration> touch_resident(std::size_t client, std::uint64_t key) {
    if (misses_ != 0 && held_up_[client].misses) return std::nullopt;
    return cache_.look_up_resident(client, key);
  }
  // The same for a context in the first level; false: nothing has changed.
  bool touch_first(std::size_t client, std::uint64_t key) {
    return (misses_ == 0 || !held_up_[client].misses) && cache_.look_up_first(client, key);
  }
  // True if touch() would find the context.
  bool resident(std::uint64_t key) const { return cache_.resident(key); }
  [[gnu::noinline]] void await(std::size_t client, std::uint64_t key, Then then) {
    if (!params().hit_under_miss) return in_order(client, key, std::move(then));
    miss(client, key, std::move(then));
  }
  [[gnu::noinline]] void filled(std::uint64_t key) {
    const auto pending = take(key);
    if (pending.waiting.empty()) return;
    const auto victim = cache_.insert(pending.client, key);
    if (victim != key) {
      if (victim) evicted(*victim);
      for (const auto& then : pending.waiting) then();
      return;
    }
    // The cache has no room for the context: it leaves after these uses, and is read again only after its write-back.
    pending_[key].leaving = true;
    for (const auto& then : pending.waiting) then();
    evicted(key);
    const auto again = pending_.find(key);
    if (again == pending_.end()) return;
    again->second.leaving = false;
    again->second.waiting.empty() ? void(pending_.erase(again)) : begin(key);
  }
  // The fill is void: nothing is inserted.
  [[gnu::noinline]] void dropped(std::uint64_t key) {
    const auto pending = take(key);
    for (const auto& then : pending.waiting) then();
  }
  // Inserts a context that was created on the device.
  [[gnu::noinline]] void adopt(std::size_t client, std::uint64_t key) {
    if (const auto victim = cache_.insert(client, key)) evicted(*victim);
  }
  void forget(std::uint64_t key) { cache_.erase(key); }
  bool pending(std::uint64_t key) const {
    const auto found = pending_.find(key);
    return found != pending_.end() && !found->second.leaving;
  }
  // Visits every key that is being filled, in no defined order.
  template <class Visit>
  void for_pending(Visit&& visit) const {
    for (const auto& entry : pending_)
      if (!entry.second.leaving) visit(entry.first);
  }
  void clear() {
    pending_.clear();
    for (auto& held_up : held_up_) held_up = {};
    misses_ = 0;
    cache_.clear();
  }

  void seed(std::uint64_t seed) { cache_.seed(seed); }  // seed of random replacement

  const CacheParams& params() const { return cache_.params(); }
  const CacheCounters& counters() const { return cache_.counters(); }

 private:
  struct Pending {
    std::size_t client = 0;
    std::vector<Then> waiting;
    bool leaving = false;  // filled, used, and about to be evicted
  };

  // A client whose accesses wait for the fill of its last miss (hit_under_miss is false).
  struct HeldUp {
    struct Access {
      std::uint64_t key;
      Then then;
    };
    bool misses = false;
    Fifo<Access> accesses;
  };

  void miss(std::size_t client, std::uint64_t key, Then then) {
    auto& pending = pending_[key];
    pending.waiting.push_back(std::move(then));
    if (pending.waiting.size() > 1) return;
    pending.client = client;
    if (!pending.leaving) begin(key);
  }
  void in_order(std::size_t client, std::uint64_t key, Then then) {
    auto& held_up = held_up_[client];
    if (held_up.misses) return void(held_up.accesses.push_back({key, std::move(then)}));
    held_up.misses = true;
    ++misses_;
    miss(client, key, [this, client, then = std::move(then)] {
      held_up_[client].misses = false;
      --misses_;
      then();
      go_on(client);
    });
  }
  void go_on(std::size_t client) {
    auto& held_up = held_up_[client];
    while (!held_up.misses && !held_up.accesses.empty()) {
      auto next = std::move(held_up.accesses.front());
      held_up.accesses.pop_front();
      cache_.look_up(client, next.key).resident ? next.then() : in_order(client, next.key, std::move(next.then));
    }
  }
  void begin(std::uint64_t key) {
    cache_.begin_fill([this, key] { fill(key); });
  }
  Pending take(std::uint64_t key) {
    cache_.end_fill();
    const auto found = pending_.find(key);
    if (found == pending_.end()) return {};
    auto pending = std::move(found->second);
    pending_.erase(found);
    return pending;
  }

  Cache cache_;
  std::unordered_map<std::uint64_t, Pending> pending_;  // the order of iteration has no effect
  std::vector<HeldUp> held_up_;                         // by client; used if hit_under_miss is false
  std::size_t misses_ = 0;                              // number of clients with `misses`
};

}  // namespace rnicsim::nic
