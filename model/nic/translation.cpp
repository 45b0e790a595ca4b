#include "model/nic/translation.h"

#include <algorithm>

namespace rnicsim::nic {
namespace {

// Adds `length` bytes at `address`, which follow what is there.
void extend(Translated& translated, std::uint64_t address, std::uint32_t length, std::uint64_t offset) {
  auto& ranges = translated.ranges;
  if (!ranges.empty() && ranges.back().address + ranges.back().length == address)
    ranges.back().length += length;
  else
    ranges.push_back({address, length, offset});
}

// The part of a range that lies in its first page.
struct PagePart {
  std::uint32_t index;    // in the MTT
  std::uint64_t in_page;
  std::uint32_t length;
};
PagePart first_page(const MemoryRegion& memory, std::uint64_t offset, std::uint32_t length) {
  const auto size = 1ull << memory.log_page;
  const auto in_page = offset & (size - 1);
  return {memory.first_page + static_cast<std::uint32_t>(offset >> memory.log_page), in_page,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(length, size - in_page))};
}

}  // namespace

// A translation on its way through the tables. It keeps what it has found: that may have left the cache since.
struct Translation::Walk {
  AccessRequest request;
  Region region;
  Done done;
  MemoryRegion memory{};
  std::uint64_t serial = 0;              // of the region
  std::uint64_t offset = 0;
  std::uint32_t left = 0;
  Duration wait{};
  Translated result{};
};

AccessResult check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region) {
  if (memory == nullptr || !memory->valid || memory->key != region.key) return AccessResult::bad_key;
  if (memory->pd != request.pd) return AccessResult::bad_pd;
  const auto offset = region.address - memory->start;
  const bool inside = region.address >= memory->start && offset <= memory->length &&
                      region.length <= memory->length - offset;
  if (!inside) return AccessResult::bad_range;
  return (memory->access & request.access) == request.access ? AccessResult::ok : AccessResult::denied;
}

Translation::Translation(sc_core::sc_module_name name, ContextCache& contexts) : sc_module(name), contexts_(contexts) {}

AccessResult Translation::judge(const MemoryRegion* memory, const AccessRequest& request, const Region& region) {
  ++counters_.lookups;
  const auto result = check_access(memory, request, region);
  if (result != AccessResult::ok) ++counters_.refused;
  return result;
}

// What the region's entry alone tells: refusals, and all of a region without pages.
AccessResult Translation::protect(const MemoryRegion* memory, const AccessRequest& request, const Region& region,
                                  Translated& translated) {
  translated.result = judge(memory, request, region);
  if (translated.result != AccessResult::ok) return translated.result;
  translated.pasid = memory->pasid;
  const auto offset = region.address - memory->start;
  if (memory->log_page == 0) extend(translated, memory->bus_address + offset, region.length, offset);
  return AccessResult::ok;
}

std::optional<Translated> Translation::translate_now(const AccessRequest& request, const Region& region) {
  if (region.length == 0) return Translated{};
  // When something is to be filled nothing is touched: translate() is to find all as it is.
  const auto* known = contexts_.regions.resident(region.key >> 8);
  if (known == nullptr || !pages_resident(*known, request, region)) return std::nullopt;
  std::optional<Translated> translated(std::in_place);
  const auto* memory = contexts_.regions.touch(region.key >> 8, translated->wait);
  if (protect(memory, request, region, *translated) != AccessResult::ok || memory->log_page == 0) return translated;
  auto offset = region.address - memory->start;
  for (auto left = region.length; left != 0;) {
    const auto part = first_page(*memory, offset, left);
    Duration wait;
    extend(*translated, *contexts_.pages.touch(part.index, wait) + part.in_page, part.length, offset);
    translated->wait += wait;
    offset += part.length;
    left -= part.length;
  }
  return translated;
}

bool Translation::pages_resident(const MemoryRegion& memory, const AccessRequest& request, const Region& region) const {
  if (memory.log_page == 0 || check_access(&memory, request, region) != AccessResult::ok) return true;
  auto offset = region.address - memory.start;
  for (auto left = region.length; left != 0;) {
    const auto part = first_page(memory, offset, left);
    if (!contexts_.pages.resident(part.index)) return false;
    offset += part.length;
    left -= part.length;
  }
  return true;
}

AccessResult Translation::invalidate(std::uint32_t key) {
  ++counters_.refused;
  Duration wait;
  const auto* memory = contexts_.regions.touch(key >> 8, wait);
  return memory != nullptr && memory->key == key ? AccessResult::denied : AccessResult::bad_key;
}

void Translation::translate(const AccessRequest& request, const Region& region, Done done) {
  if (region.length == 0) return done(Translated{});
  const auto state = std::make_shared<Walk>(request, region, std::move(done));
  const auto found = [this, state](const MemoryRegion* memory) {
    const auto result = protect(memory, state->request, state->region, state->result);
    if (result != AccessResult::ok || memory->log_page == 0) return finish(state);
    state->memory = *memory;
    state->serial = contexts_.regions.serial(state->region.key >> 8);
    state->offset = state->region.address - memory->start;
    state->left = state->region.length;
    walk(state);
  };
  const auto index = region.key >> 8;
  if (const auto* memory = contexts_.regions.touch(index, state->wait)) return found(memory);
  contexts_.regions.await(index, found);
}

void Translation::walk(const std::shared_ptr<Walk>& walk) {
  while (walk->left != 0) {
    const auto part = first_page(walk->memory, walk->offset, walk->left);
    const auto take = [walk, part](std::uint64_t page) {
      extend(walk->result, page + part.in_page, part.length, walk->offset);
      walk->offset += part.length;
      walk->left -= part.length;
    };
    Duration wait;
    if (const auto page = contexts_.pages.touch(part.index, wait)) {
      walk->wait += wait;
      take(*page);
      continue;
    }
    return contexts_.pages.await(part.index, [this, walk, take](const PageTable::Found& found) {
      if (gone(*walk) || (!found.page && !found.flushed)) {
        walk->result = {AccessResult::bad_key};
        return finish(walk);
      }
      if (found.page) take(*found.page);
      this->walk(walk);
    });
  }
  finish(walk);
}

// The region went in the meantime; another may have its index and its pages' entries.
bool Translation::gone(const Walk& walk) const {
  return contexts_.regions.serial(walk.region.key >> 8) != walk.serial;
}

void Translation::finish(const std::shared_ptr<Walk>& walk) {
  later(walk->wait, [walk] { walk->done(walk->result); });
}

void Translation::check(const AccessRequest& request, const Region& region, std::function<void(AccessResult)> done) {
  if (region.length == 0) return done(AccessResult::ok);
  Duration wait;
  const auto index = region.key >> 8;
  if (const auto* memory = contexts_.regions.touch(index, wait)) {
    const auto result = judge(memory, request, region);
    if (wait == Duration{}) return done(result);
    return later(wait, [done = std::move(done), result] { done(result); });
  }
  contexts_.regions.await(index, [this, request, region, done = std::move(done)](const MemoryRegion* memory) {
    done(judge(memory, request, region));
  });
}

void Translation::later(Duration wait, std::function<void()> action) {
  if (wait == Duration{}) return action();
  delayed_.push(now() + wait, std::move(action));
}

void Translation::run_due() {
  std::function<void()> action;
  while (delayed_.pop_due(action)) action();
}

}  // namespace rnicsim::nic
