// SPDX-License-Identifier: Apache-2.0
#include "sim/config/idle_settings.h"

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

struct IdleGroup {
  std::string group;  // "nic.congestion.dcqcn"
  std::string why;    // "nic.congestion.control is swift"
  std::string first;  // place and path of the first setting
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
std::optional<IdleGroup> of_unchosen_policy(const ParamList& list, std::string_view path) {
  for (auto dot = path.rfind('.'); dot != path.npos; dot = path.substr(0, dot).rfind('.')) {
    const auto group = path.substr(0, dot);
    const auto before = group.rfind('.');
    if (before == group.npos) break;
    const std::string policy(group.substr(before + 1));
    const auto* choice = choosing_parameter(list, group.substr(0, before), policy);
    if (choice == nullptr) continue;
    if (choice->value_text() == policy || profile_chooses(list, choice->path, policy)) return std::nullopt;
    return IdleGroup{std::string(group), fmt::format("{} is {}", choice->path, shown(choice->value_text())), {}, {}};
  }
  return std::nullopt;
}

// True if a named profile inherits the parameter, and the parameter has an effect there.
bool acts_in_profile(const ParamList& list, std::string_view path) {
  return std::ranges::any_of(kHeirs, [&](const Heirs& heirs) {
    if (!path.starts_with(heirs.from)) return false;
    const auto own = fmt::format(".{}", path.substr(heirs.from.size()));
    return std::ranges::any_of(list.entries(), [&](const ParamEntry& entry) {
      return entry.path.starts_with(heirs.profiles) && entry.path.ends_with(own) && !list.idle_reason(entry.path);
    });
  });
}

std::optional<IdleGroup> idle_setting(const ParamList& list, const Setting& setting) {
  const std::string_view path = setting.path;
  auto found = of_unchosen_policy(list, path);
  const auto why = found ? std::nullopt : list.idle_reason(path);
  if (why && !acts_in_profile(list, path))
    found = IdleGroup{std::string(path.substr(0, path.rfind('.'))), *why, {}, {}};
  if (found) found->first = is_option(setting) ? setting.where : fmt::format("{}: {}", setting.where, shown(path));
  return found;
}

bool is_default(const ParamList& list, const ParamList& standard, const std::string& path) {
  const auto *entry = list.find(path), *usual = standard.find(path);
  return entry != nullptr && usual != nullptr && entry->value_text() == usual->value_text();
}

}  // namespace

std::vector<std::string> settings_without_effect(const ParamList& list, const ParamList& standard,
                                                 std::span<const Setting> settings) {
  std::vector<IdleGroup> found;
  for (const auto& setting : settings) {
    if (!is_option(setting) && is_default(list, standard, setting.path)) continue;
    auto one = idle_setting(list, setting);
    if (!one) continue;
    auto alike = std::ranges::find_if(
        found, [&](const IdleGroup& other) { return other.group == one->group && other.why == one->why; });
    if (alike == found.end()) alike = found.insert(found.end(), std::move(*one));
    alike->paths.insert(setting.path);
  }
  std::vector<std::string> sentences;
  for (const auto& [group, why, first, paths] : found)
    sentences.push_back(
        fmt::format("{}{} no effect, because {}", first,
                    paths.size() == 1 ? " has" : fmt::format(" and {} more of {} have", paths.size() - 1, group), why));
  return sentences;
}

}  // namespace rnicsim::sim
