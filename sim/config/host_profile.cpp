// SPDX-License-Identifier: Apache-2.0
#include "sim/config/host_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "model/nic/pcie/dma_params.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

struct HostCost {
  const char* name;
  const char* meaning;
  std::optional<Duration> RootComplex::*value;
  Duration nic::DmaParams::*of_nic;
};
constexpr std::array<HostCost, 5> kHostCosts = {{
    {"read_latency", "PCIe read of 64 B by a device on an idle link; replaces nic.pcie.read_latency",
     &RootComplex::read_latency, &nic::DmaParams::read_latency},
    {"read_queueing", "wait of a read behind writes; replaces nic.pcie.read_queueing", &RootComplex::read_queueing,
     &nic::DmaParams::read_queueing},
    {"line_read", "time between two reads of one line of memory; replaces nic.pcie.line_read", &RootComplex::line_read,
     &nic::DmaParams::line_read},
    {"write_latency", "posted write until visible in memory; replaces nic.pcie.write_latency",
     &RootComplex::write_latency, &nic::DmaParams::write_latency},
    {"ordered_write", "cost of strict ordering; replaces nic.pcie.ordered_write", &RootComplex::ordered_write,
     &nic::DmaParams::ordered_write},
}};
constexpr std::string_view kOfNic = "nic.pcie.";

bool is_hosts(std::string_view path) {
  return path.starts_with("host.") || std::ranges::any_of(kHostCosts, [&](const HostCost& cost) {
           return path.starts_with(kOfNic) && path.substr(kOfNic.size()) == cost.name;
         });
}

// Gives the parameters the paths that a host's file uses.
struct HostFile {
  struct Nic {
    RootComplex& pcie;
    void describe(ParamVisitor& visit) { visit.group("pcie", pcie); }
  };
  host::HostParams& host;
  Nic nic;
  void describe(ParamVisitor& visit) {
    visit.group("host", host);
    visit.group("nic", nic);
  }
};

bool is_file_name(std::string_view name) { return name.find('/') != name.npos || name.ends_with(".toml"); }

}  // namespace

void RootComplex::open(const std::vector<Setting>& settings, std::string_view prefix) {
  for (const auto& cost : kHostCosts)
    for (const auto& setting : settings)
      if (setting.path.starts_with(prefix) && setting.path.substr(prefix.size()) == cost.name && !(this->*cost.value))
        this->*cost.value = nic::DmaParams{}.*cost.of_nic;
}

void RootComplex::put_into(nic::DmaParams& dma) const {
  for (const auto& cost : kHostCosts)
    if (this->*cost.value) dma.*cost.of_nic = *(this->*cost.value);
}

void RootComplex::describe(ParamVisitor& visit) {
  for (const auto& cost : kHostCosts)
    if (auto& value = this->*cost.value) visit.param(cost.name, *value, cost.meaning, {0, 1e9});
}

std::vector<Setting> host_settings(const fs::path& path) {
  const auto no_base = [&](const std::string& base) -> std::optional<fs::path> {
    throw ConfigError(fmt::format("{}: its base '{}' is not in the same folder", path.string(), shown(base)));
  };
  std::vector<Setting> settings;
  for (auto& file : read_with_bases(path, no_base)) {
    if (file.host) throw ConfigError(fmt::format("{}: a host profile names no host profile", file.host->where));
    for (const auto* records : {&file.hosts, &file.devices, &file.switches, &file.cables, &file.faults})
      if (!records->empty())
        throw ConfigError(fmt::format("{}: a host profile has only parameters", records->front().where));
    for (auto& setting : file.settings) {
      if (!is_hosts(setting.path))
        throw ConfigError(
            fmt::format("{}: {}: a host profile may have [host] and, in [nic.pcie], read_latency, read_queueing, "
                        "line_read, write_latency and ordered_write",
                        setting.where, shown(setting.path)));
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

HostProfile load_host_profile(const fs::path& path) {
  HostProfile profile;
  const auto settings = host_settings(path);
  profile.pcie.open(settings, kOfNic);
  HostFile paths{profile.params, {profile.pcie}};
  const ParamList params(paths);
  for (const auto& setting : settings) apply(params, setting);
  return profile;
}

const TomlFile* with_host(const std::vector<TomlFile>& files) {
  const auto names_one = [](const TomlFile& file) { return file.host.has_value(); };
  const auto last = std::find_if(files.rbegin(), files.rend(), names_one);
  return last != files.rend() ? &*last : nullptr;
}

std::optional<fs::path> host_beside(const TomlFile& file) {
  const auto folder = file.path.parent_path();
  const auto& name = file.host->text;
  const auto path = is_file_name(name) ? folder / name : folder / ".." / "hosts" / (name + ".toml");
  std::error_code none;
  return fs::exists(path, none) ? std::optional(path.lexically_normal()) : std::nullopt;
}

}  // namespace rnicsim::sim
