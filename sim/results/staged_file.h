// SPDX-License-Identifier: Apache-2.0
// A file that gets its name when it is complete. Until then an old file of that name stays.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rnicsim::sim {

class StagedFile {
 public:
  // A symbolic link is followed. A path that is no regular file, such as a pipe, is written directly. ConfigError: the
  // file cannot be created.
  explicit StagedFile(const std::filesystem::path& path);
  // An open descriptor is written directly, and closed afterwards. `name` is used in messages.
  StagedFile(int descriptor, const std::string& name);
  ~StagedFile();
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;

  // Writes all of `content`, and syncs a staged file to disk. ConfigError: the file cannot be written.
  void write(std::string_view content);
  // Renames the file. ConfigError: the file cannot be renamed.
  void commit();

 private:
  [[noreturn]] void complain(int error) const;
  // Name of a hidden file in the same folder.
  std::string hidden_name(const std::string& ending) const;
  void give_name();

  std::filesystem::path given_, path_;
  std::filesystem::path part_;  // temporary name until the rename; empty: the file has no name yet
  int file_ = -1;
  bool is_staged_ = true;  // false: path_ is written directly
};

}  // namespace rnicsim::sim
