// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/host_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "sim/attached/program_launcher.h"
#include "sim/attached/serving.h"
#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/os/descriptor.h"
#include "sim/os/program_check.h"
#include "sim/os/progress_line.h"
#include "sim/os/shell_word.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

void say(const std::string& text) { fmt::print(stderr, "rnicsim: {}\n", text); }

int shell_status_of(int waited) { return WIFSIGNALED(waited) ? 128 + WTERMSIG(waited) : WEXITSTATUS(waited); }

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return shell_status_of(status);
}

// Start-up file of an interactive bash: the user's ~/.bashrc, then variables that ~/.bashrc may have changed.
std::string bash_start(const std::vector<std::string>& variables, const std::string& host, const std::string& libraries,
                       int own_descriptor) {
  std::string text = "[ -r ~/.bashrc ] && . ~/.bashrc\n";
  for (const std::string& variable : variables) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (name != "LD_LIBRARY_PATH") text += export_line(variable) + '\n';
  }
  // A search path set by ~/.bashrc stays, behind the simulator's folder.
  const std::string folder = shell_word(libraries);
  text += fmt::format(
      "case $LD_LIBRARY_PATH in {0} | {0}:*) ;; *) export LD_LIBRARY_PATH={0}"
      "${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} ;; esac\n",
      folder);
  text += fmt::format("PS1=\"(rnicsim {}) $PS1\"\n", host);
  // rnicsim itself runs outside of the simulation, in real time.
  text += "rnicsim() { LD_PRELOAD= command rnicsim \"$@\"; }\n";
  return text + fmt::format("exec {}<&-\n", own_descriptor);
}

// Path, arguments and environment of the shell, for execve.
class Image {
 public:
  Image(const std::string& socket_name, const ShellRequest& request) {
    const char* wanted = ::getenv("SHELL");
    path_ = wanted != nullptr && *wanted != 0 ? wanted : "/bin/sh";
    const auto found = find_program(path_);
    if (!found.problem.empty()) throw ConfigError(fmt::format("the shell {}: {}", path_, found.problem));
    path_ = found.path;
    const ProgramLauncher launcher({socket_name, library_folder(), {}});
    environment_ = launcher.shell_environment(request.host);
    arguments_ = {path_};
    if (request.command) {
      arguments_.insert(arguments_.end(), {"-c", *request.command});
    } else if (fs::path(path_).filename() == "bash") {
      start_ = Descriptor(::memfd_create("rnicsim-shell", 0));
      const std::string text =
          bash_start(launcher.variables(request.host), request.host, library_folder(), start_.get());
      if (::write(start_.get(), text.data(), text.size()) != ssize_t(text.size()))
        throw_errno("cannot prepare the shell");
      arguments_.insert(arguments_.end(), {"--rcfile", fmt::format("/dev/fd/{}", start_.get())});
    } else {
      environment_.push_back(fmt::format("PS1=(rnicsim {}) $ ", request.host));
    }
  }

  // Called in a child process; does not return.
  void execute() {
    lay_out_programs();
    ::execve(path_.c_str(), pointers(arguments_).data(), pointers(environment_).data());
    say(fmt::format("{}: {}", path_, std::strerror(errno)));
    ::_exit(127);
  }

 private:
  std::string path_;
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  Descriptor start_;  // start-up file of bash
};

// Starts the shell in this process's group, so that the terminal's signals reach the shell, its programs and this
// process; a shell with job control makes groups of its own. The shell gets SIGHUP when this process ends.
pid_t start(Image& image) {
  for (const int signal : {SIGINT, SIGQUIT}) ::signal(signal, SIG_IGN);
  const pid_t parent = ::getpid();
  const pid_t shell = ::fork();
  if (shell < 0) throw_errno("fork");
  if (shell > 0) return shell;
  ::prctl(PR_SET_PDEATHSIG, SIGHUP);
  if (::getppid() != parent) ::_exit(128 + SIGHUP);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_DFL);
  image.execute();
  ::_exit(127);
}

// Waits until the shell ends. If the simulation ends first, the shell gets SIGHUP.
int attend(pid_t shell, pid_t simulation) {
  const auto end_of = [](pid_t process) { return Descriptor(int(::syscall(SYS_pidfd_open, process, 0))); };
  const Descriptor simulation_end = end_of(simulation);
  const Descriptor shell_end = end_of(shell);
  if (!shell_end) throw_errno("pidfd_open");
  pollfd watched[] = {{shell_end.get(), POLLIN, 0}, {simulation_end.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 2, -1) < 0) continue;
    if (watched[0].revents != 0) return wait_for(shell);
    say("the simulation has ended, and the shell ends too");
    for (const int signal : {SIGHUP, SIGCONT}) ::kill(shell, signal);
    watched[1].fd = -1;
  }
}

void greet(const ShellRequest& request, const std::string& where) {
  if (!request.command && ::isatty(STDIN_FILENO) == 1) say(where);
}

// For the simulation's process: leaves the terminal's session and its standard input. Standard output is for programs
// only.
void leave_terminal(pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  progress_line::turn_off();
}

bool await_byte(int fd) {
  char byte = 0;
  ssize_t got;
  do got = ::read(fd, &byte, 1);
  while (got < 0 && errno == EINTR);
  return got == 1;
}

}  // namespace

int join_shell(const ShellRequest& request) {
  const auto [name, simulation] = serving_with(request.host);
  Image image(name, request);
  greet(request, fmt::format("on {} of the simulation at {} (pid {})", request.host, name, simulation));
  return attend(start(image), simulation);
}

int open_shell(const ShellRequest& request,
               const std::function<int(const std::string& socket_name, const std::function<void()>& ready)>& simulate) {
  const std::string name = name_to_serve_at();
  Image image(name, request);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
  const Descriptor ready(ends[0]);
  Descriptor tell(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t simulation = ::fork();
  if (simulation < 0) throw_errno("fork");
  if (simulation == 0) {
    leave_terminal(parent);
    return simulate(name, [&] { [[maybe_unused]] const auto told = ::write(tell.get(), "", 1); });
  }
  tell.reset();
  if (!await_byte(ready.get())) return wait_for(simulation);  // the simulation has printed the reason
  greet(request,
        fmt::format(
            "on {}, at {}; `exit` ends the simulation; `rnicsim shell HOST` in another terminal joins the simulation",
            request.host, name));
  const int status = attend(start(image), simulation);
  ::kill(simulation, SIGTERM);
  const int simulated = wait_for(simulation);
  return simulated != 0 ? simulated : status;
}

}  // namespace rnicsim::sim
