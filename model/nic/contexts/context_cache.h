// SPDX-License-Identifier: Apache-2.0
// Contexts on the device, cached from ICM. A resident context is a decoded object. A fill reads ICM by DMA and decodes.
// An eviction encodes, writes back, and deletes the decoded object, so a missing fill cannot go unnoticed.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/base/index_table.h"
#include "model/nic/contexts/context_cache_params.h"
#include "model/nic/contexts/icm_map.h"
#include "model/nic/contexts/residency.h"
#include "model/nic/pcie/dma.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/personality/personality.h"

namespace rnicsim::nic {

// Reads and writes contexts in ICM.
class IcmAccess {
 public:
  IcmAccess(const Personality& personality, IcmMap& map, Dma& dma, PcieEndpoint& pcie, ContextCounters& counters)
      : personality_(personality), map_(map), dma_(dma), pcie_(pcie), counters_(counters) {}

  bool mapped(IcmTable table, std::uint32_t index) const { return map_.address(table, index).has_value(); }

  template <class Context>
  void write(IcmTable table, std::uint32_t index, const Context& context) {
    const auto address = map_.address(table, index);
    if (!address) return;
    ++counters_.write_backs;
    Payload bytes(bytes_of(table));
    personality_.encode(context, bytes.writable());
    // Loss of a queue pair's context affects this queue pair alone, when the device needs the context again.
    if (table == IcmTable::qpc) return dma_.write(kKernelPasid, *address, std::move(bytes));
    dma_.write(kKernelPasid, *address, std::move(bytes), dma_.closure([this](AccessResult written, const Payload&) {
      if (written != AccessResult::ok) pcie_.internal_error(HealthSyndrome::icm_access);
    }));
  }
  // Reads a context. A fill of `lines` lines reads that many lines; the context is the first part.
  template <class Context>
  void read(IcmTable table, std::uint32_t index, std::uint32_t lines,
            std::function<void(std::optional<Context>)> done) {
    const auto address = map_.address(table, index);
    if (!address) return done(std::nullopt);
    ++counters_.fills;
    constexpr std::uint32_t kLine = 64;
    const auto context_lines = (bytes_of(table) + kLine - 1) / kLine;
    if (lines > context_lines)
      dma_.read({kKernelPasid, *address, 0}, (lines - context_lines) * kLine, {}, {.discard = true});
    dma_.read(kKernelPasid, *address, bytes_of(table),
              dma_.closure([this, done = std::move(done)](AccessResult result, Payload bytes) {
                if (result != AccessResult::ok) return done(std::nullopt);
                Context context;
                personality_.decode(bytes.bytes(), context);
                done(context);
              }));
  }

 private:
  std::uint32_t bytes_of(IcmTable table) const { return personality_.layout.contexts[static_cast<std::size_t>(table)]; }

  const Personality& personality_;
  IcmMap& map_;
  Dma& dma_;
  PcieEndpoint& pcie_;
  ContextCounters& counters_;
};

template <class Object, IcmTable table>
class ContextTable {
 public:
  using Found = std::function<void(Object*)>;

  ContextTable(IcmAccess& icm, const CacheParams& params) : icm_(icm), residency_(params, 1) {
    residency_.fill = [this](std::uint64_t index) { fill(static_cast<std::uint32_t>(index)); };
    residency_.evicted = [this](std::uint64_t index) { evict(static_cast<std::uint32_t>(index)); };
  }

  bool exists(std::uint32_t index) const { return slots_.find(index) != nullptr; }
  bool mapped(std::uint32_t index) const { return icm_.mapped(table, index); }

  // Returns a resident object and the time until it is available; nullptr: it does not exist, or must be awaited.
  Object* touch(std::uint32_t index, Duration& wait) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) return nullptr;
    const auto resident = residency_.touch(0, index);
    if (!resident || !slot->object) return nullptr;
    wait = *resident;
    return &*slot->object;
  }
  // Returns an object of the first level, available now; nullptr: nothing has changed.
  Object* touch_first(std::uint32_t index) {
    auto* slot = slots_.find(index);
    return slot != nullptr && slot->object && residency_.touch_first(0, index) ? &*slot->object : nullptr;
  }
  // Returns the object that touch() would find; changes nothing.
  const Object* resident(std::uint32_t index) const {
    const auto* slot = slots_.find(index);
    return slot != nullptr && slot->object && residency_.resident(index) ? &*slot->object : nullptr;
  }

  // Call after touch(). Calls back at once if the object is resident or does not exist, else after the fill. The
  // pointer is valid during the call only.
  [[gnu::noinline]] void await(std::uint32_t index, Found found) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) return found(nullptr);
    if (slot->object) return found(&*slot->object);
    residency_.await(0, index, [this, index, found = std::move(found)] {
      auto* filled = slots_.find(index);
      found(filled != nullptr && filled->object ? &*filled->object : nullptr);
    });
  }

  // touch() and await() in one, for callers that do not count nanoseconds.
  [[gnu::noinline]] void lookup(std::uint32_t index, Found found) {
    Duration wait;
    if (auto* object = touch(index, wait)) return found(object);
    await(index, std::move(found));
  }

  void create(std::uint32_t index, const Object& object) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) slot = &slots_.put(index, std::make_unique<Slot>());
    slot->object = object;
    slot->serial = ++created_;
    slot->changed = false;
    icm_.write(table, index, object);
    residency_.adopt(0, index);
  }
  // Replaces a resident object. Accesses that began with the old object see another serial number and end.
  void renew(std::uint32_t index, const Object& object) {
    auto& slot = *slots_.find(index);
    slot.object = object;
    slot.serial = ++created_;
    slot.changed = true;
  }
  // Marks an object that must be written back (MPT: only changed entries are written back).
  void changed(std::uint32_t index) {
    if (auto* slot = slots_.find(index)) slot->changed = true;
  }
  // Writes back and deletes the object, as when another takes its place.
  void evict(std::uint32_t index) {
    auto* slot = slots_.find(index);
    if (slot == nullptr || !slot->object) return;
    residency_.forget(index);
    if (std::exchange(slot->changed, false) || table != IcmTable::mpt) icm_.write(table, index, *slot->object);
    slot->object.reset();
  }
  void destroy(std::uint32_t index) {
    if (slots_.find(index) == nullptr) return;
    slots_.erase(index);
    residency_.forget(index);
    icm_.write(table, index, Object{});
  }
  // Number of the object's creation or renewal, because indices are reused. 0: no object.
  std::uint64_t serial(std::uint32_t index) const {
    const auto* slot = slots_.find(index);
    return slot != nullptr ? slot->serial : 0;
  }
  std::vector<std::uint32_t> indices() const {
    std::vector<std::uint32_t> all;
    slots_.for_each([&](std::uint32_t index, const Slot&) { all.push_back(index); });
    return all;
  }
  void clear() {
    slots_.clear();
    residency_.clear();
  }
  void seed(std::uint64_t seed) { residency_.seed(seed); }
  const CacheCounters& counters() const { return residency_.counters(); }

 private:
  struct Slot {
    std::optional<Object> object;
    std::uint64_t serial = 0;
    bool changed = false;
  };

  void fill(std::uint32_t index) {
    const auto read_for = serial(index);
    icm_.template read<Object>(table, index, residency_.params().fill_lines,
                               [=, this](const std::optional<Object>& object) {
                                 auto* slot = slots_.find(index);
                                 // The bytes read belonged to an object that was destroyed meanwhile: read again.
                                 if (slot != nullptr && slot->serial != read_for && !slot->object) return fill(index);
                                 if (slot != nullptr && !slot->object && object) slot->object = object;
                                 residency_.filled(index);
                               });
  }

  IcmAccess& icm_;
  IndexTable<Slot> slots_;
  std::uint64_t created_ = 0;
  Residency residency_;
};

// Page addresses of memory regions (MTT). The kernel writes them, the device reads them.
class PageTable {
 public:
  PageTable(IcmAccess& icm, const CacheParams& params);

  // The bus address of a page; nullopt: no such page, or await() it.
  std::optional<std::uint64_t> touch(std::uint32_t index, Duration& wait);
  // The same for a resident page; nullopt: nothing has changed.
  std::optional<std::uint64_t> touch_resident(std::uint32_t index, Duration& wait);
  bool resident(std::uint32_t index) const { return pages_.contains(index) && residency_.resident(index); }
  struct Found {
    std::optional<std::uint64_t> page;
    bool flushed;  // the page was flushed meanwhile: if its region still exists, look up again
  };
  void await(std::uint32_t index, std::function<void(const Found&)> found);
  // Drops pages whose region is destroyed.
  void flush(std::uint32_t first, std::uint32_t count);
  void clear();
  void seed(std::uint64_t seed) { residency_.seed(seed); }
  const CacheCounters& counters() const { return residency_.counters(); }

 private:
  void fill(std::uint32_t index);

  IcmAccess& icm_;
  std::unordered_map<std::uint32_t, std::uint64_t> pages_;
  std::unordered_set<std::uint32_t> voided_;  // flushed during their fill
  std::uint64_t flushes_ = 0;
  Residency residency_;
};

// The device's copy of fields of a QP's context; the engine owns the context itself.
struct QpEntry {
  static constexpr std::uint32_t kNoCq = ~0u;
  std::uint16_t uar_page = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t receive_cqn = 0;
  std::optional<std::uint32_t> srqn{};
  roce::Transport transport = roce::Transport::rc;
};

// A region's pages in the MTT.
struct PageRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

class ContextCache {
 public:
  ContextCache(const Personality& personality, Dma& dma, PcieEndpoint& pcie, const ContextParams& params)
      : map_(personality.layout.contexts),
        icm_(personality, map_, dma, pcie, counters_),
        qpc(params.qpc, kQpcClients),
        cqs(icm_, params.cqc),
        eqs(icm_, kEqc),
        srqs(icm_, params.srqc),
        regions(icm_, params.mpt),
        pages(icm_, params.mtt) {}

  IcmMap& map() { return map_; }
  IcmAccess& icm() { return icm_; }
  ContextCounters counters() const;
  void clear();
  // Seed of random replacement.
  void seed(std::uint64_t seed) {
    qpc.seed(seed);
    cqs.seed(seed);
    eqs.seed(seed);
    srqs.seed(seed);
    regions.seed(seed);
    pages.seed(seed);
  }

 private:
  static constexpr std::size_t kQpcClients = 3;
  static constexpr CacheParams kEqc{.l0_entries = 256, .l1_entries = 256};  // room for all event queues

  IcmMap map_;
  ContextCounters counters_;
  IcmAccess icm_;

 public:
  Residency qpc;  // residency of the engine's contexts; see qp_contexts.h
  ContextTable<CompletionQueue, IcmTable::cqc> cqs;
  ContextTable<EventQueueContext, IcmTable::eqc> eqs;
  ContextTable<SharedReceiveQueue, IcmTable::srqc> srqs;
  ContextTable<MemoryRegion, IcmTable::mpt> regions;
  PageTable pages;
  IndexTable<QpEntry> qps;
  std::unordered_map<std::uint32_t, std::uint32_t> cq_eqns;   // by CQ, resident or not
  std::unordered_map<std::uint32_t, std::uint32_t> xrc_cqns;  // by XRC SRQ: the CQ for its completions
  std::unordered_map<std::uint32_t, PageRange> page_ranges;   // by region
};

}  // namespace rnicsim::nic
