// SPDX-License-Identifier: Apache-2.0
#include "sim/config/host_record.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/ether.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/config/config_error.h"
#include "sim/config/profiles/profiles.h"

namespace rnicsim::sim {
namespace {

[[noreturn]] void refuse(const Setting& setting, const char* needed) {
  throw ConfigError(
      fmt::format("{}: hosts.{}: {} is needed, not '{}'", setting.where, setting.path, needed, shown(setting.text)));
}

// Splits "address/prefix".
template <std::size_t bytes>
void parse_address(const Setting& setting, int family, std::uint8_t (&address)[bytes], std::uint8_t& prefix,
                   const char* needed) {
  const std::string_view text = setting.text;
  const auto slash = text.find('/');
  const std::string digits(text.substr(0, slash));
  if (setting.type != Setting::Type::text || inet_pton(family, digits.c_str(), address) != 1) refuse(setting, needed);
  if (slash == text.npos) return;
  const auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), prefix);
  if (error != std::errc{} || end != text.data() + text.size() || prefix > 8 * bytes) refuse(setting, needed);
}

void parse_mac(const Setting& setting, std::uint8_t (&mac)[6]) {
  ether_addr parsed;
  if (setting.type != Setting::Type::text || !ether_aton_r(setting.text.c_str(), &parsed) ||
      (parsed.ether_addr_octet[0] & 1) != 0)
    refuse(setting, "the MAC address of one station, such as \"02:00:00:00:00:01\",");
  std::ranges::copy(parsed.ether_addr_octet, mac);
}

// A name is used for folders and files and as an argument of programs, so it must not begin like an option or hold a
// slash.
bool is_host_name(const Setting& setting) {
  const auto& name = setting.text;
  return setting.type == Setting::Type::text && !name.empty() && name.size() < sizeof(abi::NetworkInterface::name) &&
         name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

template <class Address>
std::string address_text(int family, const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family, address, text, sizeof text);
  return text;
}

// Reads the addresses. `name`: key that names the host. `owner`: "a host" or "a device", for messages. `choices`:
// further keys that are allowed.
void take_addresses(const Record& record, std::string_view name, const char* owner, const char* choices,
                    abi::NetworkInterface& interface) {
  const bool is_host = name == "name";
  for (const auto& [key, setting] : record.fields) {
    if (key == "ipv4") {
      parse_address(setting, AF_INET, interface.ipv4, interface.ipv4_prefix, "an IPv4 address such as \"10.0.0.1/16\"");
    } else if (key == "ipv6") {
      parse_address(setting, AF_INET6, interface.ipv6, interface.ipv6_prefix, "an IPv6 address such as \"fd00::1/64\"");
    } else if (key == "mac") {
      parse_mac(setting, interface.mac);
    } else if (key != name && !Choices::kind_of(is_host ? "hosts" : "devices", key)) {
      throw ConfigError(fmt::format("{}: {} may have {}, {}, ipv4, ipv6 and mac, but no {}", setting.where, owner, name,
                                    choices, key.substr(0, 40)));
    }
  }
}

}  // namespace

abi::NetworkInterface to_host(const Record& record, std::size_t index) {
  if (index >= kMaxHosts) throw ConfigError(fmt::format("{}: more than {} hosts", record.where, kMaxHosts));
  const auto name = record.fields.find("name");
  if (name == record.fields.end()) throw ConfigError(fmt::format("{}: a host needs a name", record.where));
  check_node_name(name->second, "hosts");
  auto interface = default_interface(static_cast<std::uint32_t>(index), name->second.text);
  take_addresses(record, "name", "a host", "nic, type, engine", interface);
  return interface;
}

abi::NetworkInterface to_device(const Record& record, const Topology& topology) {
  const auto name = record.fields.find("host");
  if (name == record.fields.end()) throw ConfigError(fmt::format("{}: a device needs its host", record.where));
  const auto host = topology.find_host(name->second.text);
  if (!host) throw ConfigError(fmt::format("{}: no host is called '{}'", name->second.where, shown(name->second.text)));
  const auto number = static_cast<std::uint32_t>(
      std::ranges::count(topology.interfaces, static_cast<std::uint16_t>(*host), &abi::NetworkInterface::host));
  if (number >= abi::kMaxDevices)
    throw ConfigError(fmt::format("{}: a host has at most {} devices", record.where, abi::kMaxDevices));
  if (topology.interfaces.size() >= abi::kMaxInterfaces)
    throw ConfigError(fmt::format("{}: more than {} devices in all", record.where, abi::kMaxInterfaces));
  auto interface = default_interface(*host, name->second.text, number);
  take_addresses(record, "host", "a device", "nic, engine", interface);
  return interface;
}

Record to_record(const abi::NetworkInterface& interface) {
  const auto field = [](const char* key, std::string text) {
    return std::pair(std::string(key), Setting{key, Setting::Type::text, std::move(text), ""});
  };
  return {{field(interface.device == 0 ? "name" : "host", interface.name),
           field("ipv4", fmt::format("{}/{}", ipv4_text(interface), interface.ipv4_prefix)),
           field("ipv6", fmt::format("{}/{}", ipv6_text(interface), interface.ipv6_prefix)),
           field("mac", mac_text(interface))},
          ""};
}

void check_node_name(const Setting& name, const char* kind) {
  if (!is_host_name(name))
    throw ConfigError(
        fmt::format("{}: {}.name: a name of up to {} letters, digits, '-', '_' and '.' is needed, which begins with "
                    "neither '-' nor '.'",
                    name.where, kind, sizeof(abi::NetworkInterface::name) - 1));
}

void check_distinct(const std::vector<abi::NetworkInterface>& interfaces, const std::vector<Record>& records) {
  std::set<std::string> taken;
  const std::size_t first = interfaces.size() - records.size();
  for (std::size_t i = 0; i < interfaces.size(); ++i)
    for (const auto& identity :
         {label_of(interfaces[i]), ipv4_text(interfaces[i]), ipv6_text(interfaces[i]), mac_text(interfaces[i])})
      if (!taken.insert(identity).second)
        throw ConfigError(fmt::format("{}: '{}' already belongs to another {}", records[i - first].where, identity,
                                      interfaces[i].device == 0 ? "host" : "device"));
}

std::string ipv4_text(const abi::NetworkInterface& interface) { return address_text(AF_INET, interface.ipv4); }
std::string ipv6_text(const abi::NetworkInterface& interface) { return address_text(AF_INET6, interface.ipv6); }
std::string mac_text(const abi::NetworkInterface& interface) {
  const auto& mac = interface.mac;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

}  // namespace rnicsim::sim
