// SPDX-License-Identifier: Apache-2.0
// Memory windows: accessible range, rights, lifetime, and the errors of wrong use.
#include "tests/verbs/memory/memory_windows.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"

namespace rnicsim::testing {
namespace {

const ibv_mw_type kTypes[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2};

// Requests that send no packet also wait until the queue continues.
TEST_F(MemoryWindows, ABindPostedToADrainedQueueIsDoneWhenItGoesOn) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    ASSERT_EQ(move(far().qp, IBV_QPS_SQD), 0);
    ibv_mw_bind bind{7, IBV_SEND_SIGNALED, part(0, 64)};
    ASSERT_EQ(ibv_bind_mw(far().qp, mw, &bind), 0);
    EXPECT_FALSE(completion_soon(far().cq));
    ASSERT_EQ(move(far().qp, IBV_QPS_RTS), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, AreAdvertised) {
  run_both([&] {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(far().context, &device), 0);
    EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
    EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    EXPECT_GT(device.max_mw, 0);
    errno = 0;
    EXPECT_EQ(ibv_alloc_mw(far().pd, ibv_mw_type(3)), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(MemoryWindows, OfType1OpenAPartOfTheirRegion) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    const auto before = mw->rkey;
    expect_closed(before, 4096);
    ibv_mw_bind bind{7, IBV_SEND_SIGNALED, part(4096, 8192)};
    ASSERT_EQ(ibv_bind_mw(far().qp, mw, &bind), 0);
    const auto key = mw->rkey;
    EXPECT_EQ(key >> 8, before >> 8);
    EXPECT_NE(key, before);
    const auto wc = far().completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_BIND_MW);
    EXPECT_EQ(wc.wr_id, 7u);

    near().buffer.assign(near().buffer.size(), 0x5a);
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, key, 4096, 8192), IBV_WC_SUCCESS);
    EXPECT_EQ(far().buffer[4095], 0);
    for (std::size_t i = 4096; i < 12288; ++i) ASSERT_EQ(far().buffer[i], 0x5a) << i;
    EXPECT_EQ(far().buffer[12288], 0);
    far().buffer[8000] = 9;
    EXPECT_EQ(reach(IBV_WR_RDMA_READ, key, 8000, 4), IBV_WC_SUCCESS);
    EXPECT_EQ(near().buffer[0], 9);
    EXPECT_EQ(reach(IBV_WR_ATOMIC_FETCH_AND_ADD, key, 4096), IBV_WC_SUCCESS);
    EXPECT_EQ(far().buffer[4096], 0x5b);

    for (const auto& [offset, length] : {std::pair{4095u, 1u}, {4088u, 16u}, {12288u, 1u}, {12281u, 8u}}) {
      EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, key, offset, length), IBV_WC_REM_ACCESS_ERR) << offset;
      reconnect();
    }
    expect_closed(before, 4096);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    expect_closed(key, 4096);
  });
}

TEST_F(MemoryWindows, GrantWhatTheySayAndNoMore) {
  run_both([&] {
    const std::pair<ibv_wr_opcode, unsigned> rights[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
                                                         {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
                                                         {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC}};
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    for (const auto& granted : rights) {
      // LOCAL_WRITE is often requested in addition.
      EXPECT_EQ(bind1(mw, part(0, 64, granted.second | IBV_ACCESS_LOCAL_WRITE)), IBV_WC_SUCCESS);
      for (const auto& used : rights) {
        const auto status = reach(used.first, mw->rkey, 0);
        EXPECT_EQ(status, used.first == granted.first ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        if (status != IBV_WC_SUCCESS) reconnect();
      }
    }
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType1AreBoundAgainAndClosed) {
  run_both([&] {
    std::vector<std::uint8_t> memory(4096);
    ibv_mr* other = ibv_reg_mr(far().pd, memory.data(), memory.size(), far().options.mr_access);
    ASSERT_NE(other, nullptr);
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
    const auto first = mw->rkey;
    EXPECT_EQ(bind1(mw, {other, reinterpret_cast<std::uint64_t>(memory.data()), 64, kAllRemote}), IBV_WC_SUCCESS);
    expect_closed(first, 0);
    near().buffer[0] = 3;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mw->rkey, reinterpret_cast<std::uint64_t>(memory.data()), 1), IBV_WC_SUCCESS);
    EXPECT_EQ(memory[0], 3);
    EXPECT_EQ(ibv_dereg_mr(other), EBUSY);
    const auto second = mw->rkey;
    EXPECT_EQ(bind1(mw, {nullptr, 0, 0, 0}), IBV_WC_SUCCESS);
    EXPECT_NE(mw->rkey, second);
    for (const auto key : {second, mw->rkey}) {
      EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, reinterpret_cast<std::uint64_t>(memory.data()), 1),
                IBV_WC_REM_ACCESS_ERR);
      reconnect();
    }
    EXPECT_EQ(ibv_dereg_mr(other), 0);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// After a failed bind the library's key is one ahead of the device's; the window's range is unchanged.
TEST_F(MemoryWindows, OfType1OutliveABindThatFailsOrIsFlushed) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    for (const bool bound : {false, true}) {
      const auto before = mw->rkey;
      EXPECT_EQ(bind1(mw, part(far().buffer.size() - 10, 64)), IBV_WC_MW_BIND_ERR);
      reconnect();
      ASSERT_EQ(move(far().qp, IBV_QPS_ERR), 0);
      EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_WR_FLUSH_ERR);
      reconnect();
      if (bound) {
        EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, before, 0), IBV_WC_SUCCESS);
      }
      EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
      EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, mw->rkey, 0), IBV_WC_SUCCESS);
    }
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// A send behind a bind may carry the window's key: the key is valid when the peer gets it.
TEST_F(MemoryWindows, ABindIsDoneBeforeTheSendBehindIt) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    ASSERT_EQ(near().receive(0, 64), 0);
    ibv_mw_bind bind{1, 0, part(0, 64)};
    ASSERT_EQ(ibv_bind_mw(far().qp, mw, &bind), 0);
    ASSERT_EQ(far().post(far().request(IBV_WR_SEND, 128, 4)), 0);
    EXPECT_EQ(near().completion().opcode, IBV_WC_RECV);
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, mw->rkey, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType2TakeTheirKeyFromTheCaller) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    const std::uint32_t wanted = 0xabcdef42;
    const auto key = (mw->rkey & ~0xffu) | 0x42;
    for (const auto& [other, offset] : {std::pair{wanted, 512u}, {key + 1, 512u}, {key, 508u}, {key, 764u}}) {
      EXPECT_EQ(bind2(mw, wanted, part(512, 256)), IBV_WC_SUCCESS);
      EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, key, 512, 256), IBV_WC_SUCCESS);
      EXPECT_EQ(reach(IBV_WR_RDMA_READ, key, 600), IBV_WC_SUCCESS);
      expect_closed(other, offset);  // and reconnects, which invalidates the window
    }
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType2MustBeFree) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    EXPECT_EQ(bind2(mw, 1, part(0, 64)), IBV_WC_SUCCESS);
    const auto key = (mw->rkey & ~0xffu) | 1;
    EXPECT_EQ(bind2(mw, 2, part(0, 64)), IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(far().state(), IBV_QPS_ERR);
    reconnect();
    // The reset has invalidated the window.
    EXPECT_EQ(bind2(mw, 1, part(0, 64)), IBV_WC_SUCCESS);
    EXPECT_EQ(local_invalidate(key), IBV_WC_SUCCESS);
    expect_closed(key, 0);
    EXPECT_EQ(bind2(mw, 3, part(0, 64)), IBV_WC_SUCCESS);
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, (mw->rkey & ~0xffu) | 3, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType2AreFreedByAPeer) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    EXPECT_EQ(bind2(mw, 9, part(0, 64)), IBV_WC_SUCCESS);
    const auto key = (mw->rkey & ~0xffu) | 9;
    EXPECT_EQ(ibv_dereg_mr(far().mr), EBUSY);
    ASSERT_EQ(far().receive(1024, 64), 0);
    auto wr = near().request(IBV_WR_SEND_WITH_INV, 0, 16);
    wr.invalidate_rkey = key;
    ASSERT_EQ(near().post(wr), 0);
    EXPECT_EQ(near().completion().status, IBV_WC_SUCCESS);
    const auto wc = far().completion();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_RECV);
    EXPECT_TRUE(wc.wc_flags & IBV_WC_WITH_INV);
    EXPECT_EQ(wc.invalidated_rkey, key);
    expect_closed(key, 0);
    EXPECT_EQ(bind2(mw, 10, part(0, 64)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// One acknowledgement may cover several messages, but not one whose key has not been checked yet.
TEST_F(MemoryWindows, AMessageThatCantFreeItsKeyIsNotPassedOver) {
  run_both([&] {
    for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(far().receive(1024, 2048, id), 0);
    auto first = near().request(IBV_WR_SEND, 0, 2048);
    ibv_sge sge = *first.sg_list;
    first.sg_list = &sge;
    auto last = first;
    auto invalidates = near().request(IBV_WR_SEND_WITH_INV, 0, 0);
    invalidates.num_sge = 0;
    invalidates.invalidate_rkey = 0xffff00;
    first.next = &invalidates;
    invalidates.next = &last;
    ASSERT_EQ(near().post(first), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of(far().cq), IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(status_of(far().cq), IBV_WC_WR_FLUSH_ERR);
  });
}

TEST_F(MemoryWindows, OfType2MayCountFromZero) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    EXPECT_EQ(bind2(mw, 5, part(1000, 100, kAllRemote | IBV_ACCESS_ZERO_BASED)), IBV_WC_SUCCESS);
    const auto key = (mw->rkey & ~0xffu) | 5;
    near().buffer[0] = 77;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, 99, 1), IBV_WC_SUCCESS);
    EXPECT_EQ(far().buffer[1099], 77);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, 100, 1), IBV_WC_REM_ACCESS_ERR);
    reconnect();
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType2AreOneQueuePairsOnly) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    ibv_qp* other = another_qp(far());
    ASSERT_NE(other, nullptr);
    std::swap(far().qp, other);
    far().connect(near().address());  // as far as a bind requires it
    EXPECT_EQ(bind2(mw, 6, part(0, 64)), IBV_WC_SUCCESS);
    const auto key = (mw->rkey & ~0xffu) | 6;
    std::swap(far().qp, other);
    expect_closed(key, 0);
    EXPECT_EQ(local_invalidate(key), IBV_WC_MW_BIND_ERR);
    reconnect();
    ASSERT_EQ(far().receive(1024, 64), 0);
    auto wr = near().request(IBV_WR_SEND_WITH_INV, 0, 16);
    wr.invalidate_rkey = key;
    ASSERT_EQ(near().post(wr), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_REM_INV_REQ_ERR);
    EXPECT_NE(status_of(near().cq), IBV_WC_SUCCESS);
    reconnect();
    // The window's own queue pair has not failed.
    std::swap(far().qp, other);
    EXPECT_EQ(local_invalidate(key), IBV_WC_SUCCESS);
    std::swap(far().qp, other);
    EXPECT_EQ(ibv_destroy_qp(other), 0);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, OfType2EndWithTheirQueuePair) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    const auto key = (mw->rkey & ~0xffu) | 6;
    for (const bool destroy : {false, true}) {
      EXPECT_EQ(bind2(mw, 6, part(0, 64)), IBV_WC_SUCCESS);
      EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, key, 0), IBV_WC_SUCCESS);
      if (destroy) {
        // Until the QP number is used again.
        const auto number = far().qp->qp_num;
        for (;;) {
          ASSERT_EQ(ibv_destroy_qp(far().qp), 0);
          far().qp = another_qp(far());
          ASSERT_NE(far().qp, nullptr);
          if (far().qp->qp_num == number) break;
        }
      }
      reconnect();
      expect_closed(key, 0);
      // A window that nothing can use does not count for its region.
      EXPECT_EQ(ibv_rereg_mr(far().mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, far().options.mr_access), 0);
    }
    EXPECT_EQ(bind2(mw, 7, part(0, 64)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, AreNoLocalKeys) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
    auto wr = far().request(IBV_WR_RDMA_WRITE, 0, 8);
    wr.sg_list->lkey = mw->rkey;
    ASSERT_EQ(far().post(wr), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// Checks of a bind after IBTA 10.6.6.2, for both types.
TEST_F(MemoryWindows, BindsThatAreRefused) {
  run_both([&] {
    std::vector<std::uint8_t> memory(4096);
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    const auto region = [&](ibv_pd* pd, int access) { return ibv_reg_mr(pd, memory.data(), memory.size(), access); };
    ibv_pd* elsewhere = ibv_alloc_pd(far().context);
    struct Mistake {
      const char* name;
      ibv_mr* mr;
      std::uint64_t address, length;
      unsigned access;
    };
    const int all = far().options.mr_access;
    ibv_mr* good = region(far().pd, all);
    const Mistake mistakes[] = {
        {"no right to bind", region(far().pd, all & ~IBV_ACCESS_MW_BIND), address, 64, kAllRemote},
        {"before it", good, address - 1, 64, kAllRemote},
        {"beyond it", good, address + 4000, 97, kAllRemote},
        {"beyond all", good, address + 1, ~0ull, kAllRemote},
        {"far away", good, 0, 64, kAllRemote},
        {"written without local write", region(far().pd, IBV_ACCESS_MW_BIND), address, 64, IBV_ACCESS_REMOTE_WRITE},
        {"atomics without local write", region(far().pd, IBV_ACCESS_MW_BIND), address, 64, IBV_ACCESS_REMOTE_ATOMIC},
        {"zero based", region(far().pd, all | IBV_ACCESS_ZERO_BASED), 0, 64, kAllRemote},
    };
    for (const auto type : kTypes)
      for (const auto& mistake : mistakes) {
        SCOPED_TRACE(::testing::Message() << mistake.name << ", type " << type);
        ASSERT_NE(mistake.mr, nullptr);
        ibv_mw* mw = make(type);
        const ibv_mw_bind_info info{mistake.mr, mistake.address, mistake.length, mistake.access};
        EXPECT_EQ(type == IBV_MW_TYPE_1 ? bind1(mw, info) : bind2(mw, 1, info), IBV_WC_MW_BIND_ERR);
        EXPECT_EQ(far().state(), IBV_QPS_ERR);
        EXPECT_EQ(near().state(), IBV_QPS_RTS);
        reconnect();
        expect_closed(mw->rkey, 0);
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
      }
    // Checks for type 2 alone.
    ibv_mr* other = region(elsewhere, all);
    for (const ibv_mw_bind_info& info : {ibv_mw_bind_info{nullptr, 0, 0, kAllRemote},
                                         {good, address, 0, kAllRemote},
                                         {nullptr, address, 64, kAllRemote},
                                         {other, address, 64, kAllRemote}}) {
      ibv_mw* mw = make(IBV_MW_TYPE_2);
      EXPECT_EQ(bind2(mw, 1, info), IBV_WC_MW_BIND_ERR);
      reconnect();
      EXPECT_EQ(ibv_dealloc_mw(mw), 0);
    }
    // A window whose PD is not the queue pair's.
    ibv_mw* foreign = ibv_alloc_mw(elsewhere, IBV_MW_TYPE_2);
    EXPECT_EQ(bind2(foreign, 1, {other, address, 64, kAllRemote}), IBV_WC_MW_BIND_ERR);
    reconnect();
    EXPECT_EQ(ibv_dealloc_mw(foreign), 0);
    for (const auto& mistake : mistakes)
      if (mistake.mr != good) {
        EXPECT_EQ(ibv_dereg_mr(mistake.mr), 0);
      }
    for (ibv_mr* mr : {good, other}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(elsewhere), 0);
    EXPECT_GT(host(1).counters().nic.windows.refused, 20u);
  });
}

TEST_F(MemoryWindows, WhatTheLibraryRefuses) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    ibv_mw* mw2 = make(IBV_MW_TYPE_2);
    const auto refused = [&](ibv_mw* window, const ibv_mw_bind_info& info) {
      const auto key = window->rkey;
      ibv_mw_bind bind{1, IBV_SEND_SIGNALED, info};
      const int error = ibv_bind_mw(far().qp, window, &bind);
      EXPECT_EQ(window->rkey, key);
      return error;
    };
    EXPECT_EQ(refused(mw2, part(0, 64)), EINVAL);
    EXPECT_EQ(refused(mw, {nullptr, 1, 0, 0}), EINVAL);
    EXPECT_EQ(refused(mw, {nullptr, 0, 1, 0}), EINVAL);
    EXPECT_EQ(refused(mw, part(0, 64, kAllRemote | IBV_ACCESS_ZERO_BASED)), EINVAL);
    EXPECT_EQ(refused(mw, part(0, 64, kAllRemote | IBV_ACCESS_MW_BIND)), EINVAL);
    ibv_pd* elsewhere = ibv_alloc_pd(far().context);
    ibv_mr* other = ibv_reg_mr(elsewhere, far().buffer.data(), 64, far().options.mr_access);
    EXPECT_EQ(refused(mw, {other, part(0, 0).addr, 64, kAllRemote}), EPERM);
    EXPECT_EQ(ibv_dereg_mr(other), 0);
    EXPECT_EQ(ibv_dealloc_pd(elsewhere), 0);

    ibv_send_wr* bad = nullptr;
    for (auto wr : {request2(mw, 1, part(0, 64)), request2(nullptr, 1, part(0, 64)),
                    request2(mw2, 1, part(0, 64, IBV_ACCESS_ON_DEMAND))}) {
      EXPECT_EQ(ibv_post_send(far().qp, &wr, &bad), EINVAL);
      EXPECT_EQ(bad, &wr);
    }
    // A bind occupies an entry of the send queue as any other request.
    ASSERT_EQ(move(near().qp, IBV_QPS_RESET), 0);
    int posted = 0;
    while (far().post(far().request(IBV_WR_RDMA_WRITE, 0, 8)) == 0) ++posted;
    EXPECT_GE(posted, 32);
    EXPECT_EQ(refused(mw, part(0, 64)), ENOMEM);
    ASSERT_EQ(move(far().qp, IBV_QPS_RESET), 0);
    EXPECT_EQ(refused(mw, part(0, 64)), EINVAL);

    std::swap(mw->handle, mw2->handle);
    for (ibv_mw* window : {mw, mw2}) EXPECT_EQ(ibv_dealloc_mw(window), ENOENT);
    std::swap(mw->handle, mw2->handle);
    for (ibv_mw* window : {mw, mw2}) {
      EXPECT_EQ(ibv_dealloc_pd(far().pd), EBUSY);
      EXPECT_EQ(ibv_dealloc_mw(window), 0);
    }
  });
}

// The key identifies the window.
TEST_F(MemoryWindows, BindingDoesNotLookAtTheHandle) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    const auto handle = std::exchange(mw->handle, 0x00654321);
    EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, mw->rkey, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), ENOENT);
    mw->handle = handle;
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, AWindowOfType2CarriesTheKeyOfItsLastBind) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_2);
    const std::uint32_t index = mw->rkey & ~0xffu;
    for (const std::uint32_t tag : {0x11u, 0x22u}) {
      EXPECT_EQ(bind2(mw, 0xabcdef00 | tag, part(0, 64)), IBV_WC_SUCCESS);
      EXPECT_EQ(mw->rkey, index | tag);
      EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, mw->rkey, 0), IBV_WC_SUCCESS);
      EXPECT_EQ(local_invalidate(mw->rkey), IBV_WC_SUCCESS);
    }
    // A request that is not posted changes nothing.
    ibv_send_wr* bad = nullptr;
    auto refused = request2(mw, 0x33, part(0, 64, IBV_ACCESS_ON_DEMAND));
    EXPECT_EQ(ibv_post_send(far().qp, &refused, &bad), EINVAL);
    EXPECT_EQ(mw->rkey, index | 0x22);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

TEST_F(MemoryWindows, KeysThatCannotBeInvalidated) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
    for (const auto key : {mw->rkey, far().mr->rkey, 0u, ~0u}) {
      EXPECT_EQ(local_invalidate(key), IBV_WC_MW_BIND_ERR);
      reconnect();
      ASSERT_EQ(far().receive(1024, 64), 0);
      auto wr = near().request(IBV_WR_SEND_WITH_INV, 0, 16);
      wr.invalidate_rkey = key;
      ASSERT_EQ(near().post(wr), 0);
      EXPECT_EQ(status_of(far().cq), IBV_WC_REM_INV_REQ_ERR);
      EXPECT_EQ(status_of(near().cq), IBV_WC_RETRY_EXC_ERR);
      reconnect();
    }
    EXPECT_EQ(reach(IBV_WR_RDMA_WRITE, mw->rkey, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// A message whose key cannot be invalidated is followed by a message that is too long: only the latter's receive is
// flushed.
TEST_F(MemoryWindows, AKeyThatCannotBeInvalidatedFlushesTheReceiveOfARefusedMessage) {
  run_both([&] {
    ASSERT_EQ(far().receive(1024, 64, 1), 0);
    ASSERT_EQ(far().receive(1024, 8, 2), 0);
    auto first = near().request(IBV_WR_SEND_WITH_INV, 0, 16);
    auto second = near().request(IBV_WR_SEND, 0, 16);
    first.invalidate_rkey = 0;
    first.next = &second;
    ASSERT_EQ(near().post(first), 0);
    const auto refused = far().completion();
    EXPECT_EQ(refused.status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(refused.wr_id, 1u);
    const auto flushed = far().completion();
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(flushed.wr_id, 2u);
    reconnect();
  });
}

TEST_F(MemoryWindows, AreBoundThroughTheExtendedCalls) {
  run_alone(
      [](Endpoint& end) {
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.cap = {4, 4, 1, 1, 0};
        wanted.qp_type = IBV_QPT_RC;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = end.pd;
        wanted.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = ibv_create_qp_ex(end.context, &wanted);
        ASSERT_NE(end.qp, nullptr);
        end.connect(end.address());
        ibv_qp_ex* qp = ibv_qp_to_qp_ex(end.qp);
        ibv_mw* mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_2);
        ASSERT_NE(mw, nullptr);
        ibv_mw_bind_info info{end.mr, reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, IBV_ACCESS_REMOTE_READ};
        ibv_wr_start(qp);
        qp->wr_id = 5;
        qp->wr_flags = IBV_SEND_SIGNALED;
        const auto before = mw->rkey, after = ibv_inc_rkey(mw->rkey);
        ibv_wr_bind_mw(qp, mw, after, &info);
        qp->wr_id = 6;
        ibv_wr_local_inv(qp, after);
        EXPECT_EQ(mw->rkey, before);  // the batch may still be aborted
        ASSERT_EQ(ibv_wr_complete(qp), 0);
        EXPECT_EQ(mw->rkey, after);
        for (const auto opcode : {IBV_WC_BIND_MW, IBV_WC_LOCAL_INV}) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.opcode, opcode);
        }
        ibv_wr_start(qp);
        ibv_wr_bind_mw(qp, mw, 1, &info);
        ibv_wr_abort(qp);
        EXPECT_EQ(mw->rkey, after);
        ibv_wr_start(qp);
        ibv_wr_bind_mw(qp, mw, 2, &info);
        info.mw_access_flags = IBV_ACCESS_HUGETLB;
        ibv_wr_bind_mw(qp, mw, 3, &info);
        EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
        EXPECT_EQ(mw->rkey, after);
        ibv_wr_start(qp);
        ASSERT_EQ(ibv_wr_complete(qp), 0);
        EXPECT_EQ(mw->rkey, after);
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
      },
      [] {
        EndpointOptions options;
        options.mr_access |= IBV_ACCESS_MW_BIND;
        return options;
      }());
}

TEST_F(MemoryWindows, ALeftOneGoesWithItsContext) {
  run_both([&] {
    ibv_mw* mw = make(IBV_MW_TYPE_1);
    EXPECT_EQ(bind1(mw, part(0, 64)), IBV_WC_SUCCESS);
    Endpoint& end = far();
    EXPECT_EQ(ibv_close_device(end.context), 0);
    end.context = nullptr;
    end.pd = nullptr;
    end.cq = nullptr;
    end.qp = nullptr;
    end.mr = nullptr;
  });
}

class WithoutWindows : public RcPair {
 protected:
  WithoutWindows() : RcPair({"nic.capabilities.windows=false"}) {}
};
TEST_F(WithoutWindows, TheyAreRefused) {
  run_alone([](Endpoint& end) {
    for (const auto type : kTypes) {
      errno = 0;
      EXPECT_EQ(ibv_alloc_mw(end.pd, type), nullptr);
      EXPECT_EQ(errno, EOPNOTSUPP);
    }
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_EQ(device.max_mw, 0);
    EXPECT_FALSE(device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B));
    end.connect(end.address());
    ibv_mw mw{};
    mw.context = end.context;
    mw.type = IBV_MW_TYPE_2;
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw.mw = &mw;
    EXPECT_EQ(end.post(wr), EINVAL);
  });
}

}  // namespace
}  // namespace rnicsim::testing
