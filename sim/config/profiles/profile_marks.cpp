// SPDX-License-Identifier: Apache-2.0
#include "sim/config/profiles/profile_marks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <ranges>
#include <utility>

#include "sim/config/data_files.h"
#include "sim/config/host_profile.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

// Text after the '#' of a comment; a '#' in quotes begins no comment.
std::string_view comment_of(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(i + 1);
  }
  return {};
}

std::string_view without_spaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(" \r") + 1);
}

// Parses a number at the beginning of `text` and removes it.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  // Cut at "..": in "40..50" from_chars would take the first dot as a decimal point.
  const auto whole = text.substr(0, text.find(".."));
  const auto [end, error] = std::from_chars(whole.data(), whole.data() + whole.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Parses "40..50 ns", "0.5..2 x", "1024..1280 by 4".
std::optional<Bounds> bounds_of(std::string_view text) {
  const auto low = take_number(text);
  if (!low || !text.starts_with("..")) return std::nullopt;
  text.remove_prefix(2);
  const auto high = take_number(text);
  if (!high || *high <= *low) return std::nullopt;
  constexpr std::string_view kBy = " by ";
  const auto by = std::min(text.find(kBy), text.size());
  Bounds bounds{*low, *high, std::string(without_spaces(text.substr(0, by)))};
  if (by == text.size()) return bounds;
  text.remove_prefix(by + kBy.size());
  const auto step = take_number(text);
  if (!step || *step <= 0 || !text.empty() || bounds.unit == kTimesTheValue) return std::nullopt;
  bounds.step = *step;
  return bounds;
}

std::vector<TomlFile> files_of(DataKind kind, const std::filesystem::path& path) {
  return read_with_bases(path, [=](const std::string& base) { return std::optional(find_data(kind, base)); });
}

void put_over(std::vector<MarkedSetting>& all, const std::vector<TomlFile>& files) {
  for (auto& own : marked_settings(files)) {
    std::erase_if(all, [&](const MarkedSetting& other) { return other.setting.path == own.setting.path; });
    all.push_back(std::move(own));
  }
}

}  // namespace

std::optional<Mark> mark_of(std::string_view line) {
  const auto comment = without_spaces(comment_of(line));
  const auto colon = std::min(comment.find(':'), comment.size());
  const auto head = without_spaces(comment.substr(0, colon));
  if (head.empty() || (head.size() > 1 && head[1] != ' ')) return std::nullopt;
  const auto letter = std::ranges::find(kSourceMarks, head.front());
  if (letter == kSourceMarks.end()) return std::nullopt;
  Mark mark{static_cast<Source>(letter - kSourceMarks.begin())};
  mark.text = without_spaces(comment.substr(std::min(colon + 1, comment.size())));
  const auto bounds = without_spaces(head.substr(1));
  if (bounds.empty()) return mark;
  if (mark.source != Source::estimated) return std::nullopt;
  mark.is_fixed = bounds == "fixed";
  if (mark.is_fixed) return mark;
  mark.bounds = bounds_of(bounds);
  return mark.bounds ? std::optional(mark) : std::nullopt;
}

std::vector<MarkedSetting> marked_settings(const std::vector<TomlFile>& files) {
  std::map<std::string, MarkedSetting> last;
  for (const auto& file : files) {
    const auto text = read_configuration(file.path);
    std::vector<std::string_view> lines;
    for (const auto line : std::views::split(std::string_view(text), '\n'))
      lines.emplace_back(line.begin(), line.end());
    for (const auto& setting : file.settings) {
      if (setting.path == kExtrapolated) continue;
      const auto line = std::stoul(setting.where.substr(setting.where.rfind(':') + 1));
      last.insert_or_assign(setting.path, MarkedSetting{setting, mark_of(lines.at(line - 1))});
    }
  }
  std::vector<MarkedSetting> all;
  for (auto& [path, setting] : last) all.push_back(std::move(setting));
  return all;
}

std::vector<MarkedSetting> marked_settings(const std::string& nic, const std::string& host) {
  const auto of_nic = files_of(DataKind::nic, find_data(DataKind::nic, nic));
  std::vector<MarkedSetting> all;
  if (!host.empty()) {
    // A chosen host overrides the NIC's file (docs/topology.md, Hosts).
    put_over(all, of_nic);
    put_over(all, files_of(DataKind::host, find_data(DataKind::host, host)));
    return all;
  }
  if (const auto* file = with_host(of_nic)) {
    const auto beside = host_beside(*file);
    put_over(all, files_of(DataKind::host, beside ? *beside : find_data(DataKind::host, file->host->text)));
  }
  put_over(all, of_nic);
  return all;
}

std::array<std::size_t, kSourceMarks.size()> count_marks(const std::vector<MarkedSetting>& settings) {
  std::array<std::size_t, kSourceMarks.size()> counts{};
  for (const auto& setting : settings)
    if (setting.mark) ++counts[static_cast<std::size_t>(setting.mark->source)];
  return counts;
}

}  // namespace rnicsim::sim
