// SPDX-License-Identifier: Apache-2.0
#include "sim/config/profiles/profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/nic_profile.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

struct ChoiceKey {
  const char* group;
  const char* key;
  const char* kind;
};
constexpr std::array<ChoiceKey, 8> kChoiceKeys = {{{"hosts", "nic", "nics"},
                                                   {"hosts", "type", "host_types"},
                                                   {"hosts", "engine", "engines"},
                                                   {"devices", "nic", "nics"},
                                                   {"devices", "engine", "engines"},
                                                   {"switches", "type", "switch_types"},
                                                   {"cables", "link", "links"},
                                                   {"cables", "port", "ports"}}};
constexpr std::array<std::string_view, 5> kProfileGroups = {"nics", "ports", "host_types", "links", "switch_types"};

bool is_profile_name(std::string_view name) {
  constexpr std::size_t kLongest = 63;
  return !name.empty() && name.size() <= kLongest &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

// Gives the parameters of one profile their full paths.
template <class Params>
struct OneProfile {
  struct Named {
    const char* name;
    Params& params;
    void describe(ParamVisitor& visit) { visit.group(name, params); }
  };
  const char* group;
  Named named;
  void describe(ParamVisitor& visit) { visit.group(group, named); }
};

}  // namespace

std::optional<std::string_view> Choices::kind_of(std::string_view group, std::string_view key) {
  for (const auto& each : kChoiceKeys)
    if (each.group == group && each.key == key) return each.kind;
  return std::nullopt;
}

void Choices::choose(const std::string& node, std::string_view kind, const Setting& setting) {
  nodes_[node].insert_or_assign(std::string(kind), setting);
}

void Choices::choose(std::size_t cable, std::string_view kind, const Setting& setting) {
  cables_[cable].insert_or_assign(std::string(kind), setting);
}

void Choices::each(std::string_view kind, const std::function<void(const Setting&)>& take) const {
  const auto look = [&](const auto& all) {
    for (const auto& [of, own] : all)
      if (const auto found = own.find(kind); found != own.end()) take(found->second);
  };
  look(nodes_);
  look(cables_);
}

std::vector<std::pair<std::string, std::string>> Choices::settings(const Topology& topology) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [node, own] : nodes_) {
    const auto index = topology.find_node(node);
    const char* group = !index || topology.is_switch(*index)      ? "switches"
                        : topology.interfaces[*index].device == 0 ? "hosts"
                                                                  : "devices";
    for (const auto& [kind, setting] : own)
      all.emplace_back(fmt::format("{}.{}.{}", group, node, setting.path), setting.text);
  }
  for (const auto& [cable, own] : cables_) {
    const auto [from, to] = topology.cables[cable];
    for (const auto& [kind, setting] : own)
      all.emplace_back(fmt::format("cables.{}-{}.{}", topology.node_name(from), topology.node_name(to), setting.path),
                       setting.text);
  }
  return all;
}

// --- ProfileBook.
class ProfileBook::Resolver {
 public:
  Resolver(const ProfileBook& book, const Choices& choices, const RootComplex& root_complex)
      : book_(book), choices_(choices), root_complex_(root_complex) {}

  template <class Params>
  void resolve(const char* group, const Params& standard, ProfilesOf<Params>& made) {
    choices_.each(group, [&](const Setting& choice) {
      if (made.by_name.contains(choice.text)) return;
      chain_.clear();
      made.by_name.emplace(choice.text, make(group, choice, standard));
    });
    require_used(group);
  }

 private:
  const Written* find(std::string_view group, std::string_view name) const {
    const auto of_group = book_.groups_.find(group);
    if (of_group == book_.groups_.end()) return nullptr;
    const auto found = of_group->second.find(name);
    return found != of_group->second.end() ? &found->second : nullptr;
  }

  // Makes the profile that `reference` names.
  template <class Params>
  Params make(const char* group, const Setting& reference, const Params& standard) {
    const std::string& name = reference.text;
    const Written* written = find(group, name);
    if (written == nullptr) return shipped<Params>(group, reference, {});
    if (std::ranges::find(chain_, name) != chain_.end())
      throw ConfigError(fmt::format("{}: {}.{}: the profile is its own base", reference.where, group, name));
    constexpr std::size_t kMostBases = 32;
    if (chain_.size() > kMostBases)
      throw ConfigError(fmt::format("{}: {}.{}: more than {} bases", reference.where, group, name, kMostBases));
    chain_.push_back(name);
    used_.insert(name);
    Params params = base_of(group, name, *written, standard);
    if constexpr (std::is_same_v<Params, HostProfile>)
      params.pcie.open(written->settings, fmt::format("{}.{}.pcie.", group, name));
    OneProfile<Params> profile{group, {name.c_str(), params}};
    const ParamList list(profile);
    for (const auto& setting : written->settings) apply(list, setting);
    return params;
  }

  template <class Params>
  Params base_of(const char* group, const std::string& name, const Written& written, const Params& standard) {
    if (!written.base) {
      if (is_shipped<Params>(name)) return shipped<Params>(group, {{}, Setting::Type::text, name, written.where}, {});
      return standard;
    }
    // A profile may have the name of the shipped profile that is its base.
    const auto& base = written.base->text;
    if (find(group, base) == nullptr || (base == name && is_shipped<Params>(name)))
      return shipped<Params>(group, *written.base, written.folder);
    return make(group, *written.base, standard);
  }

  // Only NICs and hosts have shipped files.
  template <class Params>
  static constexpr bool kIsFile = std::is_same_v<Params, nic::NicParams> || std::is_same_v<Params, HostProfile>;
  template <class Params>
  static constexpr auto kKindOf = std::is_same_v<Params, nic::NicParams> ? DataKind::nic : DataKind::host;

  template <class Params>
  static bool is_shipped(const std::string& name) {
    if (!kIsFile<Params>) return false;
    const auto names = data_names(kKindOf<Params>);
    return std::ranges::find(names, name) != names.end();
  }

  template <class Params>
  Params shipped(const char* group, const Setting& reference, const std::filesystem::path& folder) {
    if constexpr (kIsFile<Params>) {
      const std::string& name = reference.text;
      const bool is_file = !reference.path.empty() && reference.path.ends_with(".base") &&
                           (name.find('/') != name.npos || name.ends_with(".toml"));
      std::error_code none;
      if (is_file && std::filesystem::exists(folder / name, none)) return from_file<Params>(folder / name);
      if (is_file || is_shipped<Params>(name)) return from_file<Params>(find_data(kKindOf<Params>, name));
    }
    refuse<Params>(group, reference);
  }

  template <class Params>
  Params from_file(const std::filesystem::path& path) const {
    if constexpr (std::is_same_v<Params, HostProfile>) {
      return load_host_profile(path);
    } else {
      auto params = load_nic_profile(path);
      root_complex_.put_into(params.dma);
      return params;
    }
  }

  template <class Params>
  [[noreturn]] void refuse(const char* group, const Setting& reference) const {
    std::vector<std::string> names;
    if (const auto of_group = book_.groups_.find(group); of_group != book_.groups_.end())
      for (const auto& [name, written] : of_group->second) names.push_back(name);
    if constexpr (kIsFile<Params>)
      for (const auto& name : data_names(kKindOf<Params>)) names.push_back(name);
    const auto meant = nearest_name(reference.text, names);
    const bool is_option = reference.where.starts_with("--set ");
    throw ConfigError(fmt::format("{}{}: there is no {}.{}{}", reference.where,
                                  is_option ? "" : fmt::format(": {}", reference.path), group, shown(reference.text),
                                  meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }

  // Refuses a profile that nothing uses: a misspelt name would otherwise have no effect, without a message.
  void require_used(std::string_view group) {
    const auto of_group = book_.groups_.find(group);
    if (of_group != book_.groups_.end())
      for (const auto& [name, written] : of_group->second)
        if (!used_.contains(name))
          throw ConfigError(
              fmt::format("{}: {}.{}: nothing in the topology has this profile", written.where, group, name));
    used_.clear();
  }

  const ProfileBook& book_;
  const Choices& choices_;
  const RootComplex& root_complex_;
  std::vector<std::string> chain_;  // names of the profile under construction and of its bases
  std::set<std::string> used_;      // names used in the present group
};

bool ProfileBook::is_of_profile(std::string_view path) {
  const auto group = path.substr(0, path.find('.'));
  return group != path && std::ranges::find(kProfileGroups, group) != kProfileGroups.end();
}

void ProfileBook::take(const Setting& setting, const std::filesystem::path& folder) {
  const std::string_view path = setting.path;
  const auto first = path.find('.');
  const auto second = path.find('.', first + 1);
  const auto name = path.substr(first + 1, second == path.npos ? path.npos : second - first - 1);
  if (!is_profile_name(name))
    throw ConfigError(
        fmt::format("{}: {}: a profile has a name of letters, digits, '-' and '_'", setting.where, shown(path)));
  auto& written = groups_[std::string(path.substr(0, first))][std::string(name)];
  if (written.where.empty()) written.where = setting.where;
  const bool is_empty_table = second == path.npos && setting.type == Setting::Type::other && setting.text == "{}";
  if (is_empty_table) return;
  if (second == path.npos)
    throw ConfigError(fmt::format("{}: {}: a profile is a table of parameters", setting.where, shown(path)));
  if (path.substr(second + 1) != "base") {
    written.settings.push_back(setting);
    return;
  }
  if (setting.type != Setting::Type::text)
    throw ConfigError(fmt::format("{}: {}: the name of another profile is needed", setting.where, shown(path)));
  written.base = setting;
  written.folder = folder;
}

Profiles ProfileBook::resolve(const Choices& choices, const Defaults& defaults) const {
  Profiles made;
  Resolver resolver(*this, choices, defaults.root_complex);
  resolver.resolve("nics", defaults.nic, made.nics);
  resolver.resolve("ports", defaults.nic.port, made.ports);
  resolver.resolve("host_types", HostProfile{defaults.host, {}}, made.host_types);
  resolver.resolve("links", defaults.link, made.links);
  resolver.resolve("switch_types", defaults.switches, made.switch_types);
  return made;
}

}  // namespace rnicsim::sim
