// The one list of what this device does not do (yet). Each answers EOPNOTSUPP, which tests take for a skip.
#include <infiniband/verbs.h>

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

extern "C" {

// --- Memory of another device.
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) { return refuse_object(); }

// --- Enhanced connection establishment.
int ibv_set_ece(ibv_qp*, ibv_ece*) { return refuse(); }
int ibv_query_ece(ibv_qp*, ibv_ece*) { return refuse(); }

}  // extern "C"
