#include "model/nic/atomic_unit.h"

#include <cstring>

namespace rnicsim::nic {
namespace {

std::uint64_t apply(const Atomic& request, std::uint64_t original) {
  if (!request.is_swap) return original + request.operation.swap_add;
  return original == request.operation.compare ? request.operation.swap_add : original;
}

}  // namespace

void AtomicUnit::execute(const Atomic& request) {
  const Region region{request.operation.rkey.value, request.operation.address, roce::kAtomicBytes};
  translation_.translate({request.pd, abi::access::kRemoteAtomic}, region, [this, request](const Translated& place) {
    if (place.result != AccessResult::ok) return done({request.tag, place.result, 0});
    lock(request, {place.pasid, place.address});
  });
}

void AtomicUnit::lock(const Atomic& request, Place place) {
  const auto [holder, free] = locked_.try_emplace(place);
  if (free) return read(request, place);
  ++counters_.conflicts;
  holder->second.push_back(request);
}

void AtomicUnit::read(const Atomic& request, Place place) {
  ++counters_.operations;
  const auto sampled = [this, request, place, resets = resets_](AccessResult result, Payload bytes) {
    if (resets != resets_) return;
    if (result != AccessResult::ok) return finish({request.tag, result, 0}, place);
    std::uint64_t original;
    std::memcpy(&original, bytes.bytes().data(), sizeof original);
    write(request, place, original);
  };
  dma_.read(place.first, place.second, roce::kAtomicBytes, sampled);
}

void AtomicUnit::write(const Atomic& request, Place place, std::uint64_t original) {
  const auto next = apply(request, original);
  if (next == original) return finish({request.tag, AccessResult::ok, original}, place);
  dma_.write(place.first, place.second, Payload::copy_of(std::as_bytes(std::span(&next, 1))),
             [this, tag = request.tag, original, place, resets = resets_](AccessResult result, Payload) {
               if (resets == resets_) finish({tag, result, original}, place);
             });
}

void AtomicUnit::finish(const AtomicDone& answer, Place place) {
  const auto holder = locked_.find(place);
  if (holder->second.empty()) {
    locked_.erase(holder);
  } else {
    const auto next = holder->second.front();
    holder->second.pop_front();
    read(next, place);
  }
  done(AtomicDone(answer));
}

void AtomicUnit::reset() {
  locked_.clear();
  ++resets_;
}

}  // namespace rnicsim::nic
