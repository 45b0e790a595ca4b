// SPDX-License-Identifier: Apache-2.0
// Reads case.toml.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/bench/table_reader.h"
#include "sim/check/case.h"
#include "sim/check/quantities.h"
#include "sim/config/config_error.h"
#include "sim/config/engine_params.h"
#include "sim/config/param_list.h"
#include "sim/config/toml_file.h"
#include "sim/run_options.h"

namespace rnicsim::sim::check {
namespace {

namespace fs = std::filesystem;
using bench::TableReader;

constexpr Duration kShortestLimit{1'000'000'000}, kLongestLimit{86'400'000'000'000'000};
// Limit of wall time for a run that also has a limit of simulated time. The limit only ends runs whose simulated time
// stands still, so it is long enough for a busy machine.
constexpr std::chrono::minutes kGuard{10};

std::vector<std::string> texts(TableReader& reader, std::string_view key) {
  std::vector<std::string> result;
  const auto* node = reader.find(key);
  if (!node) return result;
  const auto* list = node->as_array();
  if (!list) reader.refuse(key, "a list of texts");
  for (const auto& entry : *list) {
    if (!entry.is_string()) reader.refuse(key, "a list of texts");
    result.push_back(entry.as_string()->get());
  }
  return result;
}

// Calls `take` for each table of the list at `key`, with the table's path.
template <class Take>
void each_table(TableReader& reader, std::string_view key, Take take) {
  const auto* node = reader.find(key);
  if (!node) return;
  const auto* list = node->as_array();
  if (!list || list->empty() || !list->is_array_of_tables()) reader.refuse(key, "a list of tables");
  std::size_t number = 0;
  for (const auto& entry : *list) {
    TableReader table(*entry.as_table(), reader.file(), reader.path_of(fmt::format("{}[{}]", key, number++)));
    take(table);
    table.finish();
  }
}

template <class Take>
void one_table(TableReader& reader, std::string_view key, Take take) {
  const auto* node = reader.find(key);
  if (!node) return;
  if (!node->is_table()) reader.refuse(key, "a table");
  TableReader table(*node->as_table(), reader.file(), reader.path_of(key));
  take(table);
  table.finish();
}

std::string needed_text(TableReader& reader, std::string_view key) {
  std::string text;
  reader.need(key);
  reader.text(key, text);
  return text;
}

std::vector<std::string> words_of(const TableReader& reader, std::string_view key, const std::string& text) try {
  return split_command(text);
} catch (const ConfigError& error) {
  reader.complain(key, error.what());
}

void read_properties(TableReader& reader, Case& read) {
  using Relation = Property::Relation;
  constexpr std::pair<const char*, Relation> kRelations[]{{"equals", Relation::equals},
                                                          {"below", Relation::below},
                                                          {"at_most", Relation::at_most},
                                                          {"above", Relation::above},
                                                          {"at_least", Relation::at_least}};
  each_table(reader, "property", [&](TableReader& table) {
    const auto value = needed_text(table, "value");
    const auto margin = read_margin(table, "within", value);
    const auto before = read.properties.size();
    for (const auto& [key, relation] : kRelations) {
      if (!table.has(key)) continue;
      const auto operand = read_operand(table, key, value);
      read.properties.push_back({value, relation, operand, margin.value_or(Margin{}), table.path_of(key)});
    }
    if (read.properties.size() == before)
      table.complain("value", "equals, below, at_most, above or at_least is needed");
    if (margin && !table.has("equals")) table.complain("within", "needs equals");
  });
}

TimeTolerance read_times(TableReader& reader) {
  TimeTolerance tolerance;
  const auto* node = reader.find("times");
  if (!node) return tolerance;
  constexpr auto kNeeded = "a time such as \"20 ns\", a share such as \"1 %\", or a list of both";
  const auto take = [&](const toml::node& entry) {
    const auto* text = entry.as_string();
    const auto time = text ? parse_duration(text->get()) : std::nullopt;
    const auto share = text ? parse_share(text->get()) : std::nullopt;
    if (time)
      tolerance.absolute = *time;
    else if (share)
      tolerance.relative = *share;
    else
      reader.refuse("times", kNeeded);
  };
  if (const auto* list = node->as_array()) {
    if (list->size() > 2) reader.refuse("times", kNeeded);
    for (const auto& entry : *list) take(entry);
  } else {
    take(*node);
  }
  return tolerance;
}

EventKind kind_called(const TableReader& reader, const std::string& name) {
  std::vector<std::string> names;
  for (auto kind = std::size_t(EventKind::end) + 1; kind < std::size_t(EventKind::count); ++kind) {
    names.emplace_back(info(EventKind(kind)).name);
    if (names.back() == name) return EventKind(kind);
  }
  const auto meant = nearest_name(name, names);
  reader.complain("leave_out", fmt::format("no event is called '{}'{}", shown(name),
                                           meant ? fmt::format("; did you mean {}?", *meant) : ""));
}

std::vector<MayDiffer> read_exceptions(TableReader& table) {
  std::vector<MayDiffer> exceptions;
  each_table(table, "may_differ", [&](TableReader& entry) {
    const auto value = needed_text(entry, "value");
    exceptions.push_back({value, read_margin(entry, "by", value)});
  });
  return exceptions;
}

std::vector<std::uint64_t> read_seeds(TableReader& table) {
  const auto* list = table.need("seeds").as_array();
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; list && i < list->size(); ++i)
    seeds.push_back(table.checked_number(*list->get(i), "seeds", 0, std::uint64_t(INT64_MAX)));
  auto sorted = seeds;
  std::ranges::sort(sorted);
  if (seeds.size() < 2 || std::ranges::adjacent_find(sorted) != sorted.end())
    table.refuse("seeds", "a list of two or more different seeds");
  return seeds;
}

void read_statistics(TableReader& reader, Case& read) {
  one_table(reader, "statistics", [&](TableReader& table) {
    ExpectedStatistics statistics;
    statistics.file = read.folder / needed_text(table, "file");
    statistics.seeds = read_seeds(table);
    statistics.values = texts(table, "values");
    table.need("tolerance");
    const auto tolerance = parse_share(needed_text(table, "tolerance"));
    if (!tolerance) table.refuse("tolerance", "a share such as \"2 %\"");
    statistics.tolerance = {0, *tolerance};
    if (table.has("confidence")) {
      const auto confidence = parse_share(needed_text(table, "confidence"));
      if (!confidence || *confidence < 0.5 || *confidence >= 1)
        table.refuse("confidence", "a share from \"50 %\" up to below \"100 %\"");
      statistics.confidence = *confidence;
    }
    statistics.may_differ = read_exceptions(table);
    if (read.seed && *read.seed != statistics.seeds[0])
      table.complain("seeds", "the first seed must be the seed of the case");
    read.seed = statistics.seeds[0];
    read.statistics = std::move(statistics);
  });
}

void read_level(TableReader& reader, Case& read) {
  reader.choice("compare", read.level, kLevels);
  if (read.level == Level::statistical && !read.statistics)
    reader.complain("compare", "\"statistical\" needs a table [statistics]");
  if (reader.has("compare") && read.level != Level::statistical && !read.trace)
    reader.complain("compare", fmt::format("\"{}\" needs a table [trace]", to_string(read.level)));
  if (read.level == Level::order && !read.trace->times.exact())
    reader.complain("trace.times", "cannot be combined with compare = \"order\", which ignores times");
  if (read.statistics && !read.trace && read.level != Level::statistical)
    reader.complain("statistics", "this key needs compare = \"statistical\" or a [trace]");
}

void read_expectations(TableReader& reader, Case& read) {
  one_table(reader, "trace", [&](TableReader& table) {
    ExpectedTrace trace;
    trace.file = read.folder / needed_text(table, "file");
    trace.times = read_times(table);
    for (const auto& name : texts(table, "leave_out")) trace.left_out.push_back(kind_called(table, name));
    read.trace = std::move(trace);
  });
  one_table(reader, "results", [&](TableReader& table) {
    ExpectedResults results;
    results.file = read.folder / needed_text(table, "file");
    results.may_differ = read_exceptions(table);
    read.results = std::move(results);
  });
  read_statistics(reader, read);
  read_level(reader, read);
  read_properties(reader, read);
}

void read_way(TableReader& reader, Case& read) {
  constexpr const char* kWays[]{"run", "on", "workload", "simulator"};
  const auto given = std::ranges::count_if(kWays, [&](const char* key) { return reader.has(key); });
  if (given != 1)
    throw ConfigError(fmt::format("{}: one of run, on, workload and simulator is needed, not {}", reader.file(),
                                  given == 0 ? "none" : "several"));
  if (reader.has("run")) {
    read.run = Programs{words_of(reader, "run", needed_text(reader, "run")), {}};
  } else if (reader.has("on")) {
    Programs programs;
    each_table(reader, "on", [&](TableReader& entry) {
      const auto host = needed_text(entry, "host");
      const auto command = needed_text(entry, "command");
      words_of(entry, "command", command);
      programs.on.emplace_back(host, command);
    });
    read.run = std::move(programs);
  } else if (reader.has("workload")) {
    read.run = Workload{needed_text(reader, "workload")};
  } else {
    read.run = Simulator{words_of(reader, "simulator", needed_text(reader, "simulator"))};
  }
}

void read_configuration_of(TableReader& reader, Case& read) {
  const auto text = [&](const char* key, std::optional<std::string>& value) {
    if (reader.has(key)) value = needed_text(reader, key);
  };
  text("nic", read.nic);
  text("host", read.host);
  text("topology", read.topology);
  text("engine", read.engine);
  if (read.engine && std::ranges::find(kEngineKinds, *read.engine) == std::end(kEngineKinds))
    reader.refuse("engine", "\"model\", \"rtl\" or \"lockstep\"");
  reader.number("seed", read.seed, 0, std::uint64_t(INT64_MAX));
  read.sets = texts(reader, "set");
  read.faults = texts(reader, "fault");
}

// Refuses keys that an external simulator cannot receive, and expectations that its words cannot produce.
void check_simulator(const TableReader& reader, const Simulator& simulator, const Case& read) {
  for (const char* key : {"nic", "host", "topology", "engine", "seed", "set", "fault", "simulated_limit"})
    if (reader.has(key)) reader.complain(key, "cannot be combined with simulator, which is a whole command line");
  const auto tells = [&](const char* file) {
    return std::ranges::any_of(simulator.words, [&](const auto& word) { return word.find(file) != word.npos; });
  };
  if ((read.trace || read.statistics) && !tells(kTraceWord))
    reader.refuse("simulator", "@trace, the file for its trace,");
  if (read.needs_results() && !tells(kResultsWord)) reader.refuse("simulator", "@results, the file for its results,");
  if (read.statistics && !tells(kSeedWord)) reader.refuse("simulator", "@seed, each seed of its statistics,");
}

Case read_root(const toml::table& root, const fs::path& file, const std::string& name) {
  TableReader reader(root, file.string(), "");
  std::uint64_t schema = 0;
  reader.need("schema");
  reader.number("schema", schema, 1, std::uint64_t(INT64_MAX));
  if (schema != kCaseSchema)
    reader.complain("schema",
                    fmt::format("version {} is not supported; this rnicsim reads version {}", schema, kCaseSchema));
  Case read;
  read.name = name;
  read.file = file;
  read.folder = file.parent_path();
  reader.text("title", read.title);
  read_way(reader, read);
  read_configuration_of(reader, read);
  if (reader.has("simulated_limit")) {
    Duration limit;
    reader.time("simulated_limit", limit, Duration{1}, kLongestLimit);
    read.simulated_limit = limit;
    read.limit = kGuard;
  }
  Duration limit{read.limit.count() * 1'000'000'000};
  reader.time("limit", limit, kShortestLimit, kLongestLimit);
  read.limit = std::chrono::milliseconds(limit.ps / 1'000'000'000);
  reader.number("status", read.status, 0, 255);
  read_expectations(reader, read);
  reader.finish();
  if (const auto* simulator = std::get_if<Simulator>(&read.run)) check_simulator(reader, *simulator, read);
  return read;
}

}  // namespace

double Margin::allowed(double expected) const { return std::max(absolute, relative * std::abs(expected)); }

const char* to_string(Level level) {
  return level == Level::exact ? "exact" : level == Level::order ? "order" : "statistical";
}

std::vector<std::optional<std::uint64_t>> Case::run_seeds() const {
  if (!is_statistical()) return {seed};
  return {statistics->seeds.begin(), statistics->seeds.end()};
}

void set_level(Case& of, Level level) {
  if (!of.trace && !of.statistics) return;
  const bool fits = level == Level::statistical ? of.statistics.has_value() : of.trace.has_value();
  if (!fits)
    throw ConfigError(fmt::format("{}: --level {} needs a table [{}]", of.file.string(), to_string(level),
                                  level == Level::statistical ? "statistics" : "trace"));
  of.level = level;
}

Case read_case(const fs::path& file, const std::string& name) {
  const std::string text = read_configuration(file);
  try {
    return read_root(toml::parse(text, file.string()), file, name);
  } catch (const toml::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: {}", file.string(), error.source().begin.line, shown(error.description())));
  }
}

std::vector<CaseFile> find_cases(const fs::path& folder) {
  std::vector<CaseFile> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    if (name.starts_with('.') || name.starts_with('_')) continue;
    std::error_code none;
    if (at->is_directory(none))
      found.push_back({name, at->path() / "case.toml"});
    else if (at->path().extension() == ".toml")
      found.push_back({at->path().stem().string(), at->path()});
  }
  if (error) throw ConfigError(fmt::format("{}: {}", folder.string(), error.message()));
  if (found.empty())
    throw ConfigError(fmt::format("{}: no case in this folder: neither NAME.toml nor NAME/case.toml", folder.string()));
  std::ranges::sort(found, {}, &CaseFile::name);
  const auto twice = std::ranges::adjacent_find(found, {}, &CaseFile::name);
  if (twice != found.end())
    throw ConfigError(fmt::format("{}: {} and {} have the same name", folder.string(),
                                  twice->file.lexically_relative(folder).string(),
                                  std::next(twice)->file.lexically_relative(folder).string()));
  return found;
}

}  // namespace rnicsim::sim::check
