// A file that takes its name when it is whole: until then what was there stays.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace rnicsim::sim {

class StagedFile {
 public:
  // A link is followed; what is no file, such as a pipe, is written itself. ConfigError: it cannot be made.
  explicit StagedFile(const std::filesystem::path& path);
  // What is open already is written itself, and closed then. `name` is for messages.
  StagedFile(int descriptor, const std::string& name);
  ~StagedFile();
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;

  // All of it, as far as the disk. ConfigError: it cannot be written.
  void write(std::string_view content);
  // ConfigError: it cannot be renamed.
  void commit();

 private:
  [[noreturn]] void complain(int error) const;
  // Beside the file.
  std::string hidden_name(const std::string& ending) const;
  void give_name();

  std::filesystem::path given_, path_;
  std::filesystem::path part_;  // its name until it takes path_'s; empty: none
  int file_ = -1;
  bool is_staged_ = true;  // else path_ is written itself
};

}  // namespace rnicsim::sim
