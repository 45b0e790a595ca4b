// SPDX-License-Identifier: Apache-2.0
#include "sim/check/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "sim/check/statistics.h"
#include "sim/check/values.h"
#include "sim/config/config_error.h"
#include "sim/results/json.h"
#include "sim/trace_file/loose_diff.h"
#include "sim/trace_file/trace_reader.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;
constexpr int kCannotBeRun = 2, kAtLimit = 124, kKilled = 128;

// The case cannot be compared: its outcome is `broken`.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

bool is_file(const fs::path& file) {
  std::error_code none;
  return fs::is_regular_file(file, none);
}

// Reading a pipe could block without end; a folder would read as an empty file.
void need_file(const fs::path& file) {
  std::error_code none;
  if (fs::is_fifo(file, none) || fs::is_directory(file, none))
    throw Broken(fmt::format("{}: not a file", file.string()));
}

std::optional<std::string> content_of(const fs::path& file) {
  if (!is_file(file)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  return in.is_open() && !in.bad() ? std::optional(std::move(content)) : std::nullopt;
}

// The last lines that a program printed, indented.
std::string last_words(const RunFiles& files) {
  constexpr std::size_t kMostLines = 12, kMostBytes = 4096;
  std::error_code none;
  const bool complains = fs::file_size(files.err, none) > 0 && !none;
  std::ifstream in(complains ? files.err : files.out, std::ios::binary | std::ios::ate);
  const auto size = std::max<std::streamoff>(0, in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - std::streamoff(kMostBytes)));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    std::ranges::replace_if(
        line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    lines.push_back(line);
  }
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  std::string text;
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

std::string seconds_text(std::chrono::milliseconds time) { return fmt::format("{} s", double(time.count()) / 1000); }

class Assessment {
 public:
  Assessment(const Case& of, const std::vector<CaseRun>& runs, const ValidatorOptions& options)
      : case_(of), runs_(runs), files_(runs.front().files), options_(options) {
    verdict_.name = of.name;
  }

  Verdict verdict() {
    for (const auto& run : runs_) verdict_.seconds += run.ended.seconds;
    const bool is_right = std::ranges::all_of(runs_, [&](const CaseRun& run) { return has_right_status(run); });
    try {
      for (const auto& run : runs_) check_end(run);
      if (is_right) collect_numbers();
      // Compare the trace of a failed run too: its first difference often shows the cause.
      std::error_code none;
      if (case_.is_statistical() && is_right)
        check_statistics(*case_.statistics);
      else if (case_.trace && case_.needs_trace() && (is_right || fs::exists(files_.trace, none)))
        check_trace(*case_.trace);
      if (case_.needs_results() && is_right) check_results();
    } catch (const std::runtime_error& error) {
      verdict_.outcome = Outcome::broken;
      verdict_.findings.insert(verdict_.findings.begin(), error.what());
      verdict_.replacements.clear();
    }
    if (!is_right) verdict_.replacements.clear();
    verdict_.is_mended = !verdict_.replacements.empty() && beyond_files_ == 0;
    return std::move(verdict_);
  }

 private:
  bool has_right_status(const CaseRun& run) const { return run.ended.status == case_.status; }

  void fail(std::string finding) {
    verdict_.outcome = Outcome::failed;
    verdict_.findings.push_back(std::move(finding));
  }

  void check_end(const CaseRun& run) {
    const auto& ended = run.ended;
    const auto of_seed = runs_.size() > 1 ? fmt::format("seed {}: ", *run.seed) : "";
    const auto broke = [&](const std::string& what) { throw Broken(of_seed + what + last_words(run.files)); };
    if (!ended.not_started.empty()) throw Broken(ended.not_started + "; --path names folders of programs");
    if (ended.too_late) broke(fmt::format("not ended after {} (limit)", seconds_text(case_.limit)));
    if (ended.signal != 0) broke(fmt::format("killed by signal {} ({})", ended.signal, strsignal(ended.signal)));
    if (has_right_status(run)) return;
    const bool ran_on = case_.simulated_limit && ended.status == kAtLimit;
    const auto what = ran_on ? fmt::format("not ended after {} of simulated time (simulated_limit)",
                                           to_string(*case_.simulated_limit))
                             : fmt::format("the run ended with status {}, not {}", ended.status, case_.status);
    if (ended.status == kCannotBeRun || ended.status > kKilled) broke(what);
    ++beyond_files_;
    fail(of_seed + what + last_words(run.files));
  }

  // Collects the numbers of the traces for statistics and for a history; for a history those of the results, too.
  void collect_numbers() {
    if (!case_.is_statistical() && !options_.keeps_numbers) return;
    for (const auto& run : runs_) {
      need_file(run.files.trace);
      TraceNumbers found;
      std::error_code none;
      if (fs::exists(run.files.trace, none)) found = trace_numbers(run.files.trace, "this run");
      // Without a trace the seed is known from the case only.
      const auto seed = run.seed.value_or(found.header.seed);
      if (case_.is_statistical()) {
        if (!fs::exists(run.files.trace, none)) throw Broken(fmt::format("seed {}: the run wrote no trace", seed));
        statistics_.seeds[seed] = found.numbers;
        if (&run == &runs_.front()) statistics_.header = std::move(found.header);
      }
      if (!options_.keeps_numbers) continue;
      add_results(run.files, found.numbers);
      verdict_.numbers.emplace_back(seed, std::move(found.numbers));
    }
  }

  // Adds rates, latencies, and the values that properties name.
  void add_results(const RunFiles& files, Numbers& numbers) const {
    const auto text = content_of(files.results);
    const auto results = text ? parse_results(*text) : std::nullopt;
    if (!results) return;
    const auto is_asked = [&](const std::string& name) {
      return std::ranges::any_of(case_.properties, [&](const auto& each) { return matches(each.value, name); });
    };
    for (const auto& [name, value] : values_of(*results))
      if (value.is_number() && (is_asked(name) || is_statistic(name))) numbers[name] = value.get<double>();
  }

  void check_statistics(const ExpectedStatistics& rules) {
    need_file(rules.file);
    const auto text = content_of(rules.file);
    const auto renew = [&](std::string what) {
      verdict_.replacements.push_back({rules.file, statistics_json(statistics_).dump(2) + '\n'});
      fail(std::move(what));
    };
    if (!text) {
      if (!options_.updating) throw Broken(missing(rules.file, is_file(rules.file) ? EACCES : ENOENT));
      return renew("new statistics");
    }
    const auto expected = parse_statistics(*text);
    const auto seeds = [](const Statistics& of) {
      std::vector<std::uint64_t> found;
      for (const auto& [seed, numbers] : of.seeds) found.push_back(seed);
      return found;
    };
    if (!expected || seeds(*expected) != seeds(statistics_)) {
      const auto why = fmt::format("{}: {}", rules.file.string(),
                                   expected ? "statistics of other seeds than the case's; --update makes new statistics"
                                            : "not statistics written by --update");
      if (!options_.updating) throw Broken(why);
      return renew(why);
    }
    const auto difference = compare_statistics(rules, *expected, statistics_);
    if (difference.lines.empty()) return note(difference);
    auto header = expected->header;
    header.seed = statistics_.header.seed;  // the seeds are compared by statistics, not here
    const TraceDifference headers{false, {}, {}, compare_headers(header, statistics_.header), {}};
    verdict_.difference = Difference{rules.file.string(), "this run", {}, cause_of(headers, statistics_.header.hosts)};
    renew(text_of(difference) + to_text(verdict_.difference->cause));
  }

  void note(const StatisticalDifference& difference) {
    if (difference.undecided == 0) return;
    verdict_.notes.push_back(fmt::format("{} of {} numbers are undecided: use more seeds or a greater tolerance",
                                         difference.undecided, difference.compared));
  }

  static std::string text_of(const StatisticalDifference& difference) {
    constexpr std::size_t kMostLines = 8;
    std::string text = difference.lines.front() + '\n';
    for (std::size_t i = 1; i < std::min(kMostLines, difference.lines.size()); ++i)
      text += fmt::format("  {}\n", difference.lines[i]);
    return text + fmt::format("  {} of {} numbers differ\n", difference.lines.size(), difference.compared);
  }

  TraceDifference compare(TraceReader& a, TraceReader& b, const ExpectedTrace& trace) const {
    if (case_.level == Level::order) return compare_order(a, b);
    return trace.times.exact() ? compare_traces(a, b) : compare_traces_loosely(a, b, trace.times);
  }

  void check_trace(const ExpectedTrace& trace) {
    need_file(files_.trace);
    need_file(trace.file);
    std::ifstream fresh(files_.trace, std::ios::binary);
    if (!fresh) throw Broken("the run wrote no trace");
    TraceReader b(fresh, "this run");
    std::ifstream expected(trace.file, std::ios::binary);
    if (!expected) {
      const auto error = errno;
      if (!options_.updating) throw Broken(missing(trace.file, error));
      return renew(trace.file, files_.trace, "a new trace");
    }
    std::string what;
    try {
      TraceReader a(expected, trace.file.string());
      for (const auto kind : trace.left_out) {
        a.leave_out(kind);
        b.leave_out(kind);
      }
      const auto difference = compare(a, b, trace);
      std::ranges::copy(a.unknown(), std::back_inserter(verdict_.notes));
      if (difference.equal) return;
      verdict_.difference =
          Difference{trace.file.string(), "this run", difference.first, cause_of(difference, b.header().hosts)};
      what = fmt::format("{}  A: {}\n  B: this run\n", difference.events, trace.file.string());
      what += headers_text(verdict_.difference->cause);
      what += to_text(verdict_.difference->cause);
    } catch (const TraceError& error) {
      if (!options_.updating) throw;
      what = error.what();
    }
    renew(trace.file, files_.trace, std::move(what));
  }

  static std::string headers_text(const Cause& cause) {
    std::string text;
    for (const auto* part : {&cause.likely, &cause.elsewhere})
      for (const auto& each : *part) text += fmt::format("  {}: {} | {}\n", each.name, each.a, each.b);
    if (!cause.one_sided.empty())
      text += fmt::format("  and {} parameters that are only in one of the versions\n", cause.one_sided.size());
    return text.empty() ? text : "  the headers differ (A | B):\n" + text;
  }

  static std::string missing(const fs::path& file, int error) {
    return fmt::format("{}: {}; --update creates this file", file.string(), std::strerror(error));
  }

  void renew(const fs::path& file, const fs::path& fresh, std::string what) {
    auto content = content_of(fresh);
    if (!content) throw Broken(fmt::format("{}: cannot be read", fresh.string()));
    verdict_.replacements.push_back({file, std::move(*content)});
    fail(std::move(what));
  }

  void check_results() {
    const auto text = content_of(files_.results);
    if (!text) throw Broken("the run wrote no results");
    const auto results = parse_results(*text);
    if (!results) throw Broken("the results of the run are not a JSON object");
    if (case_.results) compare_with(*case_.results, *results);
    const auto values = values_of(*results);
    for (const auto& property : case_.properties) {
      std::optional<std::string> said;
      try {
        said = violation(property, values);
      } catch (const ConfigError& error) {
        throw Broken(fmt::format("{}: {}", case_.file.string(), error.what()));
      }
      if (!said) continue;
      ++beyond_files_;
      fail(*said);
    }
  }

  void compare_with(const ExpectedResults& rules, const Json& results) {
    const auto replace = [&](std::string what, const Json* old) {
      verdict_.replacements.push_back({rules.file, kept_results(results, old).dump(2) + '\n'});
      fail(std::move(what));
    };
    need_file(rules.file);
    const auto text = content_of(rules.file);
    if (!text) {
      if (!options_.updating) throw Broken(missing(rules.file, is_file(rules.file) ? EACCES : ENOENT));
      return replace("new results", nullptr);
    }
    const auto expected = parse_results(*text);
    if (!expected) {
      if (!options_.updating) throw Broken(fmt::format("{}: not a JSON object", rules.file.string()));
      return replace(fmt::format("{}: not a JSON object", rules.file.string()), nullptr);
    }
    const auto difference = compare_results(rules, *expected, results);
    if (difference.count == 0) return;
    replace(difference.count == 1
                ? difference.first
                : fmt::format("{}\n  and {} more of {}", difference.first, difference.count - 1, rules.file.string()),
            &*expected);
  }

  const Case& case_;
  const std::vector<CaseRun>& runs_;
  const RunFiles& files_;  // files of the first run
  const ValidatorOptions options_;
  Statistics statistics_;
  Verdict verdict_;
  int beyond_files_ = 0;  // number of findings that --update cannot mend
};

}  // namespace

std::string Verdict::headline() const {
  return findings.empty() ? "" : findings.front().substr(0, findings.front().find('\n'));
}

Verdict broken(const std::string& name, const std::string& why) {
  Verdict verdict;
  verdict.name = name;
  verdict.outcome = Outcome::broken;
  verdict.findings.push_back(why);
  return verdict;
}

Verdict validate(const Case& of, const std::vector<CaseRun>& runs, const ValidatorOptions& options) {
  return Assessment(of, runs, options).verdict();
}

}  // namespace rnicsim::sim::check
