// SPDX-License-Identifier: Apache-2.0
// Profiles: named sets of parameters, tables such as [nics.fast]; and the choice of a profile by each host, device,
// switch and cable.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/params.h"
#include "model/fabric/link_params.h"
#include "model/fabric/switch_params.h"
#include "model/host/host_params.h"
#include "model/nic/nic_params.h"
#include "sim/config/host_profile.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

template <class Params>
struct ProfilesOf {
  std::map<std::string, Params> by_name;

  void describe(ParamVisitor& visit) {
    for (auto& [name, params] : by_name) visit.group(name.c_str(), params);
  }
};

// Profiles that are in use.
struct Profiles {
  ProfilesOf<nic::NicParams> nics;
  ProfilesOf<HostProfile> host_types;
  ProfilesOf<fabric::LinkParams> links;
  ProfilesOf<fabric::SwitchParams> switch_types;
  ProfilesOf<nic::PortParams> ports;

  void describe(ParamVisitor& visit) {
    visit.group("nics", nics);
    visit.group("ports", ports);
    visit.group("host_types", host_types);
    visit.group("links", links);
    visit.group("switch_types", switch_types);
  }
};

// Profiles chosen by the nodes and cables of a topology.
class Choices {
 public:
  // Kind of profile that a key chooses in a table of `group` ("hosts", "devices", "switches", "cables"): "nics",
  // "engines", "host_types", "switch_types", "links" or "ports". nullopt: no such key.
  static std::optional<std::string_view> kind_of(std::string_view group, std::string_view key);

  // `node`: a device's label or a switch's name. nullptr: no choice.
  const std::string* of_node(const std::string& node, std::string_view kind) const { return find(nodes_, node, kind); }
  const std::string* of_cable(std::size_t cable, std::string_view kind) const { return find(cables_, cable, kind); }

  // A later choice wins. The setting's path is the key alone.
  void choose(const std::string& node, std::string_view kind, const Setting& setting);
  void choose(std::size_t cable, std::string_view kind, const Setting& setting);
  void forget_node(const std::string& node) { nodes_.erase(node); }
  void forget_cables() { cables_.clear(); }

  bool empty() const { return nodes_.empty() && cables_.empty(); }
  // Calls `take` for each choice of the kind.
  void each(std::string_view kind, const std::function<void(const Setting&)>& take) const;
  // Choices in the form of --set: {"hosts.h0.nic", "fast"}.
  std::vector<std::pair<std::string, std::string>> settings(const Topology& topology) const;

 private:
  using Own = std::map<std::string, Setting, std::less<>>;

  template <class Key>
  static const std::string* find(const std::map<Key, Own>& all, const Key& of, std::string_view kind) {
    const auto own = all.find(of);
    if (own == all.end()) return nullptr;
    const auto found = own->second.find(kind);
    return found != own->second.end() ? &found->second.text : nullptr;
  }

  std::map<std::string, Own> nodes_;
  std::map<std::size_t, Own> cables_;
};

// Collects profiles as written in files and --set options, until all files are loaded.
class ProfileBook {
 public:
  static bool is_of_profile(std::string_view path);

  // Takes a setting such as nics.fast.port.rate; a later one wins. `folder`: folder of the setting's file. ConfigError:
  // no such group.
  void take(const Setting& setting, const std::filesystem::path& folder);

  // Makes all profiles that `choices` name. A profile without a base starts from the shipped profile of the same name,
  // else from `defaults`. ConfigError: a profile is missing, is its own base or is used by nothing; or a parameter is
  // not valid.
  struct Defaults {
    const nic::NicParams& nic;
    const host::HostParams& host;
    const fabric::LinkParams& link;
    const fabric::SwitchParams& switches;
    const RootComplex& root_complex;  // of the host chosen for all: applied to each shipped NIC
  };
  Profiles resolve(const Choices& choices, const Defaults& defaults) const;

 private:
  struct Written {
    std::optional<Setting> base;
    std::filesystem::path folder;  // folder of the file with `base`
    std::vector<Setting> settings;
    std::string where;  // place of the first setting
  };
  using Group = std::map<std::string, Written, std::less<>>;
  class Resolver;

  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace rnicsim::sim
