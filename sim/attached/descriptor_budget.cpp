// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/descriptor_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "sim/os/descriptor_limit.h"

namespace rnicsim::sim {
namespace {

std::size_t count_open() {
  std::error_code none;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", none);
  return none ? 0 : std::size_t(std::distance(begin(descriptors), end(descriptors)));
}

}  // namespace

DescriptorBudget::DescriptorBudget()
    : given_(raise_descriptor_limit()), limit_(std::size_t(given_.rlim_max)), known_open_(count_open()) {}
DescriptorBudget::DescriptorBudget(std::size_t limit)
    : given_{limit, limit}, limit_(limit), known_open_(count_open()) {}

bool DescriptorBudget::take(std::size_t count, std::size_t spare) {
  // Counting takes time for each open descriptor, so it is done rarely, but often enough that descriptors opened
  // without take() cannot use up the spare ones unnoticed.
  constexpr std::size_t kOpenPerTaken = 64;
  const auto fits = [&] { return limit_ >= spare && known_open_ + count <= limit_ - spare; };
  if (++taken_since_ * kOpenPerTaken > known_open_ || !fits()) {
    known_open_ = count_open();
    taken_since_ = 0;
  }
  if (!fits()) {
    refused_ = true;
    return false;
  }
  known_open_ += count;
  return true;
}

std::string DescriptorBudget::shortage() const {
  return fmt::format("the simulator is out of file descriptors: {} of {} are open; raise the hard limit (ulimit -Hn)",
                     known_open_, limit_);
}

}  // namespace rnicsim::sim
