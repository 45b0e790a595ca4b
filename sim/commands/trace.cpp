// SPDX-License-Identifier: Apache-2.0
// rnicsim trace: tools for recorded traces.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/commands/command.h"
#include "sim/commands/options.h"
#include "sim/config/config_error.h"
#include "sim/trace/export.h"
#include "sim/trace/follow.h"
#include "sim/trace/show.h"
#include "sim/trace/stat.h"
#include "sim/trace/waves.h"
#include "sim/trace/write.h"
#include "sim/wire_workload/import.h"

namespace rnicsim::sim {
namespace {

struct TraceCommand {
  std::string file, output;
  std::vector<std::string> files;
  FilterOptions filter;
  ShowOptions show;
  FollowedWqe wqe;
  TraceFormat format = TraceFormat::jsonl;
  wire_workload::ImportOptions imported;
  std::function<int(TraceCommand&)> execute;
};

std::uint32_t number_of(const char* option, const std::string& text) {
  std::uint64_t value = 0;
  if (!CLI::detail::lexical_cast(text, value) || value >= 1u << 24)
    throw CLI::ValidationError(fmt::format("{}: '{}' is not a number of 24 bits", option, text));
  return static_cast<std::uint32_t>(value);
}

void add_numbers(CLI::App& line, const char* name, std::vector<std::uint32_t>& numbers, const char* meaning) {
  const auto set = [=, &numbers](const std::vector<std::string>& texts) {
    for (const auto& text : texts) numbers.push_back(number_of(name, text));
  };
  line.add_option_function<std::vector<std::string>>(name, set, meaning)->delimiter(',')->type_name("N[,N]...");
}

void add_filter(CLI::App& line, FilterOptions& filter) {
  line.add_option("--host", filter.hosts, "events of these hosts")->delimiter(',')->type_name("NAME[,NAME]...");
  line.add_option("--kind", filter.kinds,
                  "events of these kinds (traces/README.md); packet*: all kinds with this beginning")
      ->delimiter(',')
      ->type_name("KIND[,KIND]...");
  add_numbers(line, "--qp", filter.qps, "events of these queue pairs; 0x41 is hexadecimal");
  add_numbers(line, "--psn", filter.psns, "packets with these PSNs");
  const auto add_time = [&line](const char* name, std::optional<Duration>& time, const char* meaning) {
    const auto set = [=, &time](const std::string& text) { time = time_of(name, text); };
    line.add_option_function<std::string>(name, set, meaning)->type_name("TIME");
  };
  add_time("--from", filter.from, "events from this time on");
  add_time("--to", filter.to, "events up to this time");
}

CLI::App& add_tool(CLI::App& trace, TraceCommand& command, const char* name, const char* meaning,
                   int (*execute)(TraceCommand&)) {
  CLI::App& line = *trace.add_subcommand(name, meaning);
  line.callback([&command, execute] { command.execute = execute; });
  return line;
}

CLI::App& add_reader(CLI::App& trace, TraceCommand& command, const char* name, const char* meaning,
                     int (*execute)(TraceCommand&)) {
  CLI::App& line = add_tool(trace, command, name, meaning, execute);
  line.add_option("FILE", command.file, "a recorded trace")->required();
  return line;
}

ConfigError unwritten(const std::string& file) {
  return ConfigError(fmt::format("{}: {}", file, std::strerror(errno)));
}

// Events that this program does not know are no error: the schema names them.
void print_unknown(const TraceSource& trace) {
  for (const auto& line : trace.unknown()) fmt::print(stderr, "rnicsim: {}\n", line);
}

int show(TraceCommand& command) {
  TraceSource trace(command.file, command.filter);
  if (!show_trace(trace, command.show, stdout)) throw unwritten("standard output");
  print_unknown(trace);
  return 0;
}

int stat(TraceCommand& command) {
  TraceSource trace(command.file, command.filter);
  fmt::print("{}", trace_statistics(trace));
  print_unknown(trace);
  return 0;
}

int follow(TraceCommand& command) {
  TraceSource trace(command.file);
  fmt::print("{}", follow_wqe(trace, command.wqe));
  print_unknown(trace);
  return 0;
}

int cut(TraceCommand& command) {
  TraceSource trace(command.file, command.filter);
  cut_trace(trace, command.output);
  print_unknown(trace);
  return 0;
}

int merge(TraceCommand& command) {
  std::vector<std::unique_ptr<TraceSource>> traces;
  for (const auto& file : command.files) traces.push_back(std::make_unique<TraceSource>(file));
  merge_traces(traces, command.output);
  for (const auto& trace : traces) print_unknown(*trace);
  return 0;
}

int write_out(TraceCommand& command) {
  check_exportable(command.format);
  if (command.format == TraceFormat::fst) {
    if (command.output.empty()) throw ConfigError("--format fst: waves need a file: -o FILE");
    export_waves(command.file, command.filter, command.output);
    return 0;
  }
  TraceSource trace(command.file, command.filter);
  if (command.output.empty()) {
    if (!export_trace(trace, command.format, stdout)) throw unwritten("standard output");
    print_unknown(trace);
    return 0;
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(command.output.c_str(), "w"), std::fclose);
  if (!out || !export_trace(trace, command.format, out.get())) throw unwritten(shown(command.output));
  print_unknown(trace);
  return 0;
}

int import_capture(TraceCommand& command) {
  command.imported.output = command.output;
  return wire_workload::import_capture(command.imported);
}

int run_tool(TraceCommand& command) try { return command.execute(command); } catch (const TraceError& error) {
  fmt::print(stderr, "rnicsim: {}\n", error.what());
  return 2;
}

void add_import(CLI::App& trace, TraceCommand& command) {
  CLI::App& line =
      add_tool(trace, command, "import", "convert a capture of real hosts into a recorded workload", import_capture);
  auto& imported = command.imported;
  line.add_option("--pcap", imported.pcap, "a capture of RoCEv2 in pcap or pcapng")->required()->type_name("FILE");
  line.add_option("--output,-o", command.output, "file of the new trace, for `rnicsim replay`")
      ->required()
      ->type_name("FILE");
  line.add_option("--nic", imported.nic, "NIC profile by name, or a TOML file, of the hosts that post the requests")
      ->capture_default_str()
      ->type_name("NIC");
  add_host_profile(line, imported.host);
  add_sets(line, imported.sets, "set a parameter, such as nic.pcie.read_latency=600ns; may be repeated");
}

void add_wqe(CLI::App& line, FollowedWqe& wqe) {
  line.add_option("--host", wqe.host, "host that posted the WQE")->required()->type_name("NAME");
  line.add_option_function<std::string>(
          "--qp", [&wqe](const std::string& text) { wqe.qp = number_of("--qp", text); }, "queue pair of the WQE")
      ->required()
      ->type_name("N");
  line.add_option("--wqe", wqe.number, "number of the WQE in its send queue, from 0")->required()->type_name("N");
}

}  // namespace

Command add_trace(CLI::App& app) {
  CLI::App& line = *app.add_subcommand("trace", "tools for recorded traces: docs/trace.md");
  const auto command = std::make_shared<TraceCommand>();
  line.require_subcommand(1);

  CLI::App& shows = add_reader(line, *command, "show", "print events", show);
  add_filter(shows, command->filter);
  shows
      .add_option("--columns", command->show.columns,
                  "print a table with these columns: time, host, kind, and names of fields")
      ->delimiter(',')
      ->type_name("NAME[,NAME]...");
  shows.add_option("--lines", command->show.most, "end after this number of events")->type_name("N");

  add_filter(
      add_reader(line, *command, "stat", "count events; rates, latencies and retransmissions of queue pairs", stat),
      command->filter);
  add_wqe(add_reader(line, *command, "follow", "print all events of one WQE", follow), command->wqe);

  CLI::App& cuts = add_reader(line, *command, "cut", "write the selected events as a trace", cut);
  add_filter(cuts, command->filter);
  CLI::App& merges = add_tool(line, *command, "merge", "write traces of different hosts as one", merge);
  merges.add_option("FILES", command->files, "recorded traces")->required()->expected(2, 1000);
  for (auto* writes : {&cuts, &merges})
    writes->add_option("--output,-o", command->output, "file of the new trace")->required()->type_name("FILE");

  CLI::App& exports = add_reader(line, *command, "export", "write events in a format of other programs", write_out);
  add_filter(exports, command->filter);
  const std::map<std::string, TraceFormat> formats{{"jsonl", TraceFormat::jsonl},
                                                   {"csv", TraceFormat::csv},
                                                   {"perfetto", TraceFormat::perfetto},
                                                   {"fst", TraceFormat::fst},
                                                   {"pcapng", TraceFormat::pcapng}};
  add_choice(
      exports, "--format", command->format, formats,
      "jsonl (default): JSON lines; csv: comma-separated values; perfetto: timeline for ui.perfetto.dev; fst: waves "
      "for GTKWave");
  exports.add_option("--output,-o", command->output, "output file (default: standard output)")->type_name("FILE");

  add_import(line, *command);

  line.footer("The exit status is 0; 2 if a file cannot be read or written, or the command line is wrong.");
  return {&line, [command] { return run_tool(*command); }};
}

}  // namespace rnicsim::sim
