#include "model/nic/translation.h"

namespace rnicsim::nic {

Translated check_access(const MemoryRegion* memory, const AccessRequest& request, const Region& region) {
  if (memory == nullptr || !memory->valid || memory->key != region.key) return {AccessResult::bad_key};
  if (memory->pd != request.pd) return {AccessResult::bad_pd};
  const auto offset = region.address - memory->start;
  const bool inside = region.address >= memory->start && offset <= memory->length &&
                      region.length <= memory->length - offset;
  if (!inside) return {AccessResult::bad_range};
  if ((memory->access & request.access) != request.access) return {AccessResult::denied};
  return {AccessResult::ok, memory->pasid, memory->bus_address + offset};
}

std::optional<Translated> Translation::translate_now(const AccessRequest& request, const Region& region) {
  if (region.length == 0) return Translated{};
  const auto* memory = contexts_.regions.find(region.key >> 8);
  if (memory == nullptr) return std::nullopt;
  ++counters_.lookups;
  const auto translated = check_access(memory, request, region);
  if (translated.result != AccessResult::ok) ++counters_.refused;
  return translated;
}

AccessResult Translation::invalidate(std::uint32_t key) {
  ++counters_.refused;
  const auto* memory = contexts_.regions.find(key >> 8);
  return memory != nullptr && memory->key == key ? AccessResult::denied : AccessResult::bad_key;
}

void Translation::translate(const AccessRequest& request, const Region& region,
                            std::function<void(const Translated&)> done) {
  if (const auto translated = translate_now(request, region)) return done(*translated);
  ++counters_.lookups;
  const auto index = region.key >> 8;
  const auto finish = [this, request, region](const MemoryRegion* memory) {
    const auto translated = check_access(memory, request, region);
    if (translated.result != AccessResult::ok) ++counters_.refused;
    return translated;
  };
  contexts_.regions.lookup(index, [finish, done = std::move(done)](MemoryRegion* memory) { done(finish(memory)); });
}

}  // namespace rnicsim::nic
