// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/serving.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "model/abi/attach.h"
#include "model/abi/host_files.h"
#include "sim/attached/attach_server.h"
#include "sim/attached/program_launcher.h"
#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/os/local_socket.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

const char* given_name() { return ::getenv(abi::kSocketVariable); }

std::string prefix_of_names() { return fmt::format("rnicsim-serve-{}-", ::geteuid()); }

// Simulations of this user. Sockets with such a name that another user holds are left out.
std::vector<Serving> all_serving() {
  std::vector<Serving> found;
  for (const std::string& name : socket_names(prefix_of_names())) {
    const auto holder = AttachServer::holder(name);
    if (holder && is_own_user(*holder)) found.push_back({name, holder->pid});
  }
  return found;
}

}  // namespace

std::optional<Serving> find_serving() {
  if (const char* name = given_name()) {
    const auto holder = AttachServer::holder(name);
    if (!holder) return std::nullopt;
    if (!is_own_user(*holder))
      throw ConfigError(
          fmt::format("process {} of user {} listens at {}, not a simulation of yours: set another socket name by {}",
                      holder->pid, holder->uid, name, abi::kSocketVariable));
    return Serving{name, holder->pid};
  }
  const auto found = all_serving();
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  std::string text = fmt::format("several simulations of yours are running: choose the socket of one of them by {}",
                                 abi::kSocketVariable);
  for (const Serving& serving : found) text += fmt::format("\n  {} (pid {})", serving.socket_name, serving.pid);
  throw ConfigError(text);
}

Serving serving_with(const std::string& host) {
  const auto serving = find_serving();
  if (!serving) {
    const char* name = given_name();
    throw ConfigError(
        fmt::format("no simulation is running{}{}: start `rnicsim serve` first, and wait for its first line",
                    name != nullptr ? " at " : "", name != nullptr ? name : ""));
  }
  const bool is_name = !host.empty() && !host.starts_with('.') && host.find('/') == std::string::npos;
  std::error_code none;
  if (!is_name || !fs::is_directory(fmt::format("{}{}/{}", abi::kHostFilesPrefix, serving->socket_name, host), none))
    throw ConfigError(
        fmt::format("the simulation at {} (pid {}) has no host {}", serving->socket_name, serving->pid, host));
  return *serving;
}

std::string name_to_serve_at() {
  if (const char* name = given_name()) return name;
  return AttachServer::random_name(prefix_of_names());
}

void require_alone(const std::string& socket_name) {
  if (given_name() != nullptr) return;
  for (const Serving& serving : all_serving())
    if (serving.socket_name != socket_name)
      throw ConfigError(
          fmt::format("a simulation of yours already serves at {} (pid {}): end that simulation first, or set another "
                      "socket name by {}",
                      serving.socket_name, serving.pid, abi::kSocketVariable));
}

int print_environment(const std::string& host) {
  const Serving serving = serving_with(host);
  const ProgramLauncher launcher({serving.socket_name, library_folder(), {}});
  for (const std::string& variable : launcher.variables(host)) fmt::print("{}\n", export_line(variable));
  return 0;
}

}  // namespace rnicsim::sim
