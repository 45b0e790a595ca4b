// SPDX-License-Identifier: Apache-2.0
// Runs the program git in one folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rnicsim::sim::check {

struct GitAnswer {
  int status = 0;
  std::string out, err;

  // Git's error message, in one line.
  std::string complaint() const;
};

class Git {
 public:
  // `scratch`: a folder for git's output.
  Git(std::filesystem::path folder, std::filesystem::path scratch)
      : folder_(std::move(folder)), scratch_(std::move(scratch)) {}

  const std::filesystem::path& folder() const { return folder_; }
  // ConfigError: git is not installed.
  GitAnswer ask(const std::vector<std::string>& words) const;
  // Returns git's output without the last newline. ConfigError: git failed; the text has `what` and git's message.
  std::string must(const std::vector<std::string>& words, const std::string& what) const;

 private:
  const std::filesystem::path folder_, scratch_;
};

// Unsets the variables that Git sets for a hook: they name the hook's repository and not the folder's.
void forget_outer_repository();

}  // namespace rnicsim::sim::check
