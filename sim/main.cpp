// SPDX-License-Identifier: Apache-2.0
// The command line of rnicsim.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <systemc>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "sim/build_facts.h"
#include "sim/commands/command.h"
#include "sim/commands/help_format.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/engine_choice.h"
#include "sim/os/progress_line.h"
#include "sim/plugins.h"

namespace {

using namespace rnicsim::sim;

constexpr int kUsageError = 2;
constexpr int kMismatch = 3;
// The reader of standard output is gone, as in `rnicsim ... | head`: the status of a program that SIGPIPE ended.
constexpr int kReaderGone = 128 + SIGPIPE;

// Turns `help` and `help COMMAND` into --help.
Program with_help_as_option(Program words) {
  if (words.size() < 2 || words[1] != "help") return words;
  if (words.size() > 3) throw ConfigError("help needs at most one command");
  std::rotate(words.begin() + 1, words.begin() + 2, words.end());
  words.back() = "--help";
  return words;
}

// Checked here for a better message: CLI11 would complain of a missing command.
void refuse_unknown_command(const CLI::App& app, const Program& words) {
  if (words.size() < 2) throw ConfigError("a command is missing: see rnicsim --help");
  const std::string& first = words[1];
  std::vector<std::string> names, shown;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    if (!command->get_group().empty()) shown.push_back(command->get_name());
  }
  if (std::ranges::find(names, first) != names.end()) return;
  if (first.starts_with('-')) {
    if (app.get_option_no_throw(first) != nullptr) return;
    throw ConfigError(fmt::format("unknown option '{}' before a command: see rnicsim --help", first));
  }
  const auto meant = nearest_name(first, shown);
  throw ConfigError(fmt::format("unknown command '{}'{}", first,
                                meant ? fmt::format("; did you mean {}?", *meant) : "; see rnicsim --help"));
}

// Reports output that could not be written.
void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  if (std::ferror(stdout) != 0) throw ConfigError("standard output: some of the output was not written");
}

// An empty name, for example from an unset variable of a script, would count as an option that was not given.
void refuse_empty_names(const CLI::App& command) {
  for (const auto* option : command.get_options()) {
    const auto type = option->get_type_name();
    const auto& names = option->results();
    if ((type.starts_with("FILE") || type.starts_with("FOLDER")) && std::ranges::find(names, "") != names.end())
      throw ConfigError(fmt::format("{}: the name is empty", option->get_name()));
  }
}

// Words without an option: the user forgot `--` before a program. The message shows the intended command line.
[[noreturn]] void refuse_words(const CLI::App& command, const Program& words, const std::string& complaint) {
  const auto extra = command.remaining();
  if (command.get_name() != "run" || extra.empty() || extra.front().starts_with('-')) throw ConfigError(complaint);
  std::string meant;
  for (auto word = std::ranges::find(words, extra.front()); word != words.end(); ++word) meant += ' ' + *word;
  throw ConfigError(
      fmt::format("'{}' is not an option; write `--` before a program: rnicsim run --{}", extra.front(), shown(meant)));
}

int execute_words(const Program& words) {
  load_plugins();
  CLI::App app("full-system simulator of an RDMA NIC that runs unmodified verbs programs", "rnicsim");
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help and exit");
  app.set_version_flag("--version", build_facts, "print the version and the facts of the build, and exit");
  app.require_subcommand(1);
  Program program;
  const auto commands = add_commands(app, words, program);
  refuse_unknown_command(app, words);

  const auto mark = std::find(words.begin() + 1, words.end(), "--");
  if (mark != words.end()) program.assign(mark + 1, words.end());
  try {
    // CLI11 takes the words in reverse order.
    app.parse(Program(std::reverse_iterator(mark), words.rend() - 1));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    if (error.get_exit_code() == int(CLI::ExitCodes::ExtrasError))
      refuse_words(*app.get_subcommands().front(), words, error.what());
    throw ConfigError(error.what());
  }
  const auto& chosen = *std::ranges::find_if(commands, [](const auto& command) { return command.line->parsed(); });
  if (mark != words.end() && chosen.line->get_name() != "run")
    throw ConfigError("only `run` accepts a program after --");
  refuse_empty_names(*chosen.line);
  return chosen.execute();
}

// Prints the message after the other output, which may go to the same file. Errors of stderr are ignored here.
int failed(std::string_view why, int status) {
  std::fflush(stdout);
  std::fputs(fmt::format("rnicsim: {}\n", why).c_str(), stderr);
  return status;
}

// Erases the progress line before a line of the log.
class EraseProgress final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg&) override { progress_line::erase(); }
  void flush_() override {}
};

}  // namespace

int sc_main(int argc, char** argv) {
  unsetenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE");
  spdlog::set_default_logger(spdlog::stderr_color_mt("rnicsim"));
  auto& sinks = spdlog::default_logger()->sinks();
  sinks.insert(sinks.begin(), std::make_shared<EraseProgress>());
  spdlog::set_pattern("rnicsim: %v");
  try {
    const int status = execute_words(with_help_as_option(Program(argv, argv + argc)));
    flush_output();
    return status;
  } catch (const ConfigError& error) {
    return failed(error.what(), kUsageError);
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::broken_pipe && std::ferror(stdout) != 0) return kReaderGone;
    // An error of a print to stdout does not name its file.
    const std::string what =
        std::ferror(stdout) != 0 ? "standard output: " + error.code().message() : std::string(error.what());
    return failed(what, kUsageError);
  } catch (const std::bad_alloc&) {
    return failed("out of memory", kUsageError);
  } catch (const sc_core::sc_report& report) {
    // One line for each report. The kernel wraps an exception of a simulation process in a report.
    const std::string_view kind = report.get_msg_type(), text = report.get_msg();
    return failed(text.empty() ? kind : text, kind == sc_core::SC_ID_SIMULATION_UNCAUGHT_EXCEPTION_ ? kUsageError : 1);
  } catch (const EngineMismatch& error) {
    return failed(error.what(), kMismatch);
  } catch (const std::exception& error) {
    return failed(error.what(), 1);
  }
}

// Files opened later must not get the numbers 0 to 2 when the caller has closed a standard stream.
static void keep_standard_streams() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// Replaces SystemC's main(), which prints a banner.
int main(int argc, char** argv) {
  keep_standard_streams();
  // A write beyond `ulimit -f` then fails with EFBIG, and the message names the file. Programs do not inherit the
  // handler.
  std::signal(SIGXFSZ, [](int) {});
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
