// SPDX-License-Identifier: Apache-2.0
// Rules that choose the sockets to become rsockets: /etc/rdma/rsocket/preload_config, with one rule per line:
//
//   program domain type protocol
//
// `*` stands for any value; domain is INET or INET6, type STREAM or DGRAM, protocol TCP or UDP, also with the prefixes
// AF_, PF_, SOCK_ or IPPROTO_. `#` begins a comment.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::rsockets::preload {

// nullopt: any value.
struct Rule {
  std::string program;  // beginning of the program's name; empty: any
  std::optional<int> domain;
  std::optional<int> type;
  std::optional<int> protocol;
};

// Skips invalid lines.
std::vector<Rule> parse_rules(std::istream& file);

// True if there are no rules. `type` has no SOCK_NONBLOCK or SOCK_CLOEXEC.
bool becomes_rsocket(const std::vector<Rule>& rules, std::string_view program, int domain, int type, int protocol);

}  // namespace rnicsim::rsockets::preload
