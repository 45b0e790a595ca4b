// SPDX-License-Identifier: Apache-2.0
// Policies (for example cache replacement, or path choice in a switch) that configuration chooses by name. A policy is
// a small class in a source file of its own. The source registers the policy; no other file names it:
//
//   const PolicyEntry<Replacement> kEntry{"fifo", [](std::uint32_t ways) { return std::make_unique<Fifo>(ways); }};
//
// Replacement is the common interface, and Replacement::Make a pointer to a function that makes a Replacement. The
// parameter is a text with the registered names as words, so that `describe` lists them and an unknown name is refused
// with the list:
//
//   visit.param("replacement", replacement, "which entry of a set leaves", policy_names<Replacement>());
//
// A policy with parameters of its own registers them as a third argument (model/base/policy_params.h).
//
// A linker drops objects of a static library to which nothing refers: sources with an entry belong to an OBJECT
// library.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rnicsim {

class PolicyParams;  // model/base/policy_params.h

// The entry and `name` have static storage.
template <class Policy>
class [[gnu::visibility("default")]] PolicyEntry {
 public:
  using MakeParams = std::unique_ptr<PolicyParams> (*)();

  PolicyEntry(const char* name, typename Policy::Make make, MakeParams make_params = nullptr)
      : name_(name), make_(make), make_params_(make_params), next_(first_) {
    first_ = this;
  }
  PolicyEntry(const PolicyEntry&) = delete;
  PolicyEntry& operator=(const PolicyEntry&) = delete;

  const char* name() const { return name_; }
  typename Policy::Make make() const { return make_; }
  MakeParams make_params() const { return make_params_; }  // nullptr: the policy has no parameters
  const PolicyEntry* next() const { return next_; }
  static const PolicyEntry* first() { return first_; }

 private:
  inline static const PolicyEntry* first_ = nullptr;  // constant once main() runs

  const char* const name_;
  const typename Policy::Make make_;
  const MakeParams make_params_;
  const PolicyEntry* const next_;
};

// All names in alphabetical order, independent of link order. Do not call before main().
template <class Policy>
std::span<const char* const> policy_names() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (auto* entry = PolicyEntry<Policy>::first(); entry != nullptr; entry = entry->next())
      all.push_back(entry->name());
    const auto text = [](const char* name) { return std::string_view(name); };
    std::ranges::sort(all, {}, text);
    const auto twice = std::ranges::adjacent_find(all, {}, text);
    if (twice != all.end()) throw std::logic_error("two policies have the name " + std::string(*twice));
    return all;
  }();
  return names;
}

// nullptr: no policy is registered with this name.
template <class Policy>
const PolicyEntry<Policy>* find_policy(std::string_view name) {
  for (auto* entry = PolicyEntry<Policy>::first(); entry != nullptr; entry = entry->next())
    if (name == entry->name()) return entry;
  return nullptr;
}

// Makes the policy that is registered with this name. Throws std::out_of_range for an unknown name.
template <class Policy, class... Arguments>
auto make_policy(std::string_view name, Arguments&&... arguments) {
  if (const auto* entry = find_policy<Policy>(name)) return entry->make()(std::forward<Arguments>(arguments)...);
  throw std::out_of_range("no policy is called " + std::string(name));
}

}  // namespace rnicsim
