// Contexts on the device, over those in ICM. A resident context is the decoded object; a fill reads ICM by DMA and
// decodes, a write-back encodes and writes. The cache has room for everything, so only evict() makes a miss.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/index_table.h"
#include "model/base/stats.h"
#include "model/nic/contexts.h"
#include "model/nic/dma.h"
#include "model/nic/icm_map.h"

namespace rnicsim::nic {

struct ContextCounters {
  Counter fills = 0;
  Counter write_backs = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("fills", fills, "contexts", "contexts read from ICM");
    visit.counter("write_backs", write_backs, "contexts", "contexts written to ICM");
  }
};

// A context as bytes in ICM.
class IcmAccess {
 public:
  IcmAccess(IcmMap& map, Dma& dma, ContextCounters& counters) : map_(map), dma_(dma), counters_(counters) {}

  bool mapped(abi::IcmTable table, std::uint32_t index) const { return map_.address(table, index).has_value(); }

  template <class Context>
  void write(abi::IcmTable table, std::uint32_t index, const Context& context) {
    const auto address = map_.address(table, index);
    if (!address) return;
    ++counters_.write_backs;
    dma_.write(kKernelPasid, *address, Payload::copy_of(std::as_bytes(std::span(&context, 1))), nullptr);
  }
  template <class Context>
  void read(abi::IcmTable table, std::uint32_t index, std::function<void(std::optional<Context>)> done) {
    const auto address = map_.address(table, index);
    if (!address) return done(std::nullopt);
    ++counters_.fills;
    dma_.read(kKernelPasid, *address, sizeof(Context), [done = std::move(done)](AccessResult result, Payload bytes) {
      if (result != AccessResult::ok) return done(std::nullopt);
      Context context;
      std::memcpy(static_cast<void*>(&context), bytes.bytes().data(), sizeof(context));
      done(context);
    });
  }

 private:
  IcmMap& map_;
  Dma& dma_;
  ContextCounters& counters_;
};

template <class Context, class Object, abi::IcmTable table>
class ContextTable {
 public:
  using Found = std::function<void(Object*)>;

  explicit ContextTable(IcmAccess& icm) : icm_(icm) {}

  bool exists(std::uint32_t index) const { return slots_.find(index) != nullptr; }
  bool mapped(std::uint32_t index) const { return icm_.mapped(table, index); }

  // Resident, or nullptr.
  Object* find(std::uint32_t index) {
    auto* slot = slots_.find(index);
    return slot == nullptr || !slot->object ? nullptr : &*slot->object;
  }

  // Calls back at once when resident or not existing, else after the fill. The pointer is good during the call only.
  void lookup(std::uint32_t index, Found found) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) return found(nullptr);
    if (slot->object) return found(&*slot->object);
    slot->waiting.push_back(std::move(found));
    if (slot->waiting.size() == 1)
      icm_.template read<Context>(table, index, [this, index](std::optional<Context> context) { filled(index, context); });
  }

  void create(std::uint32_t index, const Object& object) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) slot = &slots_.put(index, std::make_unique<Slot>());
    slot->object = object;
    icm_.write(table, index, encode(object));
  }
  void write_back(std::uint32_t index) {
    if (auto* object = find(index)) icm_.write(table, index, encode(*object));
  }
  void evict(std::uint32_t index) {
    write_back(index);
    if (auto* slot = slots_.find(index)) slot->object.reset();
  }
  void destroy(std::uint32_t index) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) return;
    auto waiting = std::move(slot->waiting);
    slots_.erase(index);
    icm_.write(table, index, Context{});
    for (auto& found : waiting) found(nullptr);
  }
  std::vector<std::uint32_t> indices() const {
    std::vector<std::uint32_t> all;
    slots_.for_each([&](std::uint32_t index, const Slot&) { all.push_back(index); });
    return all;
  }
  void clear() { slots_.clear(); }

 private:
  struct Slot {
    std::optional<Object> object;
    std::vector<Found> waiting;
  };

  void filled(std::uint32_t index, const std::optional<Context>& context) {
    auto* slot = slots_.find(index);
    if (slot == nullptr) return;
    if (context) slot->object = decode(*context);
    auto waiting = std::exchange(slot->waiting, {});
    for (auto& found : waiting) found(find(index));
  }

  IcmAccess& icm_;
  IndexTable<Slot> slots_;
};

// A QP's context belongs to the engine while it runs; this is what the rest of the device knows of it.
struct QpEntry {
  std::uint16_t uar_page = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t receive_cqn = 0;
};

class ContextCache {
 public:
  explicit ContextCache(Dma& dma) : icm_(map_, dma, counters_) {}

  IcmMap& map() { return map_; }
  IcmAccess& icm() { return icm_; }
  const ContextCounters& counters() const { return counters_; }
  void clear();

 private:
  IcmMap map_;
  ContextCounters counters_;
  IcmAccess icm_;

 public:
  ContextTable<abi::Cqc, CompletionQueue, abi::IcmTable::cqc> cqs{icm_};
  ContextTable<abi::Eqc, EventQueueContext, abi::IcmTable::eqc> eqs{icm_};
  ContextTable<abi::Mpt, MemoryRegion, abi::IcmTable::mpt> regions{icm_};
  std::unordered_map<std::uint32_t, QpEntry> qps;
};

}  // namespace rnicsim::nic
