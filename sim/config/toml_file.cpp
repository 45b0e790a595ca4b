// SPDX-License-Identifier: Apache-2.0
#include "sim/config/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = 4 << 20;  // bytes; enough for thousands of hosts

std::string read_text(const fs::path& path) {
  std::error_code error;
  // Reading a pipe or a device could block.
  if (!fs::is_regular_file(path, error)) throw ConfigError(fmt::format("{}: not a file", path.string()));
  if (fs::file_size(path, error) > kLargestFile)
    throw ConfigError(fmt::format("{}: larger than {} bytes: not a configuration", path.string(), kLargestFile));
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw ConfigError(fmt::format("{}: cannot be read", path.string()));
  if (text.find('\0') != text.npos) throw ConfigError(fmt::format("{}: not a text file", path.string()));
  return text;
}

// Limits the nesting: each dot of a key nests one table, and toml++ recurses into nested tables.
void check_depth(const fs::path& path, std::string_view text) {
  constexpr int kMostDots = 32;
  int line = 1, dots = 0;
  char before = 0;
  for (const char c : text) {
    if (c == '.' && before != '.' && ++dots > kMostDots)
      throw ConfigError(
          fmt::format("{}:{}: more than {} dots in a line: not a configuration", path.string(), line, kMostDots));
    if (c == '\n') ++line, dots = 0;
    before = c;
  }
}

class Flattener {
 public:
  explicit Flattener(std::string file) : file_(std::move(file)) {}

  TomlFile flatten(const toml::table& root) {
    TomlFile result;
    for (const auto& [key, node] : root) {
      if (key == "base" && node.is_string()) {
        result.base = node.as_string()->get();
      } else if (key == "host" && node.is_string()) {
        result.host = setting(std::string(key.str()), node);
      } else if (key == "hosts" && node.is_array_of_tables()) {
        result.hosts = records(*node.as_array());
      } else if (key == "devices" && node.is_array_of_tables()) {
        result.devices = records(*node.as_array());
      } else if (key == "switches" && node.is_array_of_tables()) {
        result.switches = records(*node.as_array());
      } else if (key == "cables" && node.is_array_of_tables()) {
        result.cables = records(*node.as_array());
      } else if (key == "fault") {
        if (!node.is_array_of_tables())
          throw ConfigError(fmt::format("{}: fault: a rule is a table [[fault]]", where(node)));
        result.faults = records(*node.as_array());
      } else {
        collect(std::string(key.str()), node, result.settings);
      }
    }
    return result;
  }

 private:
  std::string where(const toml::node& node) const { return fmt::format("{}:{}", file_, node.source().begin.line); }

  void collect(const std::string& path, const toml::node& node, std::vector<Setting>& out) const {
    if (const auto* table = node.as_table()) {
      for (const auto& [key, child] : *table) collect(path + '.' + std::string(key.str()), child, out);
      // Keep an empty table, so that an unknown name is reported.
      if (table->empty()) out.push_back({path, Setting::Type::other, "{}", where(node)});
      return;
    }
    out.push_back(setting(path, node));
  }

  Setting setting(const std::string& path, const toml::node& node) const {
    using Type = Setting::Type;
    if (const auto* text = node.as_string()) return {path, Type::text, text->get(), where(node)};
    if (const auto* number = node.as_integer())
      return {path, Type::number, fmt::format("{}", number->get()), where(node)};
    if (const auto* number = node.as_floating_point())
      return {path, Type::number, fmt::format("{}", number->get()), where(node)};
    if (const auto* flag = node.as_boolean()) return {path, Type::boolean, flag->get() ? "true" : "false", where(node)};
    if (const auto* list = node.as_array(); list && !list->empty()) return list_setting(path, *list);
    return {path, Type::other, "", where(node)};
  }

  Setting list_setting(const std::string& path, const toml::array& list) const {
    using Type = Setting::Type;
    Setting result{path, Type::list, "", where(list)};
    for (const auto& node : list) {
      const auto element = setting(path, node);
      if (element.type == Type::list || element.type == Type::other) return {path, Type::other, "", where(list)};
      result.text += (result.text.empty() ? "" : "+") + element.text;
    }
    return result;
  }

  std::vector<Record> records(const toml::array& array) const {
    std::vector<Record> result;
    for (const auto& node : array) {
      Record record{{}, where(node)};
      for (const auto& [key, child] : *node.as_table())
        record.fields.emplace(key.str(), setting(std::string(key.str()), child));
      result.push_back(std::move(record));
    }
    return result;
  }

  std::string file_;
};

void insert(toml::table& table, std::string_view key, const Setting& setting) {
  if (setting.type == Setting::Type::boolean) {
    table.insert(key, setting.text == "true");
  } else if (setting.type == Setting::Type::number) {
    const auto node = toml::parse("v = " + setting.text);
    table.insert(key, *node.get("v"));
  } else {
    table.insert(key, setting.text);
  }
}

toml::array to_array(const std::vector<Record>& records) {
  toml::array array;
  for (const auto& record : records) {
    toml::table table;
    for (const auto& [key, field] : record.fields) insert(table, key, field);
    array.push_back(std::move(table));
  }
  return array;
}

}  // namespace

FilesRead::FilesRead() { current_ = this; }

FilesRead::~FilesRead() { current_ = nullptr; }

std::string read_configuration(const fs::path& path) {
  std::string text = read_text(path);
  if (auto* read = FilesRead::current_; read != nullptr && std::ranges::find(read->paths_, path) == read->paths_.end())
    read->paths_.push_back(path);
  check_depth(path, text);
  return text;
}

TomlFile read_toml(const fs::path& path) {
  const std::string text = read_configuration(path);
  try {
    auto file = Flattener(path.string()).flatten(toml::parse(text, path.string()));
    file.path = path;
    return file;
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", path.string(), error.source().begin.line, shown(error.description())));
  }
}

std::string write_toml(const TomlFile& file) {
  toml::table root;
  for (const auto& setting : file.settings) {
    toml::table* table = &root;
    std::string_view path = setting.path;
    for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
      table = table->insert(path.substr(0, dot), toml::table{}).first->second.as_table();
      path.remove_prefix(dot + 1);
    }
    insert(*table, path, setting);
  }
  const auto put = [&](const char* key, const std::vector<Record>& records) {
    if (!records.empty()) root.insert(key, to_array(records));
  };
  put("hosts", file.hosts);
  put("devices", file.devices);
  put("switches", file.switches);
  put("cables", file.cables);
  put("fault", file.faults);
  std::ostringstream out;
  out << root << '\n';
  return out.str();
}

}  // namespace rnicsim::sim
