// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/program_launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "model/abi/attach.h"
#include "sim/os/shell_word.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
  ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

constexpr std::string_view kReplaced[] = {"LD_PRELOAD",
                                          "LD_LIBRARY_PATH",
                                          abi::kSocketVariable,
                                          abi::kHostVariable,
                                          abi::kLibrariesVariable,
                                          "RNICSIM_PAD",
                                          "RNICSIM_EXEC",
                                          "OLDPWD",
                                          "_",
                                          "TMPDIR"};

bool is_replaced(std::string_view entry) {
  const auto name = entry.substr(0, entry.find('='));
  return std::ranges::find(kReplaced, name) != std::end(kReplaced);
}

// The libraries' folder, then the user's search path.
std::string library_path(const std::string& folder) {
  std::string result = folder;
  const char* given = ::getenv("LD_LIBRARY_PATH");
  std::string_view rest = given != nullptr ? given : "";
  for (bool more = !rest.empty(); more;) {
    const auto end = rest.find(':');
    const auto entry = rest.substr(0, end);
    if (entry != folder) result.append(":").append(entry);
    more = end != rest.npos;
    if (more) rest.remove_prefix(end + 1);
  }
  return result;
}

// The user's limit, raised so that the preloaded library's own descriptors fit above those of the program.
rlimit program_descriptors(rlimit given) {
  constexpr rlim_t kLeast = 1024;
  return {std::min(std::max(given.rlim_cur, kLeast), given.rlim_max), given.rlim_max};
}

// Runs between fork and exec: only async-signal-safe calls.
void become_program(const Pipe& out, const Pipe& err, int library_folder, const rlimit& descriptors,
                    bool keep_terminal) {
  if (!keep_terminal) {
    ::dup2(out.write_end.get(), STDOUT_FILENO);
    ::dup2(err.write_end.get(), STDERR_FILENO);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, STDIN_FILENO);
    // Ctrl-C reaches the simulator only, which then ends its programs.
    ::setpgid(0, 0);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_DFL);  // the simulator ignores SIGPIPE, and a child inherits that
  ::dup2(library_folder, abi::kLibraryDescriptor);
  // dup2() of equal numbers leaves the close-on-exec flag set.
  ::fcntl(abi::kLibraryDescriptor, F_SETFD, 0);
  lay_out_programs();
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
}

}  // namespace

void lay_out_programs() {
  const int persona = ::personality(0xffffffff);
  if (persona >= 0) ::personality(persona | ADDR_NO_RANDOMIZE);
  // The stack limit decides where the kernel maps memory.
  rlimit stack{8u << 20, RLIM_INFINITY};
  rlimit old{};
  if (::getrlimit(RLIMIT_STACK, &old) == 0) stack.rlim_max = old.rlim_max;
  ::setrlimit(RLIMIT_STACK, &stack);
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

std::string export_line(const std::string& variable) {
  const auto equals = variable.find('=');
  return "export " + variable.substr(0, equals) + '=' + shell_word(std::string_view(variable).substr(equals + 1));
}

std::vector<std::string> ProgramLauncher::variables(const std::string& host) const {
  return {fmt::format("LD_PRELOAD={}/librnicsim_os.so", params_.library_folder),
          fmt::format("LD_LIBRARY_PATH={}", library_path(params_.library_folder)),
          fmt::format("{}={}", abi::kSocketVariable, params_.socket_name),
          fmt::format("{}={}", abi::kHostVariable, host),
          "PYTHONHASHSEED=0",
          "TMPDIR=/tmp"};
}

std::vector<std::string> ProgramLauncher::shell_environment(const std::string& host) const {
  std::vector<std::string> result = variables(host);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry) && !std::string_view(*entry).starts_with("PYTHONHASHSEED=")) result.emplace_back(*entry);
  result.emplace_back("RNICSIM_OUTSIDE=1");
  return result;
}

// The user's environment with the simulator's variables. Padding keeps the start of the stack at the same address.
std::vector<std::string> ProgramLauncher::environment(const std::string& host, const std::string& path,
                                                      const std::vector<std::string>& arguments) const {
  constexpr std::size_t kRound = 64 * 1024;
  constexpr std::size_t kPointer = sizeof(char*);
  std::vector<std::string> result;
  const std::string folder = fmt::format("/proc/self/fd/{}", abi::kLibraryDescriptor);
  result.push_back(fmt::format("LD_PRELOAD={}/librnicsim_os.so", folder));
  result.push_back(fmt::format("LD_LIBRARY_PATH={}", library_path(folder)));
  result.push_back(fmt::format("{}={}", abi::kLibrariesVariable, params_.library_folder));
  result.push_back(fmt::format("{}={}", abi::kSocketVariable, params_.socket_name));
  result.push_back(fmt::format("{}={}", abi::kHostVariable, host));
  result.emplace_back("TMPDIR=/tmp");  // the simulated host's
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry)) result.emplace_back(*entry);
  if (::getenv("PYTHONHASHSEED") == nullptr) result.emplace_back("PYTHONHASHSEED=0");

  std::string pad = "RNICSIM_PAD=";
  std::size_t bytes = path.size() + 1;
  for (const auto& argument : arguments) bytes += argument.size() + 1 + kPointer;
  for (const auto& entry : result) bytes += entry.size() + 1 + kPointer;
  bytes += pad.size() + 1 + kPointer;
  pad.append((kRound - bytes % kRound) % kRound, '.');
  result.push_back(std::move(pad));
  return result;
}

// gdb and valgrind run unsimulated and pass the variables on to the program.
ProgramLauncher::Command ProgramLauncher::under_tool(const std::string& host, const std::string& path,
                                                     const std::vector<std::string>& arguments, Tool tool) const {
  std::vector<std::string> given = variables(host);
  given.emplace_back("RNICSIM_KEEP_LAYOUT=1");
  given.emplace_back(tool == Tool::gdb ? "RNICSIM_TOOL=gdb" : "RNICSIM_TOOL=valgrind");
  Command command;
  if (tool == Tool::gdb) {
    command.path = "/usr/bin/gdb";
    command.arguments = {"gdb", "-q", "-ex", "set startup-with-shell off"};
    for (const std::string& variable : given) {
      command.arguments.emplace_back("-ex");
      command.arguments.push_back("set environment " + variable);
    }
    for (const char* rest : {"-ex", "handle SIGSEGV SIG62 nostop noprint pass", "--args"})
      command.arguments.emplace_back(rest);
  } else {
    command.path = "/usr/bin/valgrind";
    command.arguments = {"valgrind", "--trace-children=yes", "/usr/bin/env"};
    command.arguments.insert(command.arguments.end(), given.begin(), given.end());
  }
  command.arguments.push_back(path);
  command.arguments.insert(command.arguments.end(), arguments.begin() + 1, arguments.end());
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!is_replaced(*entry)) command.environment.emplace_back(*entry);
  return command;
}

Launched ProgramLauncher::launch(const std::string& host, const std::string& path,
                                 const std::vector<std::string>& arguments, Tool tool) const {
  Command command = tool == Tool::none ? Command{path, arguments, environment(host, path, arguments)}
                                       : under_tool(host, path, arguments, tool);
  const bool keep_terminal = tool == Tool::gdb;
  const auto argument_pointers = pointers(command.arguments);
  const auto environment_pointers = pointers(command.environment);
  const Descriptor library_folder(::open(params_.library_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!library_folder) throw_errno("cannot open the library folder");
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const rlimit descriptors = program_descriptors(params_.descriptors);
  Pipe failure = make_pipe();  // closed by a successful exec; otherwise has the errno of exec

  const pid_t pid = ::fork();
  if (pid < 0) throw_errno("fork");
  if (pid == 0) {
    become_program(out, err, library_folder.get(), descriptors, keep_terminal);
    ::execve(command.path.c_str(), argument_pointers.data(), environment_pointers.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(failure.write_end.get(), &error, sizeof error);
    ::_exit(127);
  }
  failure.write_end.reset();
  int error = 0;
  ssize_t told;
  // The read returns after exec or the child's end. A signal is handled later.
  do told = ::read(failure.read_end.get(), &error, sizeof error);
  while (told < 0 && errno == EINTR);
  if (told == ssize_t(sizeof error)) {
    ::waitpid(pid, nullptr, 0);
    errno = error;
    throw_errno(command.path.c_str());
  }
  if (keep_terminal) return {pid, {}, {}};
  return {pid, std::move(out.read_end), std::move(err.read_end)};
}

}  // namespace rnicsim::sim
