// SPDX-License-Identifier: Apache-2.0
#include "sim/check/git.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "sim/check/children.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::check {
namespace {

// Long, for the checkout of a large repository.
constexpr auto kGitLimit = std::chrono::hours(1);

std::string printed_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::string GitAnswer::complaint() const {
  std::string_view line = err;
  line = line.substr(0, line.find('\n'));
  for (const std::string_view prefix : {"fatal: ", "error: "})
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  return line.empty() ? fmt::format("exit status {}", status) : std::string(line);
}

GitAnswer Git::ask(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"git"};
  all.insert(all.end(), words.begin(), words.end());
  const auto out = scratch_ / "git.out", err = scratch_ / "git.err";
  GitAnswer answer;
  std::string why;
  run_children({{all, folder_, out, err, kGitLimit}}, 1, [&](std::size_t, const Ended& ended) {
    why = ended.not_started;
    answer.status = ended.signal != 0 ? 128 + ended.signal : ended.status;
  });
  if (!why.empty()) throw ConfigError(why);
  answer.out = printed_text(out);
  answer.err = printed_text(err);
  return answer;
}

std::string Git::must(const std::vector<std::string>& words, const std::string& what) const {
  const auto answer = ask(words);
  if (answer.status != 0) throw ConfigError(fmt::format("{}: {}", what, answer.complaint()));
  return answer.out;
}

void forget_outer_repository() {
  for (const char* name : {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
                           "GIT_PREFIX", "GIT_NAMESPACE"})
    unsetenv(name);
}

}  // namespace rnicsim::sim::check
