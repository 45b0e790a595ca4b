// SPDX-License-Identifier: Apache-2.0
// Starts programs on simulated hosts: their environment, their address layout, their standard output and error.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

struct LaunchParams {
  std::string socket_name;
  std::string library_folder;  // holds librnicsim_os.so and libibverbs.so.1
  rlimit descriptors;          // limit of open files for programs
};

enum class Tool { none, gdb, valgrind };

struct Launched {
  pid_t pid = 0;
  Descriptor standard_output;  // read ends; not open if the program keeps the simulator's own
  Descriptor standard_error;
};

// "NAME=value" as a shell's line "export NAME='value'".
std::string export_line(const std::string& variable);
// argv or envp for execve.
std::vector<char*> pointers(std::vector<std::string>& strings);
// Called in a process that will execute a program, or a shell that does: makes the address layout the same at every
// run.
void lay_out_programs();

class ProgramLauncher {
 public:
  explicit ProgramLauncher(LaunchParams params) : params_(std::move(params)) {}

  // `path` is passed to execve. Throws std::system_error. A program under gdb keeps the terminal.
  Launched launch(const std::string& host, const std::string& path, const std::vector<std::string>& arguments,
                  Tool tool) const;

  // Variables "NAME=value" with which a program finds this simulator.
  std::vector<std::string> variables(const std::string& host) const;
  // Environment of a shell that runs outside of the simulation while its programs run inside.
  std::vector<std::string> shell_environment(const std::string& host) const;

 private:
  struct Command {
    std::string path;
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
  };
  Command under_tool(const std::string& host, const std::string& path, const std::vector<std::string>& arguments,
                     Tool tool) const;
  std::vector<std::string> environment(const std::string& host, const std::string& path,
                                       const std::vector<std::string>& arguments) const;
  LaunchParams params_;
};

}  // namespace rnicsim::sim
