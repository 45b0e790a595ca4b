// SPDX-License-Identifier: Apache-2.0
// Loads MPI only when a run needs it: a library of its own in lib/rnicsim, found by the program's run path.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "sim/processes/peers.h"

namespace rnicsim::sim {

bool started_by_mpi() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size != nullptr && std::atoi(size) > 1;
}

std::unique_ptr<Peers> mpi_peers() {
  void* const library = ::dlopen("librnicsim_mpi.so", RTLD_NOW | RTLD_LOCAL);
  void* const make = library != nullptr ? ::dlsym(library, "rnicsim_make_mpi_peers") : nullptr;
  if (make == nullptr) throw std::runtime_error(fmt::format("MPI cannot be loaded: {}", ::dlerror()));
  return std::unique_ptr<Peers>(reinterpret_cast<Peers* (*)()>(make)());
}

void run_under_mpi(std::uint32_t processes, const std::vector<std::string>& words) {
  // Permit running as root (common in containers), and more processes than processors (slow but correct).
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    ::setenv(name, "1", 0);
  // Without this setting, the processes of two parallel runs would be bound to the same first processors.
  ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);  // containers forbid it, which prints a warning
  std::vector<std::string> command{"mpirun", "--quiet", "-n", std::to_string(processes), "/proc/self/exe"};
  char path[4096];
  if (const auto length = ::readlink("/proc/self/exe", path, sizeof path); length > 0)
    command.back().assign(path, static_cast<std::size_t>(length));
  command.insert(command.end(), words.begin() + 1, words.end());
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw std::runtime_error(fmt::format("mpirun (Debian's openmpi-bin): {}", std::strerror(errno)));
}

}  // namespace rnicsim::sim
