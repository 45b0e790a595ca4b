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
#include <array>
#include <cstdlib>
#include <memory>

#include "sim/build_facts.h"
#include "sim/commands/command.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/engine_choice.h"
#include "sim/progress_line.h"

namespace {

using namespace rnicsim::sim;

constexpr int kUsageError = 2;
constexpr int kMismatch = 3;

// CLI11 would complain of a missing command.
void refuse_unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (std::ranges::find(names, argv[1]) != names.end()) return;
  const auto meant = nearest_name(argv[1], names);
  throw ConfigError(fmt::format("there is no command '{}'{}", argv[1],
                                meant ? fmt::format("; did you mean {}?", *meant) : "; see rnicsim --help"));
}

int execute(int argc, char** argv) {
  CLI::App app("A full-system simulator of an RDMA NIC, on which stock verbs programs run.", "rnicsim");
  app.set_version_flag("--version", build_facts);
  app.require_subcommand(1);
  const Program words(argv, argv + argc);
  Program program;
  const std::array commands{
      add_run(app, program), add_serve(app),        add_shell(app),         add_env(app),
      add_top(app),          add_bench(app, words), add_sweep(app, words),  add_report(app, words),
      add_check(app),        add_calibrate(app),    add_describe(app),      add_diff(app),
      add_replay(app),       add_complete(app, words), add_manual(app),
  };
  refuse_unknown_command(app, argc, argv);

  char** const mark = std::find(argv + 1, argv + argc, std::string_view("--"));
  program.assign(std::min(mark + 1, argv + argc), argv + argc);
  try {
    app.parse(static_cast<int>(mark - argv), argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw ConfigError(error.what());
  }
  const auto& chosen = *std::ranges::find_if(commands, [](const auto& command) { return command.line->parsed(); });
  if (mark != argv + argc && chosen.line->get_name() != "run") throw ConfigError("only `run` takes a program after --");
  return chosen.execute();
}

// The log's lines do not mix with the terminal's last one.
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
    return execute(argc, argv);
  } catch (const ConfigError& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return kUsageError;
  } catch (const EngineMismatch& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return kMismatch;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rnicsim: {}\n", error.what());
    return 1;
  }
}

// What is opened later must not get the numbers of the standard streams, should a caller have closed those.
static void keep_standard_streams() {
  int fd;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  ::close(fd);
}

// In the place of SystemC's own, whose banner is not part of our output.
int main(int argc, char** argv) {
  keep_standard_streams();
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
