// A TOML file of parameters as a flat list of settings, each knowing the line it stands on. Only this file's .cpp knows
// the TOML library.
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
  std::string text;   // as it would be given to --set; of a list: its elements, with a '+' between
  std::string where;  // "file:line"
};

// A table of [[hosts]], [[devices]], [[switches]], [[cables]] or [[fault]].
struct Record {
  std::map<std::string, Setting> fields;
  std::string where;
};

struct TomlFile {
  std::filesystem::path path;
  std::string base;  // the value of `base =`, or empty
  std::optional<Setting> host;  // `host =`, a host's profile
  std::vector<Setting> settings;
  std::vector<Record> hosts;
  std::vector<Record> devices;
  std::vector<Record> switches;
  std::vector<Record> cables;
  std::vector<Record> faults;
};

// The text of a file that may be a configuration; ConfigError: not readable, or nothing that toml++ could be given.
std::string read_configuration(const std::filesystem::path& path);
// Which files read_configuration() read while it lived, each once. One at a time.
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
// ConfigError: not readable, not TOML, and where.
TomlFile read_toml(const std::filesystem::path& path);

// Settings as TOML, for the resolved configuration: text in quotes, the rest bare.
// `file` has no base.
std::string write_toml(const TomlFile& file);

}  // namespace rnicsim::sim
