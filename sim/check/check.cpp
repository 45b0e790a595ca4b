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
#include "sim/check/children.h"
#include "sim/check/report.h"
#include "sim/check/verdict.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/json_output.h"
#include "sim/progress_line.h"
#include "sim/staged_file.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;

// Where the runs leave their files: --out, or a folder that goes when we do.
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

  // Of one case, with nothing of an earlier run.
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

void add(std::vector<std::string>& words, const char* option, const std::vector<std::string>& values) {
  for (const auto& value : values) words.insert(words.end(), {option, value});
}

void replace_all(std::string& text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::vector<std::string> command_of(const Case& of, const RunFiles& files) {
  if (const auto* simulator = std::get_if<Simulator>(&of.run)) {
    auto words = simulator->words;
    for (auto& word : words) {
      replace_all(word, kTraceWord, files.trace.string());
      replace_all(word, kResultsWord, files.results.string());
    }
    return words;
  }
  // Even if another program takes our place in the meantime.
  std::vector<std::string> words{"/proc/self/exe"};
  const auto* workload = std::get_if<Workload>(&of.run);
  if (workload)
    words.insert(words.end(), {"bench", workload->name});
  else
    words.emplace_back("run");
  if (of.nic) words.insert(words.end(), {"--nic", *of.nic});
  if (of.host) words.insert(words.end(), {"--host-profile", *of.host});
  if (of.topology) words.insert(words.end(), {"--topology", *of.topology});
  if (of.engine) words.insert(words.end(), {"--engine", *of.engine});
  if (of.seed) words.insert(words.end(), {"--seed", std::to_string(*of.seed)});
  if (of.simulated_limit) words.insert(words.end(), {"--limit", fmt::format("{}ps", of.simulated_limit->ps)});
  add(words, "--set", of.sets);
  add(words, "--fault", of.faults);
  if (of.trace) words.insert(words.end(), {"--record", files.trace.string()});
  if (of.needs_results()) words.insert(words.end(), {"--json", files.results.string()});
  if (workload) return words;
  const auto& programs = std::get<Programs>(of.run);
  for (const auto& [host, command] : programs.on) words.insert(words.end(), {"--on", host, command});
  if (!programs.words.empty()) words.emplace_back("--");
  words.insert(words.end(), programs.words.begin(), programs.words.end());
  return words;
}

// The files of the cases asked for.
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

// Before PATH, for every child.
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
    std::vector<RunFiles> left;
    for (const auto& entry : readable_) {
      const auto& of = entry.second;
      left.emplace_back(work_.of(of.name));
      children.push_back({command_of(of, left.back()), of.folder, left.back().out, left.back().err, of.limit});
    }
    std::size_t done = 0;
    run_children(children, options_.jobs, [&](std::size_t child, const Ended& ended) {
      const auto& [number, of] = readable_[child];
      settle(number, judge(of, ended, left[child], options_.update));
      progress_line::show(fmt::format("{} of {} cases done", ++done, children.size()));
    });
    progress_line::erase();
    std::vector<Verdict> all;
    for (auto& verdict : verdicts_) all.push_back(std::move(*verdict));
    return all;
  }

 private:
  void read_all() {
    for (std::size_t i = 0; i < files_.size(); ++i) try {
        readable_.emplace_back(i, read_case(fs::absolute(files_[i].file).lexically_normal(), files_[i].name));
      } catch (const ConfigError& error) {
        settle(i, broken(files_[i].name, error.what()));
      }
  }

  // They are told in the order of their names, whoever ends first.
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
  std::vector<std::pair<std::size_t, Case>> readable_;
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

// All of them, or none.
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

}  // namespace

int run_check(const CheckOptions& options) {
  if (options.update && !options.yes && isatty(STDIN_FILENO) == 0)
    throw ConfigError("--update asks before it writes, and there is no terminal; --yes says yes");
  JsonOutput json(options.json);
  std::optional<StagedFile> junit;
  if (!options.junit.empty()) junit.emplace(options.junit);
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
  if (junit) {
    junit->write(junit_xml(options.folder.string(), verdicts));
    junit->commit();
  }
  json.write(check_json(options.folder.string(), verdicts));
  const auto counts = tally(verdicts);
  return counts.broken == counts.all() ? 2 : counts.passed == counts.all() ? 0 : 1;
}

}  // namespace rnicsim::sim::check
