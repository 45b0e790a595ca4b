// Profiles: parameters that have a name, tables such as [nics.fast], and
// which host, device, switch and cable has which.
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

// Those that somebody has.
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

// What each of a topology names as its own.
class Choices {
 public:
  // What a key of a table of that group ("hosts", "devices", "switches", "cables") says: "nics", "engines",
  // "host_types", "switch_types", "links" or "ports". nullopt: there is no such key.
  static std::optional<std::string_view> kind_of(std::string_view group, std::string_view key);

  // `node` is a device's label or a switch's name. nullptr: it names none.
  const std::string* of_node(const std::string& node, std::string_view kind) const { return find(nodes_, node, kind); }
  const std::string* of_cable(std::size_t cable, std::string_view kind) const { return find(cables_, cable, kind); }

  // A later one wins. Its path is the key.
  void choose(const std::string& node, std::string_view kind, const Setting& setting);
  void choose(std::size_t cable, std::string_view kind, const Setting& setting);
  void forget_node(const std::string& node) { nodes_.erase(node); }
  void forget_cables() { cables_.clear(); }

  bool empty() const { return nodes_.empty() && cables_.empty(); }
  // Each that is chosen of the kind.
  void each(std::string_view kind, const std::function<void(const Setting&)>& take) const;
  // As --set would have it: "hosts.h0.nic", "fast".
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

// Profiles as files and --set write them, until all is known.
class ProfileBook {
 public:
  static bool is_of_profile(std::string_view path);

  // A setting such as nics.fast.port.rate, later ones win; `folder` is where its file lies. ConfigError: none such.
  void take(const Setting& setting, const std::filesystem::path& folder);

  // All that `choices` name. What names no base, and is not the name of what is shipped, is as `defaults` but for what
  // it says. ConfigError: a profile that there is not, that is its own base or that nobody has; a parameter's mistake.
  struct Defaults {
    const nic::NicParams& nic;
    const host::HostParams& host;
    const fabric::LinkParams& link;
    const fabric::SwitchParams& switches;
    const RootComplex& root_complex;  // of the host that is chosen for all: each shipped NIC's
  };
  Profiles resolve(const Choices& choices, const Defaults& defaults) const;

 private:
  struct Written {
    std::optional<Setting> base;
    std::filesystem::path folder;  // of `base`
    std::vector<Setting> settings;
    std::string where;  // the first of it
  };
  using Group = std::map<std::string, Written, std::less<>>;
  class Resolver;

  std::map<std::string, Group, std::less<>> groups_;
};

}  // namespace rnicsim::sim
