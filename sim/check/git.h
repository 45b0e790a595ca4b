// The program git, asked about one folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rnicsim::sim::check {

struct GitAnswer {
  int status = 0;
  std::string out, err;

  // What it complains of, in a line.
  std::string complaint() const;
};

class Git {
 public:
  // `scratch`: a folder for what git prints.
  Git(std::filesystem::path folder, std::filesystem::path scratch)
      : folder_(std::move(folder)), scratch_(std::move(scratch)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // ConfigError: there is no git.
  GitAnswer ask(const std::vector<std::string>& words) const;
  // What it prints, without the last newline; ConfigError: `what`, and git's complaint.
  std::string must(const std::vector<std::string>& words, const std::string& what) const;

 private:
  const std::filesystem::path folder_, scratch_;
};

// A variable of a hook's environment names another repository than the folder's.
void forget_outer_repository();

}  // namespace rnicsim::sim::check
