// Policies (which entry a cache displaces, which way a switch picks) that configuration chooses by name. Each is a
// small part in a source of its own, which registers it there and is named nowhere else:
//
//   const PolicyEntry<Replacement> kEntry{"fifo", [](std::uint32_t ways) { return std::make_unique<Fifo>(ways); }};
//
// Replacement is what they have in common, and Replacement::Make a pointer to a function that makes one. The parameter
// is a text with their names as words, so that `describe` lists them and another name is refused with those there are:
//
//   visit.param("replacement", replacement, "which entry of a set leaves", policy_names<Replacement>());
//
// A policy with parameters of its own registers them as a third argument (model/base/policy_params.h).
//
// A linker leaves out of a static library what nobody names: sources with an entry are an OBJECT library's.
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

class PolicyParams;                        // model/base/policy_params.h

// To be of static storage, and `name`, too.
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
  inline static const PolicyEntry* first_ = nullptr;  // does not change any more once main() runs

  const char* const name_;
  const typename Policy::Make make_;
  const MakeParams make_params_;
  const PolicyEntry* const next_;
};

// In the alphabet's order, whatever order they were linked in. Not before main().
template <class Policy>
std::span<const char* const> policy_names() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all;
    for (auto* entry = PolicyEntry<Policy>::first(); entry != nullptr; entry = entry->next())
      all.push_back(entry->name());
    const auto text = [](const char* name) { return std::string_view(name); };
    std::ranges::sort(all, {}, text);
    const auto twice = std::ranges::adjacent_find(all, {}, text);
    if (twice != all.end()) throw std::logic_error("two policies are called " + std::string(*twice));
    return all;
  }();
  return names;
}

// nullptr: no policy has that name.
template <class Policy>
const PolicyEntry<Policy>* find_policy(std::string_view name) {
  for (auto* entry = PolicyEntry<Policy>::first(); entry != nullptr; entry = entry->next())
    if (name == entry->name()) return entry;
  return nullptr;
}

// By one of those names.
template <class Policy, class... Arguments>
auto make_policy(std::string_view name, Arguments&&... arguments) {
  if (const auto* entry = find_policy<Policy>(name)) return entry->make()(std::forward<Arguments>(arguments)...);
  throw std::out_of_range("no policy is called " + std::string(name));
}

}  // namespace rnicsim
