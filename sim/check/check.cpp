// SPDX-License-Identifier: Apache-2.0
#include "sim/check/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string_view>

#include "sim/check/case.h"
#include "sim/check/case_command.h"
#include "sim/check/children.h"
#include "sim/check/html.h"
#include "sim/check/report.h"
#include "sim/check/verdict.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/history/database.h"
#include "sim/os/progress_line.h"
#include "sim/results/json_output.h"
#include "sim/results/staged_file.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;

// Folder for the runs' files: --out, or a temporary folder that the destructor removes.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& kept) : is_kept_(!kept.empty()) {
    if (is_kept_) {
      path_ = fs::absolute(kept);
      make(path_);
      return;
    }
    std::string name = (fs::temp_directory_path() / "rnicsim-check-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw ConfigError(fmt::format("{}: {}", name, std::strerror(errno)));
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code none;
    if (!is_kept_) fs::remove_all(path_, none);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  // Folder of one case, without files of an earlier run.
  fs::path of(const std::string& name) const {
    const auto folder = path_ / name;
    make(folder);
    const RunFiles files(folder);
    std::error_code none;
    for (const auto& file : {files.trace, files.results, files.out, files.err}) fs::remove(file, none);
    return folder;
  }

 private:
  static void make(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw ConfigError(fmt::format("{}: {}", folder.string(), error.message()));
  }

  fs::path path_;
  bool is_kept_;
};

// Files of the selected cases.
std::vector<CaseFile> chosen_files(const CheckOptions& options) {
  auto found = find_cases(options.folder);
  if (options.cases.empty()) return found;
  std::vector<std::string> names;
  for (const auto& file : found) names.push_back(file.name);
  for (const auto& name : options.cases) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const auto meant = nearest_name(name, names);
    throw ConfigError(fmt::format("{}: no case is called '{}'{}", options.folder.string(), shown(name),
                                  meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }
  std::erase_if(
      found, [&](const CaseFile& file) { return std::ranges::find(options.cases, file.name) == options.cases.end(); });
  return found;
}

// Puts the folders before PATH, for all children.
void extend_path(const std::vector<std::string>& folders) {
  std::string path;
  for (const auto& folder : folders) path += fs::absolute(folder).string() + ':';
  const char* old = std::getenv("PATH");
  if (!path.empty()) setenv("PATH", (path + (old ? old : "/usr/bin:/bin")).c_str(), 1);
}

class Check {
 public:
  explicit Check(const CheckOptions& options)
      : options_(options), files_(chosen_files(options)), verdicts_(files_.size()), work_(options.out) {}

  std::vector<Verdict> run() {
    read_all();
    std::vector<Child> children;
    std::vector<std::pair<std::size_t, std::size_t>> run_of;  // by child: index in readable_, and index of the run
    for (std::size_t number = 0; number < readable_.size(); ++number) {
      auto& entry = readable_[number];
      for (const auto& seed : entry.of.run_seeds()) {
        const bool is_first = entry.runs.empty();
        const RunFiles files(work_.of(is_first ? entry.of.name : fmt::format("{}/seed-{}", entry.of.name, *seed)));
        entry.runs.push_back({seed, files, {}});
        run_of.emplace_back(number, entry.runs.size() - 1);
        children.push_back({command_of(entry.of, seed, files, !options_.history.empty()), entry.of.folder, files.out,
                            files.err, entry.of.limit});
      }
    }
    std::size_t done = 0;
    run_children(children, options_.jobs, [&](std::size_t child, const Ended& ended) {
      auto& entry = readable_[run_of[child].first];
      entry.runs[run_of[child].second].ended = ended;
      if (++entry.ended == entry.runs.size())
        settle(entry.number, validate(entry.of, entry.runs,
                                      {.updating = options_.update, .keeps_numbers = !options_.history.empty()}));
      progress_line::show(fmt::format("{} of {} runs done", ++done, children.size()));
    });
    progress_line::erase();
    std::vector<Verdict> all;
    for (auto& verdict : verdicts_) all.push_back(std::move(*verdict));
    return all;
  }

 private:
  struct Entry {
    std::size_t number;  // index in files_
    Case of;
    std::vector<CaseRun> runs{};
    std::size_t ended = 0;
  };

  void read_all() {
    for (std::size_t i = 0; i < files_.size(); ++i) try {
        auto of = read_case(fs::absolute(files_[i].file).lexically_normal(), files_[i].name);
        if (options_.level) set_level(of, *options_.level);
        readable_.push_back({i, std::move(of)});
      } catch (const ConfigError& error) {
        settle(i, broken(files_[i].name, error.what()));
      }
  }

  // Verdicts are printed in the order of the cases' names, independent of the order in which runs end.
  void settle(std::size_t number, Verdict verdict) {
    verdicts_[number] = std::move(verdict);
    for (; told_ < verdicts_.size() && verdicts_[told_]; ++told_) {
      progress_line::erase();
      fmt::print("{}", verdict_text(*verdicts_[told_]));
      std::fflush(stdout);
    }
  }

  const CheckOptions& options_;
  const std::vector<CaseFile> files_;
  std::vector<std::optional<Verdict>> verdicts_;
  std::vector<Entry> readable_;
  std::size_t told_ = 0;
  const WorkFolder work_;
};

bool agreed(std::size_t files) {
  fmt::print("{} file{} would change. Write {}? [y/N] ", files, files == 1 ? "" : "s", files == 1 ? "it" : "them");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

// Writes all replacements or none.
void write_replacements(std::vector<Verdict>& verdicts, bool yes) {
  std::size_t count = 0;
  for (const auto& verdict : verdicts) count += verdict.replacements.size();
  if (count == 0 || (!yes && !agreed(count))) return;
  std::vector<StagedFile> staged;
  for (const auto& verdict : verdicts)
    for (const auto& replacement : verdict.replacements) {
      staged.emplace_back(replacement.file);
      staged.back().write(replacement.content);
    }
  for (auto& file : staged) file.commit();
  for (auto& verdict : verdicts) {
    for (const auto& replacement : verdict.replacements) fmt::print("written: {}\n", replacement.file.string());
    if (verdict.is_mended) verdict.outcome = Outcome::passed;
  }
}

// An output file that is opened before the runs, to report errors early, and written at the end.
class Page {
 public:
  explicit Page(const std::string& path) {
    if (!path.empty()) file_.emplace(path);
  }
  template <class Text>
  void write(Text text) {
    if (!file_) return;
    file_->write(text());
    file_->commit();
  }

 private:
  std::optional<StagedFile> file_;
};

std::vector<history::CaseResult> results_of(const std::vector<Verdict>& verdicts) {
  std::vector<history::CaseResult> results;
  for (const auto& verdict : verdicts)
    results.push_back({verdict.name, name_of(verdict.outcome), verdict.headline(), verdict.numbers});
  return results;
}

int status_of(const Tally& counts) { return counts.broken == counts.all() ? 2 : counts.passed == counts.all() ? 0 : 1; }

}  // namespace

int run_check(const CheckOptions& options) {
  if (options.update && !options.yes && isatty(STDIN_FILENO) == 0)
    throw ConfigError(
        "--update asks before writing, but standard input is no terminal; --yes writes without a question");
  JsonOutput json(options.json);
  Page junit(options.junit), html(options.html);
  std::optional<history::Database> history;
  if (!options.history.empty()) history.emplace(options.history, history::Database::Access::add);
  extend_path(options.path);
  std::vector<Verdict> verdicts;
  try {
    verdicts = Check(options).run();
  } catch (const Interrupted& interruption) {
    progress_line::erase();
    fmt::print(stderr, "rnicsim: ended by signal {}\n", interruption.signal);
    return 128 + interruption.signal;
  }
  fmt::print("{}\n", tally_text(tally(verdicts)));
  if (options.update) write_replacements(verdicts, options.yes);
  junit.write([&] { return junit_xml(options.folder.string(), verdicts); });
  html.write([&] { return html_page(options.folder.string(), verdicts); });
  json.write(check_json(options.folder.string(), verdicts));
  if (history) history->add(options.label, results_of(verdicts));
  return status_of(tally(verdicts));
}

}  // namespace rnicsim::sim::check
