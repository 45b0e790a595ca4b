// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/slurm.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "sim/config/config_error.h"
#include "sim/os/progress_line.h"
#include "sim/os/shell_word.h"
#include "sim/sweep/share.h"

namespace rnicsim::sim::sweep {
namespace {

namespace fs = std::filesystem;

pid_t start(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  const int error = posix_spawnp(&process, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) throw ConfigError(fmt::format("{}: {}; is Slurm installed?", words.front(), std::strerror(error)));
  return process;
}

}  // namespace

void run_by_slurm(const Store& store, std::size_t tasks, const std::vector<std::string>& options) {
  const auto folder = fs::absolute(store.folder());
  std::error_code error;
  fs::create_directories(folder / "slurm", error);
  if (error) throw ConfigError(fmt::format("{}: {}", (folder / "slurm").string(), error.message()));
  const auto program = fs::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> words = {"sbatch",
                                    "--wait",
                                    "--quiet",
                                    fmt::format("--array=0-{}", tasks - 1),
                                    fmt::format("--job-name={}", store.plan().name),
                                    fmt::format("--output={}/slurm/%a.log", folder.string())};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(fmt::format("--wrap=exec {} sweep --out {} --jobs 1 --share \"$SLURM_ARRAY_TASK_ID/{}\"",
                              shell_word(program), shell_word(folder.string()), tasks));
  const pid_t sbatch = start(words);
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(sbatch, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (progress_line::is_due())
      progress_line::show(
          fmt::format("{} of {} runs are to be done by Slurm", open_runs(store, {}).size(), store.plan().runs()));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  progress_line::erase();
  // The status is the highest status of the array's tasks; 1 means that runs failed, which the results report.
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
    throw ConfigError(fmt::format("sbatch ended with status {}; see {}/slurm",
                                  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), folder.string()));
}

}  // namespace rnicsim::sim::sweep
