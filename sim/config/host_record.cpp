#include "sim/config/host_record.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/ether.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/config/config_error.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {
namespace {

// The third byte of a default address is the host's number.
constexpr std::size_t kMostHosts = 256;

[[noreturn]] void refuse(const Setting& setting, const char* needed) {
  throw ConfigError(fmt::format("{}: hosts.{}: {} is needed, not '{}'", setting.where, setting.path, needed,
                                shown(setting.text)));
}

// "address/prefix" into the two.
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

bool is_host_name(const Setting& setting) {
  const auto& name = setting.text;
  return setting.type == Setting::Type::text && !name.empty() && name.size() < sizeof(abi::HostEntry::name) &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

template <class Address>
std::string address_text(int family, const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family, address, text, sizeof text);
  return text;
}

}  // namespace

abi::HostEntry to_host(const Record& record, std::size_t index) {
  if (index >= kMostHosts) throw ConfigError(fmt::format("{}: more than {} hosts", record.where, kMostHosts));
  const auto name = record.fields.find("name");
  if (name == record.fields.end()) throw ConfigError(fmt::format("{}: a host needs a name", record.where));
  check_node_name(name->second, "hosts");

  abi::HostEntry host = default_host(static_cast<std::uint32_t>(index), name->second.text);
  for (const auto& [key, setting] : record.fields) {
    if (key == "ipv4") {
      parse_address(setting, AF_INET, host.ipv4, host.ipv4_prefix, "an IPv4 address such as \"10.0.0.1/16\"");
    } else if (key == "ipv6") {
      parse_address(setting, AF_INET6, host.ipv6, host.ipv6_prefix, "an IPv6 address such as \"fd00::1/64\"");
    } else if (key == "mac") {
      parse_mac(setting, host.mac);
    } else if (key != "name") {
      throw ConfigError(
          fmt::format("{}: a host has name, ipv4, ipv6 and mac, and no {}", setting.where, key.substr(0, 40)));
    }
  }
  return host;
}

Record to_record(const abi::HostEntry& host) {
  const auto field = [](const char* key, std::string text) {
    return std::pair(std::string(key), Setting{key, Setting::Type::text, std::move(text), ""});
  };
  return {{field("name", host.name), field("ipv4", fmt::format("{}/{}", ipv4_text(host), host.ipv4_prefix)),
           field("ipv6", fmt::format("{}/{}", ipv6_text(host), host.ipv6_prefix)), field("mac", mac_text(host))},
          ""};
}

void check_node_name(const Setting& name, const char* kind) {
  if (!is_host_name(name))
    throw ConfigError(
        fmt::format("{}: {}.name: a name of letters, digits, '-', '_' and '.' is needed", name.where, kind));
}

void check_distinct(const std::vector<abi::HostEntry>& hosts, const std::vector<Record>& records) {
  std::set<std::string> taken;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (const auto& identity :
         {std::string(hosts[i].name), ipv4_text(hosts[i]), ipv6_text(hosts[i]), mac_text(hosts[i])})
      if (!taken.insert(identity).second)
        throw ConfigError(fmt::format("{}: '{}' belongs to another host already", records[i].where, identity));
}

std::string ipv4_text(const abi::HostEntry& host) { return address_text(AF_INET, host.ipv4); }
std::string ipv6_text(const abi::HostEntry& host) { return address_text(AF_INET6, host.ipv6); }
std::string mac_text(const abi::HostEntry& host) {
  const auto& mac = host.mac;
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

}  // namespace rnicsim::sim
