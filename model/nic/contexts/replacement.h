// Which entry of a full set leaves for another. A policy is a source of its own, replacement_*.cpp, that registers
// itself (model/base/policy.h); caches name theirs in their parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rnicsim::nic {

// A place for an entry. All zeros: it is empty.
struct CacheWay {
  std::uint64_t name = 0;                                 // of the entry: not 0
  std::uint64_t used = 0;                                 // when it was last, counted in uses of all sets

  bool empty() const { return name == 0; }
};

class Replacement {
 public:
  using Set = std::span<const CacheWay>;
  using Make = std::unique_ptr<Replacement> (*)();

  virtual ~Replacement() = default;
  virtual std::size_t way_for_another(Set set) = 0;       // an empty way, or one whose entry leaves
  virtual void clear() {}                                 // all sets are empty
  virtual void seed(std::uint64_t) {}                     // seed of its draws; call before the first draw
};

}  // namespace rnicsim::nic
