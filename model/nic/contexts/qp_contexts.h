// SPDX-License-Identifier: Apache-2.0
// Queue pair contexts on the device: accesses to a QP wait here until the engine has its context. The engine holds the
// decoded context. When another context takes its place, the engine writes it back and deletes it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "model/base/stream.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// Client of a lookup: each has a first level of the cache of its own.
enum class QpcClient : std::uint8_t { transmit = 0, response = 1, responder = 2 };

class QpContexts {
 public:
  explicit QpContexts(ContextCache& contexts);

  Output<ContextFill> filled;  // context for the engine
  Output<Qpn> evicted;         // the engine must write the context back

  // Time until the context is available; nullopt: not resident, so await() it. For a QP that does not exist: 0.
  std::optional<Duration> touch(QpcClient client, Qpn qpn);
  [[gnu::noinline]] void await(QpcClient client, Qpn qpn, std::function<void()> then);
  // touch() and await() in one, for callers that do not count nanoseconds.
  template <class Then>
  void with(QpcClient client, Qpn qpn, Then&& then) {
    if (touch(client, qpn)) return then();
    await(client, qpn, std::forward<Then>(then));
  }
  // Keeps the context for a packet that waits before it goes to the engine: until as many calls of release().
  void hold(Qpn qpn) { ++held_[qpn.value].times; }
  [[gnu::noinline]] void release(Qpn qpn);
  // Time that a miss costs besides the fill: the lookup of the second level.
  Duration vain_look() const { return contexts_.qpc.params().l1_latency; }
  void created(Qpn qpn) { contexts_.qpc.adopt(static_cast<std::size_t>(QpcClient::transmit), qpn.value); }
  void destroyed(Qpn qpn);
  void reset() { held_.clear(); }

 private:
  struct Held {
    std::uint32_t times = 0;
    bool evicted = false;  // report the eviction at the last release()
  };

  void fill(Qpn qpn);
  void evict(Qpn qpn);

  ContextCache& contexts_;
  std::unordered_map<std::uint32_t, Held> held_;
};

}  // namespace rnicsim::nic
