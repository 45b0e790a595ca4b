// SPDX-License-Identifier: Apache-2.0
// On-demand regions: pages are brought in when the device requests them, and invalidated when the program unmaps them;
// and errors for pages that do not exist.
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <span>

#include "model/host/kernel_agent.h"
#include "model/host/memory/page_faults.h"
#include "model/host/software_process.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/near_and_far.h"

namespace rnicsim::testing {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kAll =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr int kOnDemand = kAll | IBV_ACCESS_ON_DEMAND;

std::uint64_t at(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

// Memory that the program can unmap and map again.
class Pages {
 public:
  explicit Pages(std::size_t count) : bytes_(count * kPage) { map(); }
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }
  std::size_t size() const { return bytes_; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(memory_), bytes_}; }
  void fill(std::uint8_t first) {
    for (std::size_t i = 0; i < bytes_; ++i) data()[i] = std::uint8_t(first + i * 7 + i / kPage);
  }
  bool filled(std::uint8_t first, std::size_t from, std::size_t length) const {
    for (std::size_t i = from; i < from + length; ++i)
      if (data()[i] != std::uint8_t(first + i * 7 + i / kPage)) return false;
    return true;
  }
  void unmap() { ASSERT_EQ(munmap(memory_, bytes_), 0); }
  void map() {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (memory_ != nullptr ? MAP_FIXED : 0);
    memory_ = mmap(memory_, bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void protect(int rights) { ASSERT_EQ(mprotect(memory_, bytes_, rights), 0); }

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
};

struct Dereg {
  void operator()(ibv_mr* mr) const { EXPECT_EQ(ibv_dereg_mr(mr), 0); }
};
using Region = std::unique_ptr<ibv_mr, Dereg>;

Region region(Endpoint& end, const Pages& pages, int access = kOnDemand) {
  return Region(ibv_reg_mr(end.pd, pages.data(), pages.size(), access));
}

class OnDemand : public NearAndFar {
 protected:
  using NearAndFar::NearAndFar;

  host::PageFaultCounters paging(std::size_t index) { return host(index).agent().counters().on_demand; }
  nic::TranslationCacheCounters atc(std::size_t index) { return host(index).nic().counters().atc; }

  ibv_wc_status transfer(ibv_wr_opcode opcode, const ibv_mr& local, std::uint64_t from, std::uint32_t length,
                         const ibv_mr& remote, std::uint64_t to) {
    ibv_sge sge{from, length, local.lkey};
    auto wr = near().request(opcode, 0, 0);
    wr.sg_list = &sge;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
      wr.wr.atomic = {to, 1, 0, remote.rkey};
    else
      wr.wr.rdma = {to, remote.rkey};
    EXPECT_EQ(near().post(wr), 0);
    return status_of(near().cq);
  }
  void receive(Endpoint& end, const ibv_mr& mr, std::uint64_t address, std::uint32_t length) {
    ibv_sge sge{address, length, mr.lkey};
    ibv_recv_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
  }
  // Invalidates pages on the host of the calling thread.
  void withdraw(std::size_t index, const Pages& pages) { process(index).port().withdraw(pages.bytes()); }
};

TEST_F(OnDemand, IsSaidOfTheDevice) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    EXPECT_EQ(device.odp_caps.general_caps, std::uint64_t(IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
    const auto queues = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    const auto& of = device.odp_caps.per_transport_caps;
    EXPECT_EQ(of.rc_odp_caps, unsigned(queues | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
                                       IBV_ODP_SUPPORT_SRQ_RECV));
    EXPECT_EQ(of.uc_odp_caps, unsigned(queues | IBV_ODP_SUPPORT_WRITE));
    EXPECT_EQ(of.ud_odp_caps, unsigned(queues));
  });
}

TEST_F(OnDemand, EachOperationBringsItsPagesIn) {
  run_both([this] {
    Pages mine(8), theirs(8);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    ASSERT_TRUE(local && remote);
    EXPECT_EQ(atc(0).translations + atc(1).translations, 0u);
    mine.fill(3);
    // Three packets and three pages, with different boundaries.
    EXPECT_EQ(
        transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()) + 100, 3000 + kPage, *remote, at(theirs.data()) + 100),
        IBV_WC_SUCCESS);
    EXPECT_TRUE(theirs.filled(3, 100, 3000 + kPage));
    EXPECT_EQ(theirs.data()[99], 0);
    EXPECT_EQ(paging(0).page_faults, 2u);
    EXPECT_EQ(paging(1).page_faults, 2u);
    EXPECT_GT(counters(1).absent_rnr, 0u);
    EXPECT_EQ(counters(1).out_of_buffer, 0u);

    theirs.fill(9);
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, *local, at(mine.data()) + 2 * kPage, 2 * kPage, *remote,
                       at(theirs.data()) + 2 * kPage),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(mine.filled(9, 2 * kPage, 2 * kPage));
    EXPECT_EQ(paging(0).page_faults, 4u);
    EXPECT_EQ(paging(1).page_faults, 4u);

    receive(far(), *remote, at(theirs.data()) + 4 * kPage, 2 * kPage);
    mine.fill(17);
    EXPECT_EQ(transfer(IBV_WR_SEND, *local, at(mine.data()) + 4 * kPage, 2 * kPage, *remote, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
    EXPECT_TRUE(theirs.filled(17, 4 * kPage, 2 * kPage));
    EXPECT_EQ(paging(1).page_faults, 6u);

    std::uint64_t before = 41;
    std::memcpy(theirs.data() + 6 * kPage, &before, 8);
    EXPECT_EQ(transfer(IBV_WR_ATOMIC_FETCH_AND_ADD, *local, at(mine.data()) + 6 * kPage, 8, *remote,
                       at(theirs.data()) + 6 * kPage),
              IBV_WC_SUCCESS);
    std::uint64_t after, original;
    std::memcpy(&after, theirs.data() + 6 * kPage, 8);
    std::memcpy(&original, mine.data() + 6 * kPage, 8);
    EXPECT_EQ(after, 42u);
    EXPECT_EQ(original, 41u);

    // Present pages are not requested again, except for writing after reading.
    const auto faults = paging(0).page_faults;
    const auto again = [&](std::size_t page) {
      return transfer(IBV_WR_RDMA_READ, *local, at(mine.data()) + page * kPage, 2 * kPage, *remote, at(theirs.data()));
    };
    EXPECT_EQ(again(2), IBV_WC_SUCCESS);
    EXPECT_EQ(paging(0).page_faults, faults);
    EXPECT_EQ(again(0), IBV_WC_SUCCESS);
    EXPECT_EQ(paging(0).page_faults, faults + 2);
    EXPECT_EQ(paging(1).page_faults, 7u);
  });
}

// A SEND of one packet needs only the pages that it fills, not the pages of the whole receive.
TEST_F(OnDemand, AReceiveBringsInWhatItsMessageFills) {
  run_both([this] {
    Pages theirs(4);
    const auto remote = region(far(), theirs);
    receive(far(), *remote, at(theirs.data()), 4 * kPage);
    EXPECT_EQ(transfer(IBV_WR_SEND, *near().mr, at(near().buffer.data()), 100, *remote, 0), IBV_WC_SUCCESS);
    EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
    EXPECT_EQ(paging(1).page_faults, 1u);
  });
}

TEST_F(OnDemand, MemoryThatIsUnmappedAndMappedAgainIsOther) {
  run_both([this] {
    Pages mine(2), theirs(2);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    for (std::uint8_t round = 1; round < 4; ++round) {
      mine.fill(round);
      EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), 2 * kPage, *remote, at(theirs.data())),
                IBV_WC_SUCCESS);
      EXPECT_TRUE(theirs.filled(round, 0, 2 * kPage));
      for (std::size_t i : {0, 1}) withdraw(i, i == 0 ? mine : theirs);
      mine.unmap(), theirs.unmap();
      mine.map(), theirs.map();
    }
    for (std::size_t i : {0, 1}) {
      EXPECT_EQ(paging(i).page_faults, 6u);
      EXPECT_EQ(paging(i).page_invalidations, 6u);
      EXPECT_EQ(atc(i).invalidations, 3u);
    }
  });
}

TEST_F(OnDemand, WhatIsNotThereIsRefusedAsABadRangeIs) {
  run_both([this] {
    Pages mine(1), theirs(1);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    theirs.unmap();
    const auto try_all = [&](ibv_wc_status status) {
      for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
        EXPECT_EQ(transfer(opcode, *local, at(mine.data()), 8, *remote, at(theirs.data())), status);
        reconnect();
      }
    };
    try_all(IBV_WC_REM_ACCESS_ERR);
    theirs.map();
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), 8, *remote, at(theirs.data())), IBV_WC_SUCCESS);
    withdraw(0, mine);
    mine.unmap();
    try_all(IBV_WC_LOC_PROT_ERR);
    mine.map();
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, *local, at(mine.data()), 8, *remote, at(theirs.data())), IBV_WC_SUCCESS);
    EXPECT_GT(paging(0).page_faults_failed, 0u);
    EXPECT_GT(paging(1).page_faults_failed, 0u);
  });
}

TEST_F(OnDemand, ReadOnlyMemoryIsForReading) {
  run_both([this] {
    Pages theirs(1);
    const auto remote = region(far(), theirs);
    theirs.fill(5);
    theirs.protect(PROT_READ);
    const auto& buffer = *near().mr;
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, buffer, at(near().buffer.data()), 64, *remote, at(theirs.data())),
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(near().buffer.data(), theirs.data(), 64), 0);
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, buffer, at(near().buffer.data()), 64, *remote, at(theirs.data())),
              IBV_WC_REM_ACCESS_ERR);
    reconnect();
    // The page stays valid, and becomes writable when its rights allow it.
    theirs.protect(PROT_READ | PROT_WRITE);
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, buffer, at(near().buffer.data()), 64, *remote, at(theirs.data())),
              IBV_WC_SUCCESS);
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, buffer, at(near().buffer.data()), 64, *remote, at(theirs.data())),
              IBV_WC_SUCCESS);
  });
}

TEST_F(OnDemand, ARegionMayBeAllOfTheAddressSpace) {
  run_both([this] {
    Pages mine(1), theirs(1);
    const Region local(ibv_reg_mr(near().pd, nullptr, SIZE_MAX, kOnDemand));
    const Region remote(ibv_reg_mr(far().pd, nullptr, SIZE_MAX, kOnDemand));
    ASSERT_TRUE(local && remote);
    mine.fill(7);
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), kPage, *remote, at(theirs.data())), IBV_WC_SUCCESS);
    EXPECT_TRUE(theirs.filled(7, 0, kPage));
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), 8, *remote, 8), IBV_WC_REM_ACCESS_ERR);
    reconnect();
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), 8, *remote, ~0ull - 6), IBV_WC_REM_ACCESS_ERR);
    reconnect();
    errno = 0;
    EXPECT_EQ(ibv_reg_mr_iova2(near().pd, nullptr, SIZE_MAX, 4096, unsigned(kOnDemand)), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(near().pd, mine.data(), SIZE_MAX, kOnDemand), nullptr);
    EXPECT_EQ(errno, EINVAL);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(near().pd, nullptr, SIZE_MAX, kAll), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(OnDemand, AdviceBringsPagesInBefore) {
  run_both([this] {
    Pages mine(4);
    const auto local = region(near(), mine);
    ibv_sge sge{at(mine.data()), 2 * kPage, local->lkey};
    const auto advise = [&](ibv_advise_mr_advice advice, std::uint32_t flags, const ibv_sge& range) {
      auto copy = range;
      return ibv_advise_mr(near().pd, advice, flags, &copy, 1);
    };
    EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, sge), 0);
    EXPECT_EQ(paging(0).page_prefetch, 2u);
    EXPECT_EQ(transfer(IBV_WR_RDMA_READ, *local, at(mine.data()), 2 * kPage, *far().mr, at(far().buffer.data())),
              IBV_WC_SUCCESS);
    EXPECT_EQ(paging(0).page_faults, 0u);
    // Without the flush flag they are brought in later.
    sge.addr += 2 * kPage;
    EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge), 0);
    EXPECT_EQ(paging(0).page_prefetch, 2u);
    pass(0, kSettled);
    EXPECT_EQ(paging(0).page_prefetch, 4u);
    EXPECT_EQ(
        transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()) + 2 * kPage, kPage, *far().mr, at(far().buffer.data())),
        IBV_WC_SUCCESS);
    EXPECT_EQ(paging(0).page_faults, 0u);
    EXPECT_EQ(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, sge), 0);
  });
}

TEST_F(OnDemand, BadAdviceIsRefused) {
  run_both([this] {
    Pages mine(2);
    const auto local = region(near(), mine);
    const auto reads = region(near(), mine, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
    ibv_pd* other = ibv_alloc_pd(near().context);
    const auto call = [&](ibv_pd* pd, int advice, std::uint32_t flags, ibv_sge sge, std::uint32_t count = 1) {
      return ibv_advise_mr(pd, ibv_advise_mr_advice(advice), flags, &sge, count);
    };
    const ibv_sge good{at(mine.data()), kPage, local->lkey};
    const int read = IBV_ADVISE_MR_ADVICE_PREFETCH, write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    const std::uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
    EXPECT_EQ(call(near().pd, read, flush, good), 0);
    EXPECT_EQ(call(near().pd, 3, flush, good), EOPNOTSUPP);
    EXPECT_EQ(call(near().pd, read, flush | 2, good), EINVAL);
    EXPECT_EQ(call(near().pd, read, flush, good, 0), EINVAL);
    EXPECT_EQ(call(other, read, flush, good), EPERM);
    EXPECT_EQ(call(near().pd, read, flush, {good.addr, kPage, local->lkey ^ 1}), ENOENT);
    EXPECT_EQ(call(near().pd, read, flush, {at(near().buffer.data()), 64, near().mr->lkey}), ENOENT);
    EXPECT_EQ(call(near().pd, read, flush, {good.addr, kPage, reads->lkey}), 0);
    EXPECT_EQ(call(near().pd, write, flush, {good.addr, kPage, reads->lkey}), EPERM);
    EXPECT_EQ(call(near().pd, read, flush, {good.addr, 2 * kPage, local->lkey}), 0);
    EXPECT_EQ(call(near().pd, read, flush, {good.addr, 2 * kPage + 1, local->lkey}), EFAULT);
    EXPECT_EQ(call(near().pd, read, flush, {good.addr - 1, 1, local->lkey}), EFAULT);
    const auto handle = std::exchange(other->handle, 12345);
    EXPECT_EQ(call(other, read, flush, good), EINVAL);
    other->handle = handle;
    // An invalid entry prevents the earlier entries from being brought in.
    const auto before = paging(0).page_prefetch;
    withdraw(0, mine);
    ibv_sge both[] = {good, {good.addr, kPage, local->lkey ^ 1}};
    EXPECT_EQ(ibv_advise_mr(near().pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, both, 2), ENOENT);
    EXPECT_EQ(paging(0).page_prefetch, before);
    mine.unmap();
    EXPECT_EQ(call(near().pd, read, flush, good), EFAULT);
    mine.map();
    EXPECT_EQ(ibv_dealloc_pd(other), 0);
  });
}

TEST_F(OnDemand, RegionsAreRegisteredAnewOfOneKindAndTheOther) {
  run_both([this] {
    Pages first(1), second(1);
    const auto remote = region(far(), first);
    const auto write = [&](const Pages& to) {
      std::memset(near().buffer.data(), 0x5a, 64);
      const auto status = transfer(IBV_WR_RDMA_WRITE, *near().mr, at(near().buffer.data()), 64, *remote, at(to.data()));
      return status == IBV_WC_SUCCESS && to.data()[63] == 0x5a;
    };
    EXPECT_TRUE(write(first));
    ASSERT_EQ(ibv_rereg_mr(remote.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, second.data(), kPage, 0), 0);
    EXPECT_TRUE(write(second));
    EXPECT_EQ(paging(1).page_faults, 2u);
    ASSERT_EQ(ibv_rereg_mr(remote.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), 0);
    withdraw(1, second);  // the region is pinned now
    std::memset(second.data(), 0, kPage);
    EXPECT_TRUE(write(second));
    EXPECT_EQ(paging(1).page_faults, 2u);
    ASSERT_EQ(ibv_rereg_mr(remote.get(), IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kOnDemand), 0);
    std::memset(second.data(), 0, kPage);
    EXPECT_TRUE(write(second));
    EXPECT_EQ(paging(1).page_faults, 3u);
  });
}

TEST_F(OnDemand, AddressesMayCountFromZero) {
  run_both([this] {
    Pages theirs(2);
    const auto remote = region(far(), theirs, kOnDemand | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB);
    ASSERT_TRUE(remote);
    fill(near());
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *near().mr, at(near().buffer.data()), 64, *remote, kPage - 32),
              IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(theirs.data() + kPage - 32, near().buffer.data(), 64), 0);
    EXPECT_EQ(paging(1).page_faults, 2u);
  });
}

TEST_F(OnDemand, WindowsLieOnThem) {
  run_both([this] {
    Pages theirs(2);
    const auto remote = region(far(), theirs, kOnDemand | IBV_ACCESS_MW_BIND);
    ibv_mw* mw = ibv_alloc_mw(far().pd, IBV_MW_TYPE_1);
    ibv_mw_bind bind{};
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = {remote.get(), at(theirs.data()) + kPage, 64, IBV_ACCESS_REMOTE_WRITE};
    ASSERT_EQ(ibv_bind_mw(far().qp, mw, &bind), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
    EXPECT_EQ(paging(1).page_faults, 0u);
    fill(near());
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mw->rkey, at(theirs.data()) + kPage, 64), IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(theirs.data() + kPage, near().buffer.data(), 64), 0);
    EXPECT_EQ(paging(1).page_faults, 1u);
    EXPECT_EQ(ibv_dealloc_mw(mw), 0);
  });
}

// A requester without retries gets the RNR error.
TEST_F(OnDemand, RetriesAreTheRequesters) {
  EndpointOptions options;
  options.rnr_retry = 0;
  run_both(
      [this] {
        Pages theirs(1);
        const auto remote = region(far(), theirs);
        EXPECT_EQ(access(IBV_WR_RDMA_WRITE, remote->rkey, at(theirs.data())), IBV_WC_RNR_RETRY_EXC_ERR);
        pass(0, kSettled);
        reconnect();
        EXPECT_EQ(access(IBV_WR_RDMA_WRITE, remote->rkey, at(theirs.data())), IBV_WC_SUCCESS);
      },
      options);
}

// Present pages at the start of a message say nothing about its other pages.
TEST_F(OnDemand, LongMessagesAndManyOfThemBringAllTheirPages) {
  run_both([this] {
    constexpr std::size_t kPages = 96;
    Pages mine(kPages), theirs(kPages);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    mine.fill(1);
    EXPECT_EQ(transfer(IBV_WR_RDMA_WRITE, *local, at(mine.data()), kPages * kPage, *remote, at(theirs.data())),
              IBV_WC_SUCCESS);
    EXPECT_TRUE(theirs.filled(1, 0, kPages * kPage));
    EXPECT_EQ(paging(0).page_faults, kPages);
    EXPECT_EQ(paging(1).page_faults, kPages);
    EXPECT_GT(atc(1).page_request_waits, 0u);
  });
}

class SmallCache : public OnDemand {
 protected:
  SmallCache() : OnDemand({"nic.atc.entries=2", "nic.atc.page_requests=1"}) {}
};

TEST_F(SmallCache, AndOnePageAtATimeAreEnough) {
  run_both([this] {
    Pages mine(16), theirs(16);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    mine.fill(1);
    for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ})
      EXPECT_EQ(transfer(opcode, *local, at(mine.data()), 16 * kPage, *remote, at(theirs.data())), IBV_WC_SUCCESS);
    EXPECT_TRUE(theirs.filled(1, 0, 16 * kPage));
    EXPECT_TRUE(mine.filled(1, 0, 16 * kPage));
    EXPECT_GT(atc(0).evictions, 0u);
    EXPECT_EQ(paging(1).page_faults, 16u);
  });
}

// Pages are invalidated while messages use them: each message is complete in the memory of its time, and no run stops.
TEST_F(OnDemand, PagesGoWhileTheyAreUsed) {
  run_both([this] {
    Pages mine(4), theirs(4);
    const auto local = region(near(), mine), remote = region(far(), theirs);
    mine.fill(1);
    for (int round = 0; round < 20; ++round) {
      ibv_sge sge{at(mine.data()), 4 * kPage, local->lkey};
      auto wr = near().request(round % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 0, 0);
      wr.sg_list = &sge;
      wr.wr.rdma = {at(theirs.data()), remote->rkey};
      ASSERT_EQ(near().post(wr), 0);
      pass(0, Duration{round * 1'700'000});
      for (std::size_t i : {0, 1}) withdraw(i, i == 0 ? mine : theirs);
      EXPECT_EQ(status_of(near().cq), IBV_WC_SUCCESS);
    }
    EXPECT_TRUE(theirs.filled(1, 0, 4 * kPage));
    EXPECT_TRUE(mine.filled(1, 0, 4 * kPage));
    EXPECT_GT(paging(0).page_invalidations, 0u);
  });
}

TEST_F(OnDemand, UnreliableMessagesAreLostUntilTheirPagesAreThere) {
  EndpointOptions options;
  options.type = IBV_QPT_UC;
  run_both(
      [this] {
        Pages theirs(2);
        const auto remote = region(far(), theirs);
        receive(far(), *remote, at(theirs.data()), kPage);
        fill(near());
        const auto send = [&] {
          EXPECT_EQ(transfer(IBV_WR_SEND, *near().mr, at(near().buffer.data()), 64, *remote, 0), IBV_WC_SUCCESS);
          pass(0, Duration{100'000'000});
          return completion_soon(far().cq, 2).has_value();
        };
        const auto write = [&] {
          EXPECT_EQ(access(IBV_WR_RDMA_WRITE, remote->rkey, at(theirs.data()) + kPage, 64), IBV_WC_SUCCESS);
          pass(0, Duration{100'000'000});
          return theirs.data()[kPage + 63] == 64;
        };
        EXPECT_FALSE(send());
        EXPECT_EQ(counters(1).absent_dropped, 1u);
        EXPECT_TRUE(send());
        EXPECT_FALSE(write());
        EXPECT_EQ(counters(1).absent_dropped, 2u);
        EXPECT_TRUE(write());
        EXPECT_EQ(counters(1).out_of_buffer + counters(1).silently_dropped, 0u);
      },
      options);
}

// A datagram is not retransmitted, so it waits. Datagrams behind it wait, too.
TEST_F(OnDemand, DatagramsWaitForTheirPages) {
  EndpointOptions options;
  options.type = IBV_QPT_UD;
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        Pages mine(3);
        const auto local = region(end, mine);
        for (int i = 0; i < 3; ++i) receive(end, *local, at(mine.data()) + std::uint64_t(i) * kPage, kPage);
        meet(1);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          EXPECT_EQ(mine.data()[i * kPage + 40 + 63], 64) << i;
        }
        EXPECT_EQ(counters(1).absent_dropped + counters(1).out_of_buffer, 0u);
        meet(1);
      },
      options, options);
}

TEST_F(OnDemand, SharedReceivesMayBe) {
  EndpointOptions options;
  options.shared_wr = 4;
  run_both(
      [this] {
        Pages theirs(1);
        const auto remote = region(far(), theirs);
        ibv_sge sge{at(theirs.data()), kPage, remote->lkey};
        ibv_recv_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_srq_recv(far().srq, &wr, &bad), 0);
        fill(near());
        EXPECT_EQ(transfer(IBV_WR_SEND, *near().mr, at(near().buffer.data()), 64, *remote, 0), IBV_WC_SUCCESS);
        EXPECT_EQ(status_of(far().cq), IBV_WC_SUCCESS);
        EXPECT_EQ(theirs.data()[63], 64);
        EXPECT_GT(counters(1).absent_rnr, 0u);
        EXPECT_EQ(paging(1).page_faults, 1u);
      },
      options);
}

TEST_F(OnDemand, NoOtherRegionIsAskedAbout) {
  run_both([this] {
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, far().mr->rkey, at(far().buffer.data())), IBV_WC_SUCCESS);
    EXPECT_EQ(atc(0).lookups + atc(1).lookups, 0u);
    Pages theirs(1);
    const auto remote = region(far(), theirs);
    far().receive(0, 64);
    send(near(), 64);
    EXPECT_EQ(atc(0).lookups + atc(1).lookups, 0u);
  });
}

class Incapable : public OnDemand {
 protected:
  Incapable() : OnDemand({"nic.capabilities.on_demand=false"}) {}
};

TEST_F(Incapable, SaysNo) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device;
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    EXPECT_EQ(device.odp_caps.general_caps, 0u);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(end.pd, end.buffer.data(), 64, kOnDemand), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_rereg_mr(end.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kOnDemand), IBV_REREG_MR_ERR_CMD);
    ibv_sge sge{at(end.buffer.data()), 64, end.mr->lkey};
    EXPECT_EQ(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
  });
}

}  // namespace
}  // namespace rnicsim::testing
