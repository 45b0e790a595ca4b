// SPDX-License-Identifier: Apache-2.0
// Exported verbs that this device does not support. They fail with EOPNOTSUPP, which tests count as skipped.
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
