// SPDX-License-Identifier: Apache-2.0
#include "sim/config/nic_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/config/host_profile.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

struct Profile {
  nic::NicParams nic;
  void describe(ParamVisitor& visit) { visit.group("nic", nic); }
};

// Other groups of sim/config/config.h that a NIC's profile may set; ignored here.
bool is_of_others(std::string_view path) {
  constexpr std::string_view kOthers[] = {"host.",  "link.",    "switch.",     "network.", "engine.",
                                          "nics.",  "ports.",   "host_types.", "links.",   "switch_types.",
                                          "hosts.", "devices.", "switches.",   "cables."};
  return std::ranges::any_of(kOthers, [&](std::string_view group) { return path.starts_with(group); });
}

}  // namespace

nic::NicParams load_nic_profile(const std::filesystem::path& path, std::span<const std::string> sets) {
  Profile profile;
  const ParamList params(profile);
  const auto no_base = [&](const std::string& base) -> std::optional<std::filesystem::path> {
    throw ConfigError(fmt::format("{}: its base '{}' is not in the same folder", path.string(), shown(base)));
  };
  if (!path.empty()) {
    const auto files = read_with_bases(path, no_base);
    if (const auto* file = with_host(files)) {
      const auto host = host_beside(*file);
      if (!host)
        throw ConfigError(fmt::format("{}: host: '{}' is not in {}", file->host->where, shown(file->host->text),
                                      (file->path.parent_path() / "../hosts").lexically_normal().string()));
      load_host_profile(*host).pcie.put_into(profile.nic.dma);
    }
    for (const auto& file : files)
      for (const auto& setting : file.settings)
        if (!is_of_others(setting.path) && !is_note(setting)) apply(params, setting);
  }
  for (const auto& set : sets) apply(params, setting_option(set));
  if (const auto contradiction = ParamList(profile).contradiction()) throw ConfigError(*contradiction);
  return profile.nic;
}

}  // namespace rnicsim::sim
