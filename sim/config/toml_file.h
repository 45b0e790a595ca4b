// SPDX-License-Identifier: Apache-2.0
// A TOML file of parameters as a flat list of settings, each with its line. Only toml_file.cpp includes the TOML
// library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim {

struct Setting {
  enum class Type { text, number, boolean, list, other };
  std::string path;
  Type type;
  std::string text;   // as for --set; a list: its elements, separated by '+'
  std::string where;  // "file:line"
};

// A table of [[hosts]], [[devices]], [[switches]], [[cables]] or [[fault]].
struct Record {
  std::map<std::string, Setting> fields;
  std::string where;
};

struct TomlFile {
  std::filesystem::path path;
  std::string base;             // the value of `base =`, or empty
  std::optional<Setting> host;  // value of `host =`: a host's profile
  std::vector<Setting> settings;
  std::vector<Record> hosts;
  std::vector<Record> devices;
  std::vector<Record> switches;
  std::vector<Record> cables;
  std::vector<Record> faults;
};

// Text of a configuration file. ConfigError: the file cannot be read, or is unsuitable for toml++.
std::string read_configuration(const std::filesystem::path& path);
// Records the files that read_configuration() reads during this object's life, each once. At most one object at a time.
class FilesRead {
 public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;

  const std::vector<std::filesystem::path>& paths() const { return paths_; }

 private:
  friend std::string read_configuration(const std::filesystem::path& path);
  static inline FilesRead* current_ = nullptr;
  std::vector<std::filesystem::path> paths_;
};
// ConfigError: not readable, or not TOML, with the place.
TomlFile read_toml(const std::filesystem::path& path);

// Settings as TOML, for the resolved configuration: texts in quotes, other values bare. `file` must have no base.
std::string write_toml(const TomlFile& file);

}  // namespace rnicsim::sim
