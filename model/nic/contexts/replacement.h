// Which entry of a full set leaves for another. A policy is a source of its own, replacement_*.cpp, that registers
// itself (model/base/policy.h); caches name theirs in their parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rnicsim::nic {

class Replacement {
 public:
  using Set = std::span<std::uint64_t>;                   // keys by way; it may put them in another order
  using Make = std::unique_ptr<Replacement> (*)();
  static constexpr std::uint64_t kEmpty = ~0ull;

  virtual ~Replacement() = default;
  virtual std::size_t way_for_another(Set set) = 0;       // an empty way, or one whose entry leaves
  virtual void used(Set set, std::size_t way) = 0;        // found there, or new; not told of newest_first
  virtual void emptied(Set set, std::size_t way) = 0;
  virtual void clear() = 0;                               // all sets are empty

  // A set is in the order of use, what is empty at its end: the cache itself sees to what is used.
  const bool newest_first;

 protected:
  explicit Replacement(bool newest_first) : newest_first(newest_first) {}
};

}  // namespace rnicsim::nic
