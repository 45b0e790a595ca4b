// The one list of what this device does not do (yet). Each answers EOPNOTSUPP, which tests take for a skip.
#include "verbs/ibverbs/unsupported.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace {

int refuse() { return errno = EOPNOTSUPP; }

std::nullptr_t refuse_object() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

namespace rnicsim::verbs {

void fill_unsupported(verbs_context& operations) {
  // The header would answer for these too, and leave errno as it was.
  operations.advise_mr = [](ibv_pd*, ibv_advise_mr_advice, std::uint32_t, ibv_sge*, std::uint32_t) { return refuse(); };
}

}  // namespace rnicsim::verbs

extern "C" {

// --- Memory of another device.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) { return refuse_object(); }

// --- Enhanced connection establishment.
int ibv_set_ece(ibv_qp*, ibv_ece*) { return refuse(); }
int ibv_query_ece(ibv_qp*, ibv_ece*) { return refuse(); }

}  // extern "C"
