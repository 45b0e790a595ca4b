// Queue pair contexts on the device: whoever needs a QP waits here until the engine has its context. The engine holds
// the decoded context; when another takes its place, the engine writes it back and forgets it.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "model/base/stream.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// Who looks: each has a first level of the cache to itself.
enum class QpcClient : std::uint8_t { transmit = 0, response = 1, responder = 2 };

class QpContexts {
 public:
  explicit QpContexts(ContextCache& contexts);

  Output<ContextFill> filled;              // to the engine
  Output<Qpn> evicted;                     // the engine writes it back

  // With it on the device, and in how long it is at hand; nullopt: await() it. A QP that does not exist is not waited
  // for.
  std::optional<Duration> touch(QpcClient client, Qpn qpn);
  [[gnu::noinline]] void await(QpcClient client, Qpn qpn, std::function<void()> then);
  // The same for what is not counted in nanoseconds.
  template <class Then>
  void with(QpcClient client, Qpn qpn, Then&& then) {
    if (touch(client, qpn)) return then();
    await(client, qpn, std::forward<Then>(then));
  }
  // What found it here waits before it goes on to the engine: until as many releases it stays.
  void hold(Qpn qpn) { ++held_[qpn.value].times; }
  [[gnu::noinline]] void release(Qpn qpn);
  // What a miss costs who looked, besides the fill: its look at the second level.
  Duration vain_look() const { return contexts_.qpc.params().l1_latency; }
  void created(Qpn qpn) { contexts_.qpc.adopt(static_cast<std::size_t>(QpcClient::transmit), qpn.value); }
  void destroyed(Qpn qpn);
  void reset() { held_.clear(); }

 private:
  struct Held {
    std::uint32_t times = 0;
    bool evicted = false;                  // to be told to the engine then
  };

  void fill(Qpn qpn);
  void evict(Qpn qpn);

  ContextCache& contexts_;
  std::unordered_map<std::uint32_t, Held> held_;
};

}  // namespace rnicsim::nic
