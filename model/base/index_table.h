// SPDX-License-Identifier: Apache-2.0
// Objects by a number below a limit of the device, without hashing. The device gives out low numbers first, so few
// places are empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace rnicsim {

template <class Object>
class IndexTable {
 public:
  Object* find(std::uint32_t index) const { return index < size_ ? places_[index].get() : nullptr; }
  Object& put(std::uint32_t index, std::unique_ptr<Object> object) {
    if (index >= size_) places_.resize(size_ = std::size_t{index} + 1);
    places_[index] = std::move(object);
    return *places_[index];
  }
  void erase(std::uint32_t index) {
    if (index < size_) places_[index].reset();
  }
  void clear() {
    places_.clear();
    size_ = 0;
  }
  bool empty() const {
    return std::ranges::all_of(places_, [](const auto& place) { return place == nullptr; });
  }

  // Visits the objects in the order of their numbers; `visit` neither adds nor removes objects.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t index = 0; index < size_; ++index)
      if (places_[index]) visit(index, *places_[index]);
  }

 private:
  std::vector<std::unique_ptr<Object>> places_;
  std::size_t size_ = 0;  // places_.size(), kept here because each packet calls find() several times
};

}  // namespace rnicsim
