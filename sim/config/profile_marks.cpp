#include "sim/config/profile_marks.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "sim/config/data_files.h"
#include "sim/config/host_profile.h"
#include "sim/config/settings.h"

namespace rnicsim::sim {
namespace {

// From behind the # on; quotes may hold one that begins no comment.
std::string_view comment_of(std::string_view line) {
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(i + 1);
  }
  return {};
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

std::optional<Source> source_of(std::string_view line) {
  auto comment = comment_of(line);
  comment.remove_prefix(std::min(comment.find_first_not_of(' '), comment.size()));
  if (comment.empty() || (comment.size() > 1 && comment[1] != ':')) return std::nullopt;
  const auto mark = std::ranges::find(kSourceMarks, comment.front());
  if (mark == kSourceMarks.end()) return std::nullopt;
  return static_cast<Source>(mark - kSourceMarks.begin());
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
      last.insert_or_assign(setting.path, MarkedSetting{setting, source_of(lines.at(line - 1))});
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
    // One that is chosen wins (docs/topology.md, Hosts).
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
    if (setting.source) ++counts[static_cast<std::size_t>(*setting.source)];
  return counts;
}

}  // namespace rnicsim::sim
