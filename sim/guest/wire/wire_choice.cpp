// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/wire_choice.h"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <string_view>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr std::string_view kUnix = "unix:", kTap = "tap:", kConnect = ",connect";

[[noreturn]] void refuse(const std::string& text, const char* why) {
  throw ConfigError(fmt::format("--wire '{}': {}", text, why));
}

WireChoice parse_wire(const std::string& text, const Topology& topology) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) refuse(text, "HOST=unix:PATH, HOST=unix:PATH,connect or HOST=tap:NAME is needed");
  const auto host = topology.find_host(std::string_view(text).substr(0, equals));
  if (!host) refuse(text, "the topology has no such host");
  WireChoice wire;
  wire.host = *host;
  auto place = std::string_view(text).substr(equals + 1);
  if (place.starts_with(kTap)) {
    wire.kind = WireChoice::Kind::tap;
    wire.place = place.substr(kTap.size());
    if (wire.place.empty() || wire.place.size() >= IFNAMSIZ) refuse(text, "an interface's name has 1 to 15 bytes");
    return wire;
  }
  if (!place.starts_with(kUnix)) refuse(text, "behind the host, unix:PATH or tap:NAME is needed");
  place.remove_prefix(kUnix.size());
  wire.kind = WireChoice::Kind::listen;
  if (place.ends_with(kConnect)) {
    wire.kind = WireChoice::Kind::connect;
    place.remove_suffix(kConnect.size());
  }
  wire.place = place;
  if (wire.place.empty()) refuse(text, "a socket's path is needed");
  return wire;
}

}  // namespace

std::vector<WireChoice> parse_wires(const std::vector<std::string>& texts, const Topology& topology) {
  std::vector<WireChoice> wires;
  for (const auto& text : texts) {
    const auto wire = parse_wire(text, topology);
    if (std::ranges::find(wires, wire.host, &WireChoice::host) != wires.end())
      refuse(text, "the host already has a wire");
    const auto nics = std::ranges::count(topology.interfaces, wire.host, &abi::NetworkInterface::host);
    if (nics != 1) refuse(text, "a host with --wire can have only one NIC");
    wires.push_back(wire);
  }
  if (wires.size() == topology.hosts() && !wires.empty())
    throw ConfigError("--wire: at least one host must be simulated");
  return wires;
}

}  // namespace rnicsim::sim
