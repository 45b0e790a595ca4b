#include "sim/config/config.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/config/host_record.h"
#include "sim/config/loader.h"
#include "sim/config/param_list.h"
#include "sim/config/toml_file.h"

namespace rnicsim::sim {
namespace {

constexpr std::string_view kStar = "star:";
constexpr std::uint32_t kMostHosts = 64;

// Of "star:12": 12.
std::optional<std::uint32_t> star_hosts(std::string_view topology) {
  if (!topology.starts_with(kStar)) return std::nullopt;
  const auto digits = topology.substr(kStar.size());
  std::uint32_t hosts = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), hosts);
  if (error != std::errc{} || end != digits.data() + digits.size() || hosts < 2 || hosts > kMostHosts)
    throw ConfigError(fmt::format("topology {}: star:2 .. star:{} is needed", shown(topology), kMostHosts));
  return hosts;
}

}  // namespace

Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets,
                   std::span<const std::string> faults) {
  Config config;
  const ParamList params(config);
  Loader loader(params, config.topology);
  loader.load(DataKind::nic, find_data(DataKind::nic, nic));
  if (const auto hosts = star_hosts(topology))
    config.topology = star_of(*hosts);
  else
    loader.load(DataKind::topology, find_data(DataKind::topology, topology));
  for (const auto& set : sets) loader.set(set);
  for (const auto& fault : faults) loader.fault(fault);
  config.engine.limit(config.nic.capabilities);
  if (const auto contradiction = ParamList(config).contradiction()) throw ConfigError(*contradiction);
  if (config.topology.interfaces.empty()) throw ConfigError(std::string(topology) + ": a topology without hosts");
  for (const auto& record : loader.faults())
    config.faults.push_back(to_fault(record, config.topology, config.faults.size() + 1));
  return config;
}

std::string to_toml(Config& config) {
  const ParamList params(config);
  TomlFile file;
  for (const auto& entry : params.entries()) {
    const auto type = entry.is_number()                 ? Setting::Type::number
                      : entry.kind() == "true or false" ? Setting::Type::boolean
                                                        : Setting::Type::text;
    file.settings.push_back({entry.path, type, entry.value_text(), ""});
  }
  for (const auto& interface : config.topology.interfaces)
    (interface.device == 0 ? file.hosts : file.devices).push_back(to_record(interface));
  for (const auto& name : config.topology.switches)
    file.switches.push_back({{{"name", Setting{"name", Setting::Type::text, name, ""}}}, ""});
  for (const auto& [from, to] : config.topology.cables) {
    const auto end = [&](const char* key, std::uint32_t node) {
      return std::pair(std::string(key), Setting{key, Setting::Type::text, config.topology.node_name(node), ""});
    };
    file.cables.push_back({{end("from", from), end("to", to)}, ""});
  }
  for (const auto& fault : config.faults) file.faults.push_back(fault.record);
  return write_toml(file);
}

}  // namespace rnicsim::sim
