// Puts files and --set options into parameters and topology.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/data_files.h"
#include "sim/config/param_list.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// Every member throws ConfigError.
class Loader {
 public:
  Loader(const ParamList& params, Topology& topology) : params_(params), topology_(topology) {}

  // The file, after the one its `base` names.
  void load(DataKind kind, const std::filesystem::path& path);
  void set(std::string_view key_equals_value);
  void fault(std::string_view rule);

  // In the order in which they came; not yet checked: a rule may name a host of a later file.
  const std::vector<Record>& faults() const { return faults_; }

 private:
  void take_topology(const TomlFile& file);
  void take_interfaces(const TomlFile& file);
  std::uint32_t cable_end(const Record& record, const char* end) const;

  const ParamList& params_;
  Topology& topology_;
  std::vector<Record> faults_;
};

}  // namespace rnicsim::sim
