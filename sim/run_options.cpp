// SPDX-License-Identifier: Apache-2.0
#include "sim/run_options.h"

#include <fmt/format.h>
#include <wordexp.h>

#include "sim/config/config_error.h"
#include "sim/config/host_names.h"
#include "sim/config/host_record.h"
#include "sim/config/param_list.h"
#include "sim/os/program_check.h"

namespace rnicsim::sim {
namespace {

const char* explain(int wordexp_error) {
  switch (wordexp_error) {
    case WRDE_BADCHAR: return "a character has a meaning only in a shell; quote the character, or use sh -c '...'";
    case WRDE_BADVAL: return "a variable is not set";
    case WRDE_CMDSUB: return "command substitution needs a shell; use sh -c '...'";
    case WRDE_SYNTAX: return "a quote or bracket is not closed";
    default: return "the command cannot be split into words";
  }
}

HostCommand make_command(std::uint32_t host, std::vector<std::string> argv, const Topology& topology) {
  const auto found = find_program(argv.front());
  if (!found.problem.empty())
    throw ConfigError(fmt::format("{}: {}: {}", topology.interfaces[host].name, argv.front(), found.problem));
  return {host, std::move(argv), found.path};
}

std::set<std::uint32_t> host_set(const std::vector<std::string>& texts, const Topology& topology) {
  std::set<std::uint32_t> hosts;
  for (const auto& text : texts)
    for (const auto host : expand_hosts(text, topology)) hosts.insert(host);
  return hosts;
}

}  // namespace

std::vector<std::string> split_command(const std::string& text) {
  wordexp_t expanded{};
  const int error =
      text.find('\0') != text.npos ? WRDE_BADCHAR : wordexp(text.c_str(), &expanded, WRDE_NOCMD | WRDE_UNDEF);
  std::vector<std::string> words;
  if (error == 0) words.assign(expanded.we_wordv, expanded.we_wordv + expanded.we_wordc);
  if (error == 0 || error == WRDE_NOSPACE) wordfree(&expanded);
  if (error != 0) throw ConfigError(fmt::format("command '{}': {}", text, explain(error)));
  if (words.empty() || words.front().empty()) throw ConfigError(fmt::format("command '{}': there is no program", text));
  return words;
}

void resolve_commands(const RunArguments& arguments, const Topology& topology, RunOptions& options) {
  if (arguments.on.empty() == arguments.program.empty())
    throw ConfigError(arguments.on.empty() ? "no program: run -- PROG ARGS, or run --on HOST 'PROG ARGS'"
                                           : "a program after -- cannot be combined with --on");
  for (const auto& [hosts, text] : arguments.on) {
    const auto argv = split_command(text);
    for (const auto host : expand_hosts(hosts, topology)) {
      if (options.outside.contains(host))
        throw ConfigError(
            fmt::format("{} is not simulated (--wire): no program can run there", topology.interfaces[host].name));
      options.commands.push_back(make_command(host, argv, topology));
    }
  }
  if (!arguments.program.empty() && !options.outside.empty()) {
    // The program's peer is outside: run it on one host only, the first that is simulated.
    std::uint32_t host = 0;
    while (options.outside.contains(host)) ++host;
    options.commands.push_back(make_command(host, arguments.program, topology));
  } else if (!arguments.program.empty()) {
    if (topology.hosts() < 2) throw ConfigError("run -- PROG needs a topology of two hosts or more");
    auto argv = arguments.program;
    options.commands.push_back(make_command(0, argv, topology));
    argv.push_back(ipv4_text(topology.interfaces[0]));
    options.commands.push_back(make_command(1, std::move(argv), topology));
  }
  options.gdb_hosts = host_set(arguments.gdb, topology);
  options.valgrind_hosts = host_set(arguments.valgrind, topology);
  for (const auto host : options.gdb_hosts)
    if (options.valgrind_hosts.contains(host))
      throw ConfigError(fmt::format("--gdb and --valgrind both name {}", topology.interfaces[host].name));
}

}  // namespace rnicsim::sim
