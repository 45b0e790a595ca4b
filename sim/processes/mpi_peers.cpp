// The library that mpi_library.cpp loads.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <stdexcept>

#include "sim/processes/peers.h"

namespace rnicsim::sim {
namespace {

void must(int result, const char* what) {
  if (result != MPI_SUCCESS) throw std::runtime_error(what);
}

class MpiPeers final : public Peers {
 public:
  MpiPeers() {
    must(MPI_Init(nullptr, nullptr), "MPI_Init");
    must(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(MPI_COMM_WORLD, &count_), "MPI_Comm_size");
  }
  ~MpiPeers() override { MPI_Finalize(); }

  std::uint32_t rank() const override { return static_cast<std::uint32_t>(rank_); }
  std::uint32_t count() const override { return static_cast<std::uint32_t>(count_); }

  // Those of two processes arrive in the order in which they were sent.
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
      must(MPI_Mprobe(peer, kTag, MPI_COMM_WORLD, &arrived, &status), "MPI_Mprobe");
      must(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      auto& message = in[static_cast<std::size_t>(peer)];
      message.resize(static_cast<std::size_t>(bytes));
      must(MPI_Mrecv(message.data(), bytes, MPI_BYTE, &arrived, &status), "MPI_Mrecv");
    }
    must(MPI_Waitall(static_cast<int>(sending_.size()), sending_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
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
