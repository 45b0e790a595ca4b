// SPDX-License-Identifier: Apache-2.0
// Reads files and --set options into parameters and a topology.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/data_files.h"
#include "sim/config/host_profile.h"
#include "sim/config/param_list.h"
#include "sim/config/profiles/profiles.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

struct Config;

// Every member function may throw ConfigError.
class Loader {
 public:
  Loader(const ParamList& params, Topology& topology) : params_(params), topology_(topology) {}

  // Loads the file's base, then the profile of the host that one of the two names, then the file. A topology's host
  // counts only when none was chosen.
  void load(DataKind kind, const std::filesystem::path& path);
  // Sets the profile of all hosts; overrides the host of the NIC's file.
  void choose_host(std::string_view name_or_path);
  void set(std::string_view key_equals_value);
  void fault(std::string_view rule);

  // Profiles, and the nodes and cables that use them. Not checked yet: a later file or --set may define a profile.
  const ProfileBook& profiles() const { return profiles_; }
  const Choices& choices() const { return choices_; }
  // Name of the host profile; empty: none. With a chosen host, root_complex() applies to each NIC.
  const std::string& host() const { return host_; }
  const RootComplex& root_complex() const { return root_complex_; }
  bool host_chosen() const { return host_chosen_; }
  // Fault rules in the order of loading. Not checked yet: a rule may name a host of a later file.
  const std::vector<Record>& faults() const { return faults_; }
  // Parameters that the user set: by --set, and in files that are not shipped.
  const std::vector<Setting>& own_settings() const { return own_settings_; }

 private:
  static bool is_choice(std::string_view path);
  // Takes any setting except a choice.
  void take_setting(const Setting& setting, const std::filesystem::path& folder);
  // Takes a choice such as "hosts.h0.nic" or "cables.h0-s0.link".
  void choose(const Setting& setting);
  void choose_cables(const Setting& setting, std::string_view ends, std::string_view kind, const Setting& own);
  void take_host(const std::filesystem::path& path, const std::string& name);
  void take_topology(const TomlFile& file);
  void take_interfaces(const TomlFile& file);
  std::uint32_t cable_end(const Record& record, const char* end) const;

  const ParamList& params_;
  Topology& topology_;
  ProfileBook profiles_;
  Choices choices_;
  std::string host_;
  bool host_chosen_ = false;
  RootComplex root_complex_;
  std::vector<Record> faults_;
  std::vector<Setting> own_settings_;
};

// Call after the last file: resolves profiles, engines and ports of everything in `config.topology`. ConfigError: a
// profile is missing or not valid.
void settle(Config& config, const Loader& loader);

}  // namespace rnicsim::sim
