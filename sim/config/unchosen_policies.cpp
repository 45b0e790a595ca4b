// SPDX-License-Identifier: Apache-2.0
#include "sim/config/unchosen_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

// A group of parameters without a profile name, and the profiles that inherit its values.
struct Heirs {
  std::string_view from;
  std::string_view profiles;
};
constexpr Heirs kHeirs[] = {{"nic.port.", "ports."}, {"nic.", "nics."}, {"switch.", "switch_types."}};

struct Unchosen {
  std::string group;   // "nic.congestion.dcqcn"
  std::string choice;  // "nic.congestion.control"
  std::string chosen;  // "swift"
  std::string first;   // place and path of the first setting
  std::set<std::string> paths;
};

bool is_option(const Setting& setting) { return setting.where.starts_with("--set "); }

// The parameter of `group` that selects one of several policies, among them `policy`.
const ParamEntry* choosing_parameter(const ParamList& list, std::string_view group, std::string_view policy) {
  for (const auto& entry : list.entries()) {
    const std::string_view path = entry.path;
    const bool within = path.size() > group.size() + 1 && path.starts_with(group) && path[group.size()] == '.' &&
                        path.find('.', group.size() + 1) == path.npos;
    if (within && std::ranges::find(entry.words, policy) != entry.words.end()) return &entry;
  }
  return nullptr;
}

// True if a named profile selects `policy` by its own parameter for `choice`.
bool profile_chooses(const ParamList& list, std::string_view choice, const std::string& policy) {
  return std::ranges::any_of(kHeirs, [&](const Heirs& heirs) {
    if (!choice.starts_with(heirs.from)) return false;
    const auto own = fmt::format(".{}", choice.substr(heirs.from.size()));
    return std::ranges::any_of(list.entries(), [&](const ParamEntry& entry) {
      return entry.path.starts_with(heirs.profiles) && entry.path.ends_with(own) && entry.value_text() == policy;
    });
  });
}

// nullopt: the parameter belongs to no policy, or to the selected policy.
std::optional<Unchosen> unchosen(const ParamList& list, const Setting& setting) {
  const std::string_view path = setting.path;
  for (auto dot = path.rfind('.'); dot != path.npos; dot = path.substr(0, dot).rfind('.')) {
    const auto group = path.substr(0, dot);
    const auto before = group.rfind('.');
    if (before == group.npos) break;
    const std::string policy(group.substr(before + 1));
    const auto* choice = choosing_parameter(list, group.substr(0, before), policy);
    if (choice == nullptr) continue;
    if (choice->value_text() == policy || profile_chooses(list, choice->path, policy)) return std::nullopt;
    return Unchosen{std::string(group),
                    choice->path,
                    choice->value_text(),
                    is_option(setting) ? setting.where : fmt::format("{}: {}", setting.where, shown(path)),
                    {}};
  }
  return std::nullopt;
}

bool is_default(const ParamList& list, const ParamList& standard, const std::string& path) {
  const auto *entry = list.find(path), *usual = standard.find(path);
  return entry != nullptr && usual != nullptr && entry->value_text() == usual->value_text();
}

}  // namespace

std::vector<std::string> settings_without_effect(const ParamList& list, const ParamList& standard,
                                                 std::span<const Setting> settings) {
  std::vector<Unchosen> found;
  for (const auto& setting : settings) {
    if (!is_option(setting) && is_default(list, standard, setting.path)) continue;
    auto one = unchosen(list, setting);
    if (!one) continue;
    auto of_group = std::ranges::find(found, one->group, &Unchosen::group);
    if (of_group == found.end()) of_group = found.insert(found.end(), std::move(*one));
    of_group->paths.insert(setting.path);
  }
  std::vector<std::string> sentences;
  for (const auto& [group, choice, chosen, first, paths] : found)
    sentences.push_back(
        fmt::format("{}{} no effect, because {} is {}", first,
                    paths.size() == 1 ? " has" : fmt::format(" and {} more of {} have", paths.size() - 1, group),
                    choice, shown(chosen)));
  return sentences;
}

}  // namespace rnicsim::sim
