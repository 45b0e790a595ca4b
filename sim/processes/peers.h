// The processes that simulate one system together.
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
  // `out[i]` goes to process i, and what each has for this one comes back; its own place is left empty. Each process
  // calls it as often as the others do. std::runtime_error: one cannot be reached.
  virtual std::vector<Message> exchange(const std::vector<Message>& out) = 0;
};

// Whether an MPI launcher (mpirun) started this process beside others.
bool started_by_mpi();
// Of those that MPI started together. std::runtime_error: there is no MPI.
std::unique_ptr<Peers> mpi_peers();
// This program, `words`, as that many processes under mpirun: does not return. std::runtime_error: there is none.
[[noreturn]] void run_under_mpi(std::uint32_t processes, const std::vector<std::string>& words);

}  // namespace rnicsim::sim
