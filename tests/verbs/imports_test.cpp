// SPDX-License-Identifier: Apache-2.0
// Imported contexts, PDs and regions within one process. For imports of another process see
// tests/apps/host/processes_test.py.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

// An endpoint's PD and region in another context, as another part of the program would import them.
struct Imported {
  explicit Imported(Endpoint& end) : context(ibv_import_device(::dup(end.context->cmd_fd))) {
    pd = ibv_import_pd(context, end.pd->handle);
    mr = ibv_import_mr(pd, end.mr->handle);
  }
  ~Imported() {
    if (context != nullptr) ibv_close_device(context);
  }
  ibv_context* context;
  ibv_pd* pd;
  ibv_mr* mr;
};

ibv_qp* make_qp(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq;
  wanted.cap = {8, 8, 1, 1, 0};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  return ibv_create_qp(pd, &wanted);
}

class Imports : public RcPair {
 protected:
  using RcPair::RcPair;
};

TEST_F(Imports, ShowTheSameObjects) {
  run_alone([&](Endpoint& end) {
    ASSERT_GE(end.context->cmd_fd, 0);
    Imported other(end);
    ASSERT_NE(other.mr, nullptr);
    EXPECT_NE(other.context, end.context);
    EXPECT_EQ(other.context->device, end.context->device);
    EXPECT_EQ(other.pd->handle, end.pd->handle);
    EXPECT_EQ(other.pd->context, other.context);
    EXPECT_EQ(other.mr->lkey, end.mr->lkey);
    EXPECT_EQ(other.mr->rkey, end.mr->rkey);
    EXPECT_EQ(other.mr->length, end.mr->length);
    EXPECT_EQ(other.mr->addr, nullptr);
    EXPECT_EQ(other.mr->pd, other.pd);
    // A PD can also be imported into its own context.
    ibv_pd* again = ibv_import_pd(end.context, end.pd->handle);
    ASSERT_NE(again, nullptr);
    EXPECT_NE(again, end.pd);
    ibv_unimport_pd(again);
  });
}

// The device sees the PD of a queue pair and of a region, not their contexts.
TEST_F(Imports, CarryData) {
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint owner;
        std::fill(owner.buffer.begin(), owner.buffer.end(), 0x5a);
        Imported other(owner);
        ASSERT_NE(other.mr, nullptr);
        ibv_cq* cq = ibv_create_cq(other.context, 8, nullptr, nullptr, 0);
        ibv_qp* qp = make_qp(other.pd, cq);
        ASSERT_NE(qp, nullptr);
        ibv_qp* const owners = std::exchange(owner.qp, qp);
        owner.connect(addresses.swap(0, owner.address()));
        meet(0);
        ibv_send_wr write = owner.request(IBV_WR_RDMA_WRITE, 0, 4096, 8192), *bad;
        write.sg_list->lkey = other.mr->lkey;
        ASSERT_EQ(ibv_post_send(qp, &write, &bad), 0);
        ibv_wc wc;
        while (ibv_poll_cq(cq, 1, &wc) == 0) continue;
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        meet(0);
        // Objects of both contexts keep the PD in use.
        EXPECT_EQ(ibv_dereg_mr(other.mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(other.pd), EBUSY);
        owner.qp = owners;
        ibv_unimport_mr(std::exchange(owner.mr, nullptr));
        ibv_unimport_pd(other.pd);  // its queue pair stays
        EXPECT_EQ(ibv_destroy_qp(qp), 0);
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
      },
      [&] {
        Endpoint end;
        end.connect(addresses.swap(1, end.address()));
        meet(1);
        meet(1);
        EXPECT_TRUE(std::all_of(&end.buffer[8192], &end.buffer[8192 + 4096], [](auto byte) { return byte == 0x5a; }));
      });
}

class FewRegions : public Imports {
 protected:
  FewRegions() : Imports({"nic.capabilities.max_mr=8"}) {}
};

// A later region may get the index of a region that was destroyed through the other context.
TEST_F(FewRegions, AreDestroyedOnce) {
  run_alone([&](Endpoint& end) {
    Imported other(end);
    ASSERT_NE(other.mr, nullptr);
    const std::uint32_t place = end.mr->handle;
    EXPECT_EQ(ibv_dereg_mr(std::exchange(other.mr, nullptr)), 0);
    EXPECT_EQ(ibv_dereg_mr(end.mr), ENOENT);
    std::vector<ibv_mr*> later;
    do {
      later.push_back(ibv_reg_mr(end.pd, end.buffer.data(), 4096, IBV_ACCESS_LOCAL_WRITE));
      ASSERT_NE(later.back(), nullptr);
    } while (later.back()->handle != place);
    EXPECT_EQ(end.mr->length, end.buffer.size());
    ibv_unimport_mr(std::exchange(end.mr, nullptr));
    for (ibv_mr* mr : later) EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(Imports, RefuseWhatIsNotTheirs) {
  run_alone([&](Endpoint& end) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    for (const int wrong : {-1, 9999, ends[0], end.context->async_fd}) {
      EXPECT_EQ(ibv_import_device(wrong), nullptr);
      EXPECT_EQ(errno, EINVAL);
    }
    for (const int fd : ends) EXPECT_EQ(::close(fd), 0);  // the caller still owns them
    Imported other(end);
    EXPECT_EQ(ibv_import_pd(other.context, 0x1234), nullptr);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(ibv_import_mr(other.pd, 0x1234), nullptr);
    EXPECT_EQ(errno, ENOENT);
    ibv_pd* second = ibv_alloc_pd(end.context);
    ibv_pd* imported = ibv_import_pd(other.context, second->handle);
    ASSERT_NE(imported, nullptr);
    EXPECT_EQ(ibv_import_mr(imported, end.mr->handle), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_rereg_mr(other.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE),
              IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_dealloc_pd(imported), 0);
    ibv_unimport_pd(second);
    EXPECT_EQ(ibv_import_dm(other.context, 1), nullptr);
    EXPECT_EQ(errno, ENOENT);
  });
}

// The original context may be closed first; the imported context's descriptor is closed with the imported context.
TEST_F(Imports, EndInAnyOrder) {
  run_alone([&](Endpoint& end) {
    ibv_context* first = ibv_open_device(end.context->device);
    ibv_pd* pd = ibv_alloc_pd(first);
    const int fd = ::dup(first->cmd_fd);
    ibv_context* second = ibv_import_device(fd);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->cmd_fd, fd);
    ibv_pd* shared = ibv_import_pd(second, pd->handle);
    ibv_mr* mr = ibv_reg_mr(shared, end.buffer.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_close_device(first), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(shared), 0);
    EXPECT_EQ(ibv_close_device(second), 0);
    struct stat status;
    EXPECT_EQ(::fstat(fd, &status), -1);
  });
}

}  // namespace
}  // namespace rnicsim::testing
