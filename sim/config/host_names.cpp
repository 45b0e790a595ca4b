// SPDX-License-Identifier: Apache-2.0
#include "sim/config/host_names.h"

#include <fmt/format.h>

#include <regex>

#include "sim/config/config_error.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {

std::uint32_t find_host(const std::string& name, const Topology& topology) {
  if (const auto host = topology.find_host(name)) return *host;
  std::vector<std::string> names;
  for (const auto& interface : topology.interfaces)
    if (interface.device == 0) names.emplace_back(interface.name);
  const auto meant = nearest_name(name, names);
  throw ConfigError(fmt::format("no host is called '{}'; the topology has {} to {}{}", name, names.front(),
                                names.back(), meant ? fmt::format(" (did you mean '{}'?)", *meant) : ""));
}

}  // namespace

std::vector<std::string> expand_names(const std::string& text) {
  if (text.find('[') == text.npos) return {text};
  static const std::regex range(R"(([^\[\]]*)\[(\d{1,4})-(\d{1,4})\]([^\[\]]*))");
  std::smatch parts;
  if (text.size() > sizeof(abi::NetworkInterface::name) || !std::regex_match(text, parts, range))
    throw ConfigError(fmt::format("'{}' is not a range of hosts, such as 'h[0-3]'", text.substr(0, 80)));
  const int first = std::stoi(parts[2]);
  const int last = std::stoi(parts[3]);
  if (last < first) throw ConfigError(fmt::format("'{}': the end of the range is before its begin", text));
  std::vector<std::string> names;
  for (int number = first; number <= last; ++number)
    names.push_back(fmt::format("{}{}{}", parts[1].str(), number, parts[4].str()));
  return names;
}

std::vector<std::uint32_t> expand_hosts(const std::string& text, const Topology& topology) {
  std::vector<std::uint32_t> hosts;
  for (const auto& name : expand_names(text)) hosts.push_back(find_host(name, topology));
  return hosts;
}

}  // namespace rnicsim::sim
