// SPDX-License-Identifier: Apache-2.0
// An operation of a workload as a work request.
#pragma once

#include <infiniband/verbs.h>

#include "sim/bench/agents/station.h"
#include "sim/bench/workload.h"

namespace rnicsim::sim::bench {

inline ibv_wr_opcode opcode_of(Op op) {
  constexpr ibv_wr_opcode kOpcodes[kPostedOps] = {
      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
      IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
  return kOpcodes[static_cast<std::size_t>(op)];
}

// Sets opcode and target of an operation on a connected queue pair. The target is the beginning of `remote`.
inline void aim(ibv_send_wr& wr, Op op, const Region& remote) {
  wr.opcode = opcode_of(op);
  if (is_atomic(op)) {
    wr.wr.atomic = {remote.address, op == Op::fetch_add ? 1u : 0u, 1, remote.rkey};
  } else {
    wr.wr.rdma.remote_addr = remote.address;
    wr.wr.rdma.rkey = remote.rkey;
  }
}

}  // namespace rnicsim::sim::bench
