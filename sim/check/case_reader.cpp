// case.toml into its structs.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "sim/bench/table_reader.h"
#include "sim/check/case.h"
#include "sim/check/values.h"
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
// The limit of real time where simulated time has one, too: it is for runs in which that stands still, and must not
// depend on how busy the machine is.
constexpr std::chrono::minutes kGuard{10};

// "1.5 %" is 0.015.
std::optional<double> parse_share(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto rest = text.substr(std::size_t(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const bool good = error == std::errc{} && rest == "%" && std::isfinite(number) && number >= 0 && number <= 100;
  return good ? std::optional(number / 100) : std::nullopt;
}

std::optional<double> parse_quantity(std::string_view text, Unit unit) {
  if (unit == Unit::time)
    if (const auto time = parse_duration(text)) return double(time->ps);
  if (unit == Unit::rate)
    if (const auto rate = parse_bit_rate(text)) return double(rate->bits_per_second);
  if (unit == Unit::bytes)
    if (const auto size = parse_byte_count(text)) return double(size->bytes);
  return std::nullopt;
}

bool has_unit(Unit unit) { return unit == Unit::time || unit == Unit::rate; }

const char* example(Unit unit) {
  switch (unit) {
    case Unit::time:
      return "a time such as \"5 us\"";
    case Unit::rate:
      return "a rate such as \"95 Gb/s\"";
    case Unit::bytes:
      return "a number of bytes, or a size such as \"4 KiB\"";
    default:
      return "a number";
  }
}

// A finite number, or a text of that unit.
std::optional<double> quantity(const toml::node& node, Unit unit) {
  if (node.is_number() && !has_unit(unit)) {
    const double number = *node.value<double>();
    return std::isfinite(number) ? std::optional(number) : std::nullopt;
  }
  return node.is_string() ? parse_quantity(node.as_string()->get(), unit) : std::nullopt;
}

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

// Of the list of tables at `key`, each with its own path.
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

// "1 %" for each, or a quantity of that unit.
std::optional<Margin> read_margin(TableReader& reader, std::string_view key, Unit unit) {
  const auto* node = reader.find(key);
  if (!node) return std::nullopt;
  if (node->is_string())
    if (const auto share = parse_share(node->as_string()->get())) return Margin{0, *share};
  const auto number = quantity(*node, unit);
  if (!number || *number < 0) reader.refuse(key, fmt::format("a share such as \"1 %\", or {},", example(unit)));
  return Margin{*number, 0};
}

Operand read_operand(TableReader& reader, std::string_view key, const std::string& value) {
  const auto unit = unit_of(value);
  const auto& node = *reader.find(key);
  if (const auto number = quantity(node, unit)) return *number;
  const auto refuse = [&] { reader.refuse(key, fmt::format("{}, or another value's name,", example(unit))); };
  if (!node.is_string()) refuse();
  const auto& name = node.as_string()->get();
  // A quantity begins with a digit, a name with a letter; it is one value.
  if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0])) || name.find_first_of(" *") != name.npos)
    refuse();
  if (unit_of(name) != unit)
    reader.complain(key, fmt::format("{} and {} are not of the same unit", shown(value), shown(name)));
  return name;
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
    const auto margin = read_margin(table, "within", unit_of(value));
    const auto before = read.properties.size();
    for (const auto& [key, relation] : kRelations) {
      if (!table.has(key)) continue;
      const auto operand = read_operand(table, key, value);
      read.properties.push_back({value, relation, operand, margin.value_or(Margin{}), table.path_of(key)});
    }
    if (read.properties.size() == before)
      table.complain("value", "nothing is said of it: equals, below, at_most, above or at_least is needed");
    if (margin && !table.has("equals")) table.complain("within", "goes with equals only");
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
    each_table(table, "may_differ", [&](TableReader& entry) {
      const auto value = needed_text(entry, "value");
      results.may_differ.push_back({value, read_margin(entry, "by", unit_of(value))});
    });
    read.results = std::move(results);
  });
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

// What its program cannot be told, or does not tell.
void check_simulator(const TableReader& reader, const Simulator& simulator, const Case& read) {
  for (const char* key : {"nic", "host", "topology", "engine", "seed", "set", "fault", "simulated_limit"})
    if (reader.has(key)) reader.complain(key, "does not go with simulator, whose words say it all");
  const auto tells = [&](const char* file) {
    return std::ranges::any_of(simulator.words, [&](const auto& word) { return word.find(file) != word.npos; });
  };
  if (read.trace && !tells(kTraceWord)) reader.refuse("simulator", "@trace, the file for its trace,");
  if (read.needs_results() && !tells(kResultsWord)) reader.refuse("simulator", "@results, the file for its results,");
}

Case read_root(const toml::table& root, const fs::path& file, const std::string& name) {
  TableReader reader(root, file.string(), "");
  std::uint64_t schema = 0;
  reader.need("schema");
  reader.number("schema", schema, 1, std::uint64_t(INT64_MAX));
  if (schema != kCaseSchema)
    reader.complain("schema", fmt::format("{} is another version's; this one reads {}", schema, kCaseSchema));
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
    throw ConfigError(fmt::format("{}: no case in it: neither NAME.toml nor NAME/case.toml", folder.string()));
  std::ranges::sort(found, {}, &CaseFile::name);
  const auto twice = std::ranges::adjacent_find(found, {}, &CaseFile::name);
  if (twice != found.end())
    throw ConfigError(fmt::format("{}: {} and {} are of one name", folder.string(),
                                  twice->file.lexically_relative(folder).string(),
                                  std::next(twice)->file.lexically_relative(folder).string()));
  return found;
}

}  // namespace rnicsim::sim::check
