// SPDX-License-Identifier: Apache-2.0
// A flat list of counters, filled by a block's describe().
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/base/stats.h"

namespace rnicsim::sim {

struct CounterEntry {
  enum class Kind { count, busy, waited, most };  // kinds of counters of CounterVisitor
  std::string path;
  Counter value;
  std::string unit;
  std::string meaning;
  Kind kind = Kind::count;
  std::uint32_t units = 1;         // number of units; only for `busy`
  std::vector<Counter> each = {};  // only for `busy`: the counter of each unit, or empty
};

class CounterList : public CounterVisitor {
 public:
  template <class Counters>
  explicit CounterList(const Counters& counters) {
    counters.describe(*this);
  }

  explicit CounterList(std::vector<CounterEntry> entries) : entries_(std::move(entries)) {}

  const std::vector<CounterEntry>& entries() const { return entries_; }

  void counter(const char* name, const Counter& value, const char* unit, const char* meaning) override {
    entries_.push_back({prefix_ + name, value, unit, meaning});
  }
  void busy(const char* name, const Counter& value, std::uint32_t units, const char* meaning,
            std::span<const Counter> each) override {
    entries_.push_back(
        {prefix_ + name, value, "ps", meaning, CounterEntry::Kind::busy, units, {each.begin(), each.end()}});
  }
  void waited(const char* name, const Counter& value, const char* meaning) override {
    entries_.push_back({prefix_ + name, value, "ps", meaning, CounterEntry::Kind::waited});
  }
  void most(const char* name, const Counter& value, const char* unit, const char* meaning) override {
    entries_.push_back({prefix_ + name, value, unit, meaning, CounterEntry::Kind::most});
  }

 protected:
  void enter(const char* name) override { prefix_ += std::string(name) + '.'; }
  void leave() override {
    prefix_.pop_back();
    prefix_.erase(prefix_.rfind('.') + 1);
  }

 private:
  std::vector<CounterEntry> entries_;
  std::string prefix_;
};

}  // namespace rnicsim::sim
