// SPDX-License-Identifier: Apache-2.0
// The findings so far. Each pair of kind and subject is reported once, at its first wrong access.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/driver_check/access_log.h"
#include "model/driver_check/finding.h"

namespace rnicsim::driver_check {

// Subject of a mistake. One kind of mistake is reported once for each subject.
struct Subject {
  enum class About : std::uint8_t { reset, place, qp, cq, eq, srq, key, entry, command, memory, vector };
  About about;
  std::uint64_t number;
  auto operator<=>(const Subject&) const = default;
};

class Reports {
 public:
  static constexpr std::size_t kMost = 1000;  // limit of the list; further findings are only counted

  explicit Reports(const AccessLog& log) : log_(log) {}

  void add(FindingKind kind, const Subject& subject, std::string text);
  bool has(FindingKind kind, const Subject& subject) const { return told_.contains({kind, subject}); }
  const std::vector<Finding>& all() const { return findings_; }
  std::uint64_t left_out() const { return left_out_; }

  std::function<void(const Finding&)> found;

 private:
  const AccessLog& log_;
  std::set<std::pair<FindingKind, Subject>> told_;
  std::vector<Finding> findings_;
  std::uint64_t left_out_ = 0;
};

}  // namespace rnicsim::driver_check
