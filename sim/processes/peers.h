// SPDX-License-Identifier: Apache-2.0
// Communication of the processes that simulate one system together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rnicsim::sim {

using Message = std::vector<std::byte>;

class Peers {
 public:
  virtual ~Peers() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t count() const = 0;
  // Sends `out[i]` to process i, and returns the messages of all processes to this one; the own element is empty. All
  // processes must call it equally often. std::runtime_error: a process cannot be reached.
  virtual std::vector<Message> exchange(const std::vector<Message>& out) = 0;
};

// True: an MPI launcher (mpirun) started this process together with others.
bool started_by_mpi();
// The processes that MPI started together. std::runtime_error: MPI is not installed.
std::unique_ptr<Peers> mpi_peers();
// Replaces this process by mpirun with this program and `words`; does not return. std::runtime_error: no mpirun.
[[noreturn]] void run_under_mpi(std::uint32_t processes, const std::vector<std::string>& words);

}  // namespace rnicsim::sim
