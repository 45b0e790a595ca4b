// SPDX-License-Identifier: Apache-2.0
// MPI implementation of Peers: the library that mpi_library.cpp loads.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "sim/processes/peers.h"

namespace rnicsim::sim {
namespace {

void must(int result, const char* what) {
  if (result != MPI_SUCCESS) throw std::runtime_error(what);
}

// MPI's blocking calls poll without a pause, and on a busy machine take the processor from the process that they wait
// for. This wait polls without a pause for 50 us, enough if each process has a processor. Later its pauses are a
// quarter of the time waited so far, at most 1 ms, so the end of the wait is noticed at most that much late. It sleeps
// instead of yielding, because a process that yields waits for a turn of all others.
template <class Look>
void await(const Look& look) {
  using namespace std::chrono;
  constexpr auto kAtOnce = microseconds(50), kLongestPause = microseconds(1000);
  const auto start = steady_clock::now();
  while (!look()) {
    const auto waited = steady_clock::now() - start;
    if (waited >= kAtOnce) std::this_thread::sleep_for(std::min<steady_clock::duration>(waited / 4, kLongestPause));
  }
}

class MpiPeers final : public Peers {
 public:
  MpiPeers() {
    ::setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);  // MPI yields by default if processors are few
    must(MPI_Init(nullptr, nullptr), "MPI_Init");
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &count_), "MPI_Comm_size");
  }
  ~MpiPeers() override { MPI_Finalize(); }

  std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  std::uint32_t count() const override { return static_cast<std::uint32_t>(count_); }

  // MPI delivers messages between two processes in the order of sending.
  std::vector<Message> exchange(const std::vector<Message>& out) override {
    std::vector<Message> in(out.size());
    sending_.clear();
    for (int peer = 0; peer < count_; ++peer) {
      if (peer == rank_) continue;
      const auto& message = out[static_cast<std::size_t>(peer)];
      must(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer, kTag, MPI_COMM_WORLD,
                     &sending_.emplace_back()),
           "MPI_Isend");
    }
    for (int peer = 0; peer < count_; ++peer) {
      if (peer == rank_) continue;
      MPI_Message arrived;
      MPI_Status status;
      int bytes = 0;
      await([&] {
        int is_there = 0;
        must(MPI_Improbe(peer, kTag, MPI_COMM_WORLD, &is_there, &arrived, &status), "MPI_Improbe");
        return is_there != 0;
      });
      must(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      auto& message = in[static_cast<std::size_t>(peer)];
      message.resize(static_cast<std::size_t>(bytes));
      MPI_Request receiving;
      must(MPI_Imrecv(message.data(), bytes, MPI_BYTE, &arrived, &receiving), "MPI_Imrecv");
      await([&] {
        int is_done = 0;
        must(MPI_Test(&receiving, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
        return is_done != 0;
      });
    }
    await([&] {
      int are_done = 0;
      must(MPI_Testall(static_cast<int>(sending_.size()), sending_.data(), &are_done, MPI_STATUSES_IGNORE),
           "MPI_Testall");
      return are_done != 0;
    });
    return in;
  }

 private:
  static constexpr int kTag = 0;

  int rank_ = 0;
  int count_ = 1;
  std::vector<MPI_Request> sending_;
};

}  // namespace

extern "C" Peers* rnicsim_make_mpi_peers() { return new MpiPeers; }

}  // namespace rnicsim::sim
