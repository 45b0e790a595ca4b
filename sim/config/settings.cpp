// SPDX-License-Identifier: Apache-2.0
#include "sim/config/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void unknown(const ParamList& params, const std::string& where, std::string_view path) {
  if (params.is_group(path))
    throw ConfigError(fmt::format("{}: {} is a group of parameters, not one", where, shown(path)));
  const auto meant = params.nearest(path);
  throw ConfigError(fmt::format("{}: there is no parameter {}{}", where, shown(path),
                                meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

}  // namespace

Setting setting_option(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw ConfigError(fmt::format("--set {}: key=value is needed, such as nic.pcie.read_latency=600ns", shown(text)));
  const std::string where = fmt::format("--set {}", shown(text.substr(0, equals)));
  return {std::string(text.substr(0, equals)), Setting::Type::text, std::string(text.substr(equals + 1)), where};
}

void apply(const ParamList& params, const Setting& setting) {
  const bool from_option = setting.where.starts_with("--set ");
  const std::string prefix = from_option ? setting.where : fmt::format("{}: {}", setting.where, shown(setting.path));
  const ParamEntry* entry = params.find(setting.path);
  if (!entry) unknown(params, setting.where, setting.path);
  const std::string kind = entry->kind();
  const bool fits = from_option || (setting.type == Setting::Type::number && entry->is_number()) ||
                    (setting.type == Setting::Type::boolean && kind == "true or false") ||
                    (setting.type == Setting::Type::text && !entry->is_number() && kind != "true or false");
  if (!fits) {
    const bool lacks_unit =
        setting.type == Setting::Type::number && (kind == "time" || kind == "bytes" || kind == "rate");
    throw ConfigError(fmt::format(
        "{}: {}; now it is \"{}\"", prefix,
        lacks_unit ? fmt::format("{} has no unit", setting.text) : fmt::format("not a value of the kind: {}", kind),
        entry->value_text()));
  }
  if (const auto wrong = entry->assign(setting.text)) throw ConfigError(fmt::format("{}: {}", prefix, shown(*wrong)));
}

bool is_note(const Setting& setting) {
  if (setting.path != kExtrapolated) return false;
  if (setting.type == Setting::Type::boolean) return true;
  throw ConfigError(fmt::format("{}: {}: true or false is needed", setting.where, kExtrapolated));
}

std::vector<TomlFile> read_with_bases(const fs::path& first, const FindBase& find) {
  std::vector<TomlFile> files;
  std::vector<fs::path> chain;
  std::error_code none;
  for (fs::path path = first;;) {
    const fs::path canonical = fs::weakly_canonical(path, none);
    if (std::ranges::find(chain, canonical) != chain.end())
      throw ConfigError(fmt::format("{}: the profile is its own base", path.string()));
    chain.push_back(canonical);
    const auto& base = files.emplace_back(read_toml(path)).base;
    if (base.empty()) break;
    const fs::path beside = path.parent_path() / (base.ends_with(".toml") ? base : base + ".toml");
    const auto next = fs::exists(beside, none) ? std::optional(beside) : find(base);
    if (!next) break;
    path = *next;
  }
  std::ranges::reverse(files);
  return files;
}

}  // namespace rnicsim::sim
