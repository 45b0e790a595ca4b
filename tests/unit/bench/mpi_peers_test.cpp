// SPDX-License-Identifier: Apache-2.0
// A process that waits for other processes uses no processor time. mpirun starts it twice (mpi_peers_test.py).
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "sim/processes/peers.h"

namespace {

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

int main() {
  using rnicsim::sim::Message;
  const auto peers = rnicsim::sim::mpi_peers();
  const std::uint32_t other = 1 - peers->rank();
  std::vector<Message> out(2);
  out[other] = Message(300'000, std::byte(peers->rank()));  // larger than MPI's eager limit
  if (peers->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
  const double before = processor_seconds();
  const auto in = peers->exchange(out);
  const double used = processor_seconds() - before;
  const bool is_right = in[other] == Message(300'000, std::byte(other));
  std::printf("%u: %d, %.2f s\n", peers->rank(), is_right, used);
  return is_right && used < 1 ? 0 : 1;
}
