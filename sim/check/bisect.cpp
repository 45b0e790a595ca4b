// SPDX-License-Identifier: Apache-2.0
#include "sim/check/bisect.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/check/children.h"
#include "sim/check/git.h"
#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/results/json.h"
#include "sim/results/json_output.h"
#include "sim/results/staged_file.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;

// Time for a build and all cases. It is long, because each case has a limit of its own.
constexpr auto kCommitLimit = std::chrono::hours(24 * 7);
constexpr std::size_t kShortHash = 10;

std::string file_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  const auto before = text.rfind('\n');
  return before == text.npos ? text : text.substr(before + 1);
}

std::string line_with(std::string_view word, const std::string& text) {
  const auto at = text.find(word);
  return at == text.npos ? last_line(text) : text.substr(at, text.find('\n', at) - at);
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "rnicsim-bisect-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw ConfigError(fmt::format("{}: {}", name, std::strerror(errno)));
    path_ = fs::canonical(name);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// A Git worktree for the tested commits. The user's working tree is not changed.
class Worktree {
 public:
  Worktree(const Git& repository, const fs::path& scratch, const std::string& commit)
      : repository_(repository), git_(scratch / "tree", scratch) {
    repository_.must({"worktree", "add", "--quiet", "--detach", git_.folder().string(), commit}, "git worktree");
  }
  ~Worktree() {
    try {
      repository_.ask({"worktree", "remove", "--force", git_.folder().string()});
    } catch (const std::exception&) {
      // A second signal. The folder is still removed; `git worktree prune` removes Git's entry.
    }
  }
  Worktree(const Worktree&) = delete;
  Worktree& operator=(const Worktree&) = delete;

  const Git& git() const { return git_; }
  // Discards changes that a build made in files of the repository: with them Git may refuse the next checkout.
  void clean() const { git_.must({"reset", "--quiet", "--hard"}, "git reset"); }
  void go_to(const std::string& commit) const {
    clean();
    git_.must({"checkout", "--quiet", "--detach", commit}, "git checkout");
  }

 private:
  const Git& repository_;
  const Git git_;
};

enum class CommitState { good, bad, unknown };

struct TestedCommit {
  CommitState state = CommitState::unknown;
  std::string text;               // output of `check`, or the reason why the commit is skipped
  std::string json, junit, html;  // of a bad commit: the contents of these files of `check`
};

// Files of --json, --junit and --html. They are opened before the first commit is tested, to report errors early.
class BisectFiles {
 public:
  explicit BisectFiles(const CheckOptions& options) : json_(options.json) {
    if (!options.junit.empty()) junit_.emplace(options.junit);
    if (!options.html.empty()) html_.emplace(options.html);
  }
  void write(const Json& json, const TestedCommit& bad) {
    json_.write(json);
    put(junit_, bad.junit);
    put(html_, bad.html);
  }

 private:
  static void put(std::optional<StagedFile>& file, const std::string& text) {
    if (!file) return;
    file->write(text);
    file->commit();
  }

  JsonOutput json_;
  std::optional<StagedFile> junit_, html_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

const char* word_of(CommitState state) {
  return state == CommitState::good ? "good" : state == CommitState::bad ? "bad" : "skip";
}

class Bisection {
 public:
  explicit Bisection(const CheckOptions& options)
      : options_(options), folder_(existing(options.folder)), repository_(folder_, scratch_.path()), files_(options) {
    const auto& range = options.bisect;
    const auto dots = range.find("..");
    const auto good = range.substr(0, dots), bad = dots == range.npos ? "" : range.substr(dots + 2);
    if (good.empty() || bad.empty() || bad.starts_with('.') || range.starts_with('-') || bad.starts_with('-'))
      throw ConfigError(fmt::format("--bisect: '{}' is not GOOD..BAD", shown(range)));
    top_ = repository_.must({"rev-parse", "--show-toplevel"}, fmt::format("--bisect: {}", shown(folder_.string())));
    good_ = commit(good);
    bad_ = commit(bad);
    if (repository_.ask({"merge-base", "--is-ancestor", good_, bad_}).status != 0)
      throw ConfigError(fmt::format("--bisect: {} is not among the commits before {}", shown(good), shown(bad)));
    if (good_ == bad_) throw ConfigError("--bisect: GOOD and BAD are the same commit");
  }

  int run() {
    tree_.emplace(repository_, scratch_.path(), bad_);
    expect(bad_, CommitState::bad, "BAD");
    tree_->go_to(good_);
    expect(good_, CommitState::good, "GOOD");
    tree_->clean();
    tree_->git().must({"bisect", "start", bad_, good_}, "git bisect");
    for (;;) {
      const auto log = tree_->git().must({"bisect", "log"}, "git bisect");
      if (const auto first = marked(log, "# first bad commit: [")) return tell_first(*first);
      if (log.find("# only skipped commits left") != log.npos) return tell_candidates(log);
      const auto here = tree_->git().must({"rev-parse", "HEAD"}, "git rev-parse");
      const auto tested_commit = test_commit(here);
      tell(here, tested_commit);
      tree_->clean();
      // Git's status does not tell an error from the case that only skipped commits are left; the log does.
      const auto answer = tree_->git().ask({"bisect", word_of(tested_commit.state)});
      if (answer.status != 0 && tree_->git().must({"bisect", "log"}, "git bisect") == log)
        throw ConfigError(fmt::format("git bisect: {}", answer.complaint()));
    }
  }

 private:
  static fs::path existing(const fs::path& folder) {
    std::error_code error;
    auto path = fs::canonical(folder, error);
    if (error) throw ConfigError(fmt::format("{}: {}", shown(folder.string()), error.message()));
    return path;
  }

  std::string commit(const std::string& name) const {
    const auto answer = repository_.ask({"rev-parse", "--verify", "--quiet", name + "^{commit}"});
    if (answer.status != 0) throw ConfigError(fmt::format("--bisect: there is no commit '{}'", shown(name)));
    return answer.out;
  }

  // Maps a path in the repository to the worktree, because the file differs from commit to commit.
  fs::path in_tree(const fs::path& path) const {
    const auto whole = fs::weakly_canonical(path);
    const auto relative = whole.lexically_relative(fs::weakly_canonical(top_));
    if (relative.empty() || *relative.begin() == "..") return whole;
    return (tree_->git().folder() / relative).lexically_normal();
  }

  const TestedCommit& test_commit(const std::string& commit) {
    auto& tested_commit = tested_[commit];
    if (!options_.build.empty()) {
      const auto status = run_child({"sh", "-c", options_.build}, "build");
      if (status != 0) {
        tested_commit.text = fmt::format("the build has exit status {}: {}", status,
                                         last_line(file_text(scratch_.path() / "build.err")));
        return tested_commit;
      }
    }
    const auto results = scratch_.path() / "results.json";
    std::error_code none;
    fs::remove(results, none);
    run_child(check_words(results), "check");
    tested_commit.text = file_text(scratch_.path() / "check.out");
    const auto json = Json::parse_if_valid(file_text(results));
    if (!json) {
      tested_commit.text = last_line(file_text(scratch_.path() / "check.err"));
      return tested_commit;
    }
    if (json->at("failed").get<std::size_t>() != 0)
      keep_bad(tested_commit);
    else if (json->at("broken").get<std::size_t>() == 0)
      tested_commit.state = CommitState::good;
    else
      tested_commit.text = line_with("BROKEN", tested_commit.text);
    return tested_commit;
  }

  void keep_bad(TestedCommit& tested_commit) const {
    tested_commit.state = CommitState::bad;
    // The user's paths in the place of those of the worktree.
    const auto of_user = [this](std::string text) {
      return replaced(std::move(text), tree_->git().folder().string(), top_);
    };
    const auto text = [&](const char* name) { return of_user(file_text(scratch_.path() / name)); };
    tested_commit.text = of_user(std::move(tested_commit.text));
    tested_commit.json = text("results.json");
    if (!options_.junit.empty()) tested_commit.junit = text("junit.xml");
    if (!options_.html.empty()) tested_commit.html = text("page.html");
  }

  std::vector<std::string> check_words(const fs::path& results) const {
    std::vector<std::string> words{own_image().string(), "check", in_tree(folder_).string()};
    words.insert(words.end(), options_.cases.begin(), options_.cases.end());
    const auto add = [&](const char* option, const std::string& value) {
      words.emplace_back(option);
      words.push_back(value);
    };
    add("--jobs", fmt::format("{}", options_.jobs));
    if (options_.level) add("--level", to_string(*options_.level));
    for (const auto& path : options_.path) add("--path", in_tree(path).string());
    add("--json", results.string());
    if (!options_.junit.empty()) add("--junit", (scratch_.path() / "junit.xml").string());
    if (!options_.html.empty()) add("--html", (scratch_.path() / "page.html").string());
    return words;
  }

  // Returns the exit status; 127: the program could not be started.
  int run_child(const std::vector<std::string>& words, const std::string& name) const {
    int status = 0;
    const auto file = [&](const char* ending) { return scratch_.path() / (name + ending); };
    run_children({{words, tree_->git().folder(), file(".out"), file(".err"), kCommitLimit}}, 1,
                 [&](std::size_t, const Ended& ended) {
                   status = !ended.not_started.empty() ? 127 : ended.signal != 0 ? 128 + ended.signal : ended.status;
                 });
    return status;
  }

  void expect(const std::string& commit, CommitState expected, const char* name) {
    const auto& tested_commit = test_commit(commit);
    if (tested_commit.state == expected) return tell(commit, tested_commit);
    if (tested_commit.state == CommitState::unknown)
      throw ConfigError(
          fmt::format("--bisect: {} {} cannot be tested: {}", name, described(commit), last_line(tested_commit.text)));
    throw ConfigError(fmt::format("--bisect: {} {} is {}: {}", name, described(commit), word_of(tested_commit.state),
                                  last_line(tested_commit.text)));
  }

  std::string described(const std::string& commit) const {
    return repository_.must({"log", "-1", "--format=%h (%s)", commit}, "git log");
  }

  std::string subject_of(const std::string& commit) const {
    return repository_.must({"log", "-1", "--format=%s", commit}, "git log");
  }

  void tell(const std::string& commit, const TestedCommit& tested_commit) {
    told_.push_back(commit);
    fmt::print("{}  {:<4}  {}\n", commit.substr(0, kShortHash), word_of(tested_commit.state), subject_of(commit));
    if (tested_commit.state == CommitState::unknown) fmt::print("  {}\n", last_line(tested_commit.text));
    std::fflush(stdout);
  }

  static std::optional<std::string> marked(const std::string& log, std::string_view mark) {
    const auto at = log.find(mark);
    if (at == log.npos) return std::nullopt;
    const auto begin = at + mark.size();
    return log.substr(begin, log.find(']', begin) - begin);
  }

  int tell_first(const std::string& commit) {
    fmt::print("the first bad commit is {} {}\n", commit, subject_of(commit));
    fmt::print("{}", tested_.at(commit).text);
    write_files(commit, {commit});
    return 0;
  }

  int tell_candidates(const std::string& log) {
    fmt::print("the first bad commit is one of these: the commits between cannot be tested\n");
    constexpr std::string_view kCandidate = "# possible first bad commit: [";
    std::vector<std::string> candidates;
    for (auto at = log.find(kCandidate); at != log.npos; at = log.find(kCandidate, at + 1)) {
      candidates.push_back(*marked(log.substr(at), kCandidate));
      fmt::print("  {}\n", described(candidates.back()));
    }
    write_files(bad_, candidates);
    return 1;
  }

  // The results of `check` at a bad commit, and the commits.
  void write_files(const std::string& shown_commit, const std::vector<std::string>& candidates) {
    const auto& bad = tested_.at(shown_commit);
    auto json = Json::parse_if_valid(bad.json).value();
    json["folder"] = options_.folder.string();
    Json bisect{{"commit", shown_commit}, {"candidates", Json::array()}, {"tested", Json::array()}};
    for (const auto& commit : candidates)
      bisect["candidates"].push_back(Json{{"commit", commit}, {"subject", subject_of(commit)}});
    for (const auto& commit : told_) {
      const auto& tested_commit = tested_.at(commit);
      Json of{{"commit", commit}, {"subject", subject_of(commit)}, {"state", word_of(tested_commit.state)}};
      if (tested_commit.state == CommitState::unknown) of["reason"] = last_line(tested_commit.text);
      bisect["tested"].push_back(std::move(of));
    }
    json["bisect"] = std::move(bisect);
    files_.write(json, bad);
  }

  const CheckOptions& options_;
  const ScratchFolder scratch_;
  const fs::path folder_;
  const Git repository_;
  BisectFiles files_;
  std::string top_, good_, bad_;
  std::map<std::string, TestedCommit> tested_;  // by commit
  std::vector<std::string> told_;               // tested commits, in the order of the tests
  std::optional<Worktree> tree_;
};

}  // namespace

int run_bisect(const CheckOptions& options) {
  forget_outer_repository();
  try {
    return Bisection(options).run();
  } catch (const Interrupted& interruption) {
    fmt::print(stderr, "rnicsim: ended by signal {}\n", interruption.signal);
    return 128 + interruption.signal;
  }
}

}  // namespace rnicsim::sim::check
