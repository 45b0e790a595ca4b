// SPDX-License-Identifier: Apache-2.0
// Changes of keys by queue pairs: memory windows are bound to regions, regions of kind fast_register get pages
// (fast_registration.h), and both are invalidated. Requests are executed in order, one at a time: a request may wait
// for the fill of an entry, and no other request may come in between.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/stream.h"
#include "model/nic/contexts/context_cache.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/contexts/window_unit_counters.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class WindowUnit {
 public:
  using Then = std::function<void()>;

  explicit WindowUnit(ContextCache& contexts) : contexts_(contexts) {}

  Output<KeyDone> done;                                       // result of a bind, a registration or an invalidation
  std::function<void(std::uint32_t pages, Then done)> flush;  // flushes the tables of a key

  void bind(const BindWindow& request);
  void fast_register(const FastRegister& request);
  void invalidate(const Invalidate& request);
  // Closes a window before its destruction, whatever its binding.
  void close(std::uint32_t index, Then then);
  // Frees the windows of type 2 that belong to a queue pair that is destroyed or reset.
  void close_all_of(Qpn qpn, Then then);
  void reset();

  const WindowCounters& counters() const { return counters_; }

 private:
  using Found = std::function<void(MemoryRegion*)>;

  void enqueue(Then work);
  void run();
  void end(Then then);  // ends the present request when its lookups are available
  void run_due();
  void answer(Tag tag, AccessResult result);
  void find(std::uint32_t index, Found found);
  void begin_bind(const BindWindow& request);
  void begin_register(const FastRegister& request);
  void begin_invalidate(const Invalidate& request);
  void free_region(const Invalidate& request, const MemoryRegion& region);
  void enter_region(const BindWindow& request, const MemoryRegion& window);
  void leave_region(const MemoryRegion& window, Then then);
  void set(const BindWindow& request, std::uint32_t on_demand);
  void unbind(std::uint32_t index, MemoryRegion& window, Then then);
  void close_next_of(Qpn qpn, Then then);

  ContextCache& contexts_;
  Fifo<Then> waiting_;
  bool busy_ = false;
  bool running_ = false;
  Duration wait_{};  // second-level cache time of the present request
  EventQueue<Then> ending_{[this] { run_due(); }};
  std::map<std::uint32_t, std::set<std::uint32_t>> of_qps_;  // bound windows of type 2, by QP
  WindowCounters counters_;
};

}  // namespace rnicsim::nic
