// Which sockets of which programs become rsockets: /etc/rdma/rsocket/preload_config, a rule a line:
//
//   program domain type protocol
//
// each `*` for any; domain INET or INET6, type STREAM or DGRAM, protocol TCP or UDP (with or without AF_, PF_, SOCK_,
// IPPROTO_ before). `#` begins a comment.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::rsockets::preload {

// Nothing: any.
struct Rule {
  std::string program;  // what its name begins with; empty: any
  std::optional<int> domain;
  std::optional<int> type;
  std::optional<int> protocol;
};

// Lines that are no rule are passed over.
std::vector<Rule> parse_rules(std::istream& file);

// Without rules, all are. `type` without flags.
bool becomes_rsocket(const std::vector<Rule>& rules, std::string_view program, int domain, int type, int protocol);

}  // namespace rnicsim::rsockets::preload
