// SPDX-License-Identifier: Apache-2.0
#include "sim/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>

#include "model/base/plugin.h"
#include "model/base/policy.h"
#include "model/base/ports/queue_discipline.h"
#include "model/fabric/path_choice.h"
#include "model/roce/congestion.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr const char* kVariable = "RNICSIM_PLUGINS";

// Last registered policy of each kind that a plugin may register.
auto last_policies() {
  return std::tuple(PolicyEntry<roce::CongestionControl>::first(), PolicyEntry<QueueDiscipline>::first(),
                    PolicyEntry<fabric::PathChoice>::first());
}

void load(const std::string& name) {
  // dlopen() would search a name without a slash in the system's folders.
  const auto path = name.find('/') == std::string::npos ? "./" + name : name;
  const auto before = last_policies();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw ConfigError(fmt::format("{}: {}", kVariable, ::dlerror()));
  const auto* interface = static_cast<const std::uint32_t*>(::dlsym(library, "rnicsim_plugin_interface"));
  if (interface == nullptr) throw ConfigError(fmt::format("{}: {} is not a plugin of rnicsim", kVariable, name));
  if (*interface != kPluginInterface)
    throw ConfigError(fmt::format("{}: {} was built with the headers of another version of rnicsim", kVariable, name));
  if (before == last_policies())
    throw ConfigError(
        fmt::format("{}: {} registers no congestion control, no queue discipline and no path choice", kVariable, name));
}

}  // namespace

void load_plugins() {
  const char* names = std::getenv(kVariable);
  if (names == nullptr) return;
  for (const auto part : std::views::split(std::string_view(names), ':'))
    if (const std::string name(part.begin(), part.end()); !name.empty()) load(name);
}

}  // namespace rnicsim::sim
