// SPDX-License-Identifier: Apache-2.0
// Chooses the entry of a full set that is displaced. A policy is a source file replacement_*.cpp that registers itself
// (model/base/policy.h); parameters of the caches name it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rnicsim::nic {

// A place for an entry; all zeros: empty.
struct CacheWay {
  std::uint64_t name = 0;  // identity of the entry, not 0
  std::uint64_t used = 0;  // last use, counted in uses of all sets

  bool empty() const { return name == 0; }
};

class Replacement {
 public:
  using Set = std::span<const CacheWay>;
  using Make = std::unique_ptr<Replacement> (*)();

  virtual ~Replacement() = default;
  virtual std::size_t way_for_another(Set set) = 0;  // returns an empty way, or the way whose entry is displaced
  virtual void clear() {}                            // all sets become empty
  virtual void seed(std::uint64_t) {}                // seed of random draws; call before the first draw
};

}  // namespace rnicsim::nic
