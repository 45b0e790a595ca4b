// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/preload/rules.h"

#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>
#include <sstream>

namespace rnicsim::rsockets::preload {

namespace {

struct Word {
  const char* name;
  int value;
};
constexpr Word kDomains[] = {{"INET", AF_INET},   {"AF_INET", AF_INET},   {"PF_INET", AF_INET},
                             {"INET6", AF_INET6}, {"AF_INET6", AF_INET6}, {"PF_INET6", AF_INET6}};
constexpr Word kTypes[] = {
    {"STREAM", SOCK_STREAM}, {"SOCK_STREAM", SOCK_STREAM}, {"DGRAM", SOCK_DGRAM}, {"SOCK_DGRAM", SOCK_DGRAM}};
constexpr Word kProtocols[] = {
    {"TCP", IPPROTO_TCP}, {"IPPROTO_TCP", IPPROTO_TCP}, {"UDP", IPPROTO_UDP}, {"IPPROTO_UDP", IPPROTO_UDP}};

// False: unknown word.
bool parse(const std::string& word, std::span<const Word> words, std::optional<int>& value) {
  value.reset();
  if (word == "*") return true;
  const auto found =
      std::ranges::find_if(words, [&](const Word& known) { return strcasecmp(known.name, word.c_str()) == 0; });
  if (found == words.end()) return false;
  value = found->value;
  return true;
}

bool fits(const std::optional<int>& wanted, int value) { return !wanted || *wanted == value; }

}  // namespace

std::vector<Rule> parse_rules(std::istream& file) {
  std::vector<Rule> rules;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string program, domain, type, protocol;
    if (!(words >> program >> domain >> type >> protocol)) continue;
    Rule rule;
    if (!parse(domain, kDomains, rule.domain) || !parse(type, kTypes, rule.type) ||
        !parse(protocol, kProtocols, rule.protocol)) {
      continue;
    }
    if (program != "*") rule.program = program;
    rules.push_back(std::move(rule));
  }
  return rules;
}

bool becomes_rsocket(const std::vector<Rule>& rules, std::string_view program, int domain, int type, int protocol) {
  if (rules.empty()) return true;
  if (protocol == 0) protocol = type == SOCK_STREAM ? IPPROTO_TCP : type == SOCK_DGRAM ? IPPROTO_UDP : 0;
  return std::ranges::any_of(rules, [&](const Rule& rule) {
    return program.size() >= rule.program.size() &&
           strncasecmp(program.data(), rule.program.data(), rule.program.size()) == 0 && fits(rule.domain, domain) &&
           fits(rule.type, type) && fits(rule.protocol, protocol);
  });
}

}  // namespace rnicsim::rsockets::preload
