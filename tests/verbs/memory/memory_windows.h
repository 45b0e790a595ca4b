// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of memory windows.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/verbs/near_and_far.h"

namespace rnicsim::testing {

inline constexpr unsigned kAllRemote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class MemoryWindows : public NearAndFar {
 protected:
  using NearAndFar::NearAndFar;
  void SetUp() override {
    if (!windows()) GTEST_SKIP() << "nic.capabilities.windows";
  }

  // The windows are on memory of `far`.
  void run_both(const std::function<void()>& action) {
    EndpointOptions options;
    options.mr_access |= IBV_ACCESS_MW_BIND;
    NearAndFar::run_both(action, options);
  }

  ibv_mw* make(ibv_mw_type type) {
    ibv_mw* mw = ibv_alloc_mw(far().pd, type);
    EXPECT_NE(mw, nullptr);
    return mw;
  }
  ibv_mw_bind_info part(std::uint64_t offset, std::uint64_t length, unsigned access = kAllRemote) {
    return {far().mr, reinterpret_cast<std::uint64_t>(far().buffer.data()) + offset, length, access};
  }
  ibv_wc_status bind1(ibv_mw* mw, const ibv_mw_bind_info& info) {
    ibv_mw_bind bind{7, IBV_SEND_SIGNALED, info};
    EXPECT_EQ(ibv_bind_mw(far().qp, mw, &bind), 0);
    return status_of(far().cq);
  }
  static ibv_send_wr request2(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = info;
    return wr;
  }
  ibv_wc_status bind2(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
    EXPECT_EQ(far().post(request2(mw, rkey, info)), 0);
    return status_of(far().cq);
  }
  ibv_wc_status local_invalidate(std::uint32_t rkey) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = rkey;
    EXPECT_EQ(far().post(wr), 0);
    return status_of(far().cq);
  }
  // Accesses `far`'s buffer at an offset.
  ibv_wc_status reach(ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t offset, std::uint32_t length = 8) {
    return access(opcode, rkey, reinterpret_cast<std::uint64_t>(far().buffer.data()) + offset, length);
  }
  void expect_closed(std::uint32_t rkey, std::uint64_t offset) {
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, rkey, offset), IBV_WC_REM_ACCESS_ERR);
    reconnect();
  }
  // A further QP in the same PD.
  static ibv_qp* another_qp(Endpoint& end) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {4, 4, 1, 1, 0};
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = 1;
    return ibv_create_qp(end.pd, &wanted);
  }
};

}  // namespace rnicsim::testing
