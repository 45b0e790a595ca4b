// SPDX-License-Identifier: Apache-2.0
// Memory regions: range and rights, the null region, reregistration, and the errors of wrong use.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstdint>

#include "model/host/software_process.h"
#include "model/nic/capability_params.h"
#include "tests/verbs/near_and_far.h"

namespace rnicsim::testing::memory_regions_test {
namespace {

class MemoryRegions : public NearAndFar {
 protected:
  using NearAndFar::NearAndFar;

  void expect_refused(std::uint32_t rkey, std::uint64_t address, std::uint32_t length = 8) {
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, rkey, address, length), IBV_WC_REM_ACCESS_ERR);
    reconnect();
  }
  // Posts a request of h0 with this list, and returns its status.
  ibv_wc_status send_list(ibv_wr_opcode opcode, std::vector<ibv_sge> list) {
    auto wr = near().request(opcode, 0, 0);
    wr.sg_list = list.data();
    wr.num_sge = int(list.size());
    EXPECT_EQ(near().post(wr), 0);
    return status_of(near().cq);
  }
};

constexpr int kAll =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::uint64_t at(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

TEST_F(MemoryRegions, RightsThatMayBeAskedFor) {
  run_alone([this](Endpoint& end) {
    const std::pair<int, int> cases[] = {
        {0, 0},
        {IBV_ACCESS_REMOTE_READ, 0},
        {IBV_ACCESS_REMOTE_WRITE, EINVAL},
        {IBV_ACCESS_REMOTE_ATOMIC, EINVAL},
        {kAll | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED, 0},
        {kAll | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING, 0},
        {IBV_ACCESS_LOCAL_WRITE | int(IBV_ACCESS_OPTIONAL_RANGE), 0},
        {IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, capabilities().on_demand ? 0 : EOPNOTSUPP},
        {1 << 8, EINVAL},
        {1 << 19, EINVAL},
        {1 << 30, EINVAL},
    };
    for (const auto& [access, error] : cases) {
      SCOPED_TRACE(access);
      errno = 0;
      ibv_mr* mr = ibv_reg_mr_iova2(end.pd, end.buffer.data(), 64, at(end.buffer.data()), unsigned(access));
      EXPECT_EQ(mr == nullptr, error != 0);
      EXPECT_EQ(errno, error);
      if (mr != nullptr) {
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
      }
    }
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(end.pd, end.buffer.data(), SIZE_MAX, kAll), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(MemoryRegions, CoverTheirBytesAndNoOther) {
  run_both([&] {
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data() + 5001, 77, kAll);
    ASSERT_NE(mr, nullptr);
    const auto begin = at(mr->addr);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, begin, 77), IBV_WC_SUCCESS);
    EXPECT_EQ(access(IBV_WR_RDMA_READ, mr->rkey, begin + 76, 1), IBV_WC_SUCCESS);
    for (const auto& [address, length] : {std::pair{begin - 1, 1u}, {begin - 1, 78u}, {begin, 78u}, {begin + 77, 1u}})
      expect_refused(mr->rkey, address, length);
    const auto rkey = mr->rkey;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    expect_refused(rkey, begin);
  });
}

TEST_F(MemoryRegions, OfNoBytes) {
  run_both([&] {
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data(), 0, kAll);
    ASSERT_NE(mr, nullptr);
    // Accesses of 0 bytes need no valid range.
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, at(mr->addr), 0), IBV_WC_SUCCESS);
    EXPECT_EQ(access(IBV_WR_RDMA_READ, 0x77777777, 1, 0), IBV_WC_SUCCESS);
    expect_refused(mr->rkey, at(mr->addr), 1);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(MemoryRegions, AtAddressesOfTheCallersChoice) {
  run_both([&] {
    const auto memory = far().buffer.data() + 300;
    struct Case {
      ibv_mr* mr;
      std::uint64_t base;
    };
    const Case cases[] = {
        {ibv_reg_mr_iova(far().pd, memory, 100, 0x1234567890, kAll), 0x1234567890},
        {ibv_reg_mr_iova2(far().pd, memory, 100, 0, unsigned(kAll)), 0},
        {ibv_reg_mr_iova2(far().pd, memory, 100, ~0ull - 99, unsigned(kAll)), ~0ull - 99},
        {ibv_reg_mr(far().pd, memory, 100, kAll | IBV_ACCESS_ZERO_BASED), 0},
        {ibv_reg_mr_iova(far().pd, memory, 100, 555, kAll | IBV_ACCESS_ZERO_BASED), 0},
    };
    std::uint8_t value = 0;
    for (const auto& [mr, base] : cases) {
      SCOPED_TRACE(base);
      ASSERT_NE(mr, nullptr);
      near().buffer[0] = ++value;
      EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, base + 99, 1), IBV_WC_SUCCESS);
      EXPECT_EQ(memory[99], value);
      expect_refused(mr->rkey, base + 100, 1);
      expect_refused(mr->rkey, at(memory), 1);
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
  });
}

TEST_F(MemoryRegions, TheNullRegionReadsZerosAndKeepsNothing) {
  run_both([&] {
    ibv_mr* null = ibv_alloc_null_mr(near().pd);
    ASSERT_NE(null, nullptr);
    const auto bytes = at(near().buffer.data());
    const auto lkey = near().mr->lkey;
    const auto fill = [](Endpoint& end, std::uint8_t value) { std::ranges::fill(end.buffer, value); };
    fill(near(), 1);
    fill(far(), 2);
    ASSERT_EQ(send_list(IBV_WR_RDMA_WRITE, {{bytes, 10, lkey}, {0xdeadbeef, 3000, null->lkey}, {bytes, 5, lkey}}),
              IBV_WC_SUCCESS);
    for (std::size_t i = 0; i < 3100; ++i)
      ASSERT_EQ(far().buffer[i], i < 10 ? 1 : i < 3010 ? 0 : i < 3015 ? 1 : 2) << i;
    ASSERT_EQ(send_list(IBV_WR_RDMA_WRITE, {{~0ull, 2000, null->lkey}}), IBV_WC_SUCCESS);
    EXPECT_EQ(far().buffer[0], 0);

    for (std::size_t i = 0; i < far().buffer.size(); ++i) far().buffer[i] = std::uint8_t(i * 3 + (i >> 8));
    ASSERT_EQ(send_list(IBV_WR_RDMA_READ, {{bytes, 10, lkey}, {0, 2500, null->lkey}, {bytes + 10, 500, lkey}}),
              IBV_WC_SUCCESS);
    for (std::size_t i = 0; i < 600; ++i)
      ASSERT_EQ(near().buffer[i], i < 10 ? far().buffer[i] : i < 510 ? far().buffer[i + 2500] : 1) << i;
    ASSERT_EQ(send_list(IBV_WR_RDMA_READ, {{0, 4000, null->lkey}}), IBV_WC_SUCCESS);

    // A peer cannot use it, and no QP of another PD can.
    auto wr = far().request(IBV_WR_RDMA_WRITE, 0, 8);
    wr.wr.rdma = {0, null->lkey};
    ASSERT_EQ(far().post(wr), 0);
    EXPECT_EQ(status_of(far().cq), IBV_WC_REM_ACCESS_ERR);
    reconnect();
    ibv_pd* pd = ibv_alloc_pd(near().context);
    ibv_mr* other = ibv_alloc_null_mr(pd);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(send_list(IBV_WR_RDMA_WRITE, {{0, 8, other->lkey}}), IBV_WC_LOC_PROT_ERR);
    reconnect();
    EXPECT_EQ(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
    const auto gone = null->lkey;
    for (ibv_mr* mr : {other, null}) EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(send_list(IBV_WR_RDMA_WRITE, {{0, 8, gone}}), IBV_WC_LOC_PROT_ERR);
  });
}

TEST_F(MemoryRegions, ReceivesIntoTheNullRegion) {
  run_both([&] {
    ibv_mr* null = ibv_alloc_null_mr(far().pd);
    ASSERT_NE(null, nullptr);
    ibv_sge list[] = {{0, 4, null->lkey}, {at(far().buffer.data()), 60, far().mr->lkey}};
    ibv_recv_wr wr{};
    wr.sg_list = list;
    wr.num_sge = 2;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(far().qp, &wr, &bad), 0);
    near().buffer = std::vector<std::uint8_t>(near().buffer.size());
    EXPECT_EQ(ibv_rereg_mr(near().mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, near().buffer.data(),
                           near().buffer.size(), 0),
              0);
    for (std::uint8_t i = 0; i < 32; ++i) near().buffer[i] = i;
    ASSERT_EQ(near().post(near().request(IBV_WR_SEND, 0, 32)), 0);
    EXPECT_EQ(far().completion().byte_len, 32u);
    EXPECT_EQ(far().buffer[0], 4);
    EXPECT_EQ(far().buffer[27], 31);
    EXPECT_EQ(ibv_dereg_mr(null), 0);
  });
}

TEST_F(MemoryRegions, RegisteredAnewWithOtherRights) {
  run_both([&] {
    ibv_mr* mr = ibv_reg_mr_iova(far().pd, far().buffer.data(), 4096, 0x5000, kAll);
    const auto key = mr->rkey;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, 0x5000), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
              0);
    EXPECT_EQ(mr->rkey, key);
    expect_refused(key, 0x5000);
    EXPECT_EQ(access(IBV_WR_RDMA_READ, key, 0x5000), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll | IBV_ACCESS_ZERO_BASED), 0);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, 4088), IBV_WC_SUCCESS);
    expect_refused(key, 0x5000);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), 0);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, at(mr->addr)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(MemoryRegions, RegisteredAnewElsewhere) {
  run_both([&] {
    std::vector<std::uint8_t> memory(20'000);
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data(), 4096, kAll);
    const auto old = mr->rkey;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, old, at(mr->addr)), IBV_WC_SUCCESS);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data(), memory.size(), 0), 0);
    EXPECT_EQ(mr->addr, memory.data());
    EXPECT_EQ(mr->length, memory.size());
    EXPECT_EQ(mr->rkey >> 8, old >> 8);
    EXPECT_NE(mr->rkey, old);
    near().buffer[0] = 6;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, at(memory.data()) + 19'999, 1), IBV_WC_SUCCESS);
    EXPECT_EQ(memory[19'999], 6);
    expect_refused(old, at(far().buffer.data()));
    expect_refused(mr->rkey, at(far().buffer.data()));
    // The old memory is no longer pinned, and the new memory is.
    std::uint64_t bus_address = 0;
    EXPECT_EQ(process(1).port().unpin(at(memory.data()), memory.size(), true), 0);
    EXPECT_EQ(process(1).port().pin(memory.data(), memory.size(), true, bus_address), 0);
    EXPECT_EQ(bus_address, at(memory.data()));
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(process(1).port().unpin(at(memory.data()), memory.size(), true), EINVAL);
  });
}

// Pages of a new mapping.
class Mapped {
 public:
  explicit Mapped(std::size_t pages, int protection = PROT_READ | PROT_WRITE)
      : bytes_(pages * kPage),
        memory_(static_cast<std::uint8_t*>(
            mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Mapped() { munmap(memory_, bytes_); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::uint8_t* page(std::size_t index) const { return memory_ + index * kPage; }
  static constexpr std::size_t kPage = 4096;

 private:
  std::size_t bytes_;
  std::uint8_t* memory_;
};

constexpr int kWrites[] = {IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_MW_BIND, kAll};
constexpr int kReads[] = {0, IBV_ACCESS_REMOTE_READ};

// Returns 0 if the region can be registered; otherwise errno.
int registers(Endpoint& end, void* memory, std::size_t bytes, int access) {
  errno = 0;
  ibv_mr* mr = ibv_reg_mr(end.pd, memory, bytes, access);
  if (mr == nullptr) return errno;
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  return 0;
}

TEST_F(MemoryRegions, OfMemoryThatMayNotBeWritten) {
  run_alone([](Endpoint& end) {
    const Mapped memory(2, PROT_READ);
    for (const int access : kWrites) EXPECT_EQ(registers(end, memory.page(0), 4096, access), EFAULT) << access;
    for (const int access : kReads) EXPECT_EQ(registers(end, memory.page(0), 4096, access), 0) << access;
    // A single byte beyond is too many.
    mprotect(memory.page(0), 4096, PROT_READ | PROT_WRITE);
    EXPECT_EQ(registers(end, memory.page(0), 4096, kAll), 0);
    EXPECT_EQ(registers(end, memory.page(0), 4097, kAll), EFAULT);
  });
}

TEST_F(MemoryRegions, OfMemoryThatMayNotBeRead) {
  run_alone([](Endpoint& end) {
    const Mapped memory(1, PROT_NONE);
    for (const int access : kWrites) EXPECT_EQ(registers(end, memory.page(0), 64, access), EFAULT) << access;
    for (const int access : kReads) EXPECT_EQ(registers(end, memory.page(0), 64, access), EFAULT) << access;
  });
}

TEST_F(MemoryRegions, OverAHole) {
  run_alone([](Endpoint& end) {
    const Mapped memory(4);
    munmap(memory.page(1), 4096);
    for (const int access : {0, kAll}) {
      EXPECT_EQ(registers(end, memory.page(0), 4 * 4096, access), EFAULT);
      EXPECT_EQ(registers(end, memory.page(0), 4097, access), EFAULT);
      EXPECT_EQ(registers(end, memory.page(1) + 4095, 2, access), EFAULT);
      EXPECT_EQ(registers(end, memory.page(0), 4096, access), 0);
      EXPECT_EQ(registers(end, memory.page(2), 2 * 4096, access), 0);
    }
  });
}

// With more rights, pages that were pinned for reading are pinned for writing.
TEST_F(MemoryRegions, RegisteredAnewToBeWritten) {
  run_both([&] {
    const Mapped memory(2, PROT_READ);
    ibv_mr* mr = ibv_reg_mr(far().pd, memory.page(0), 4096, IBV_ACCESS_REMOTE_READ);
    ASSERT_NE(mr, nullptr);
    errno = 0;
    EXPECT_NE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), 0);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(access(IBV_WR_RDMA_READ, mr->rkey, at(memory.page(0))), IBV_WC_SUCCESS);
    expect_refused(mr->rkey, at(memory.page(0)));
    mprotect(memory.page(0), 4096, PROT_READ | PROT_WRITE);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), 0);
    near().buffer[0] = 9;
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, at(memory.page(0))), IBV_WC_SUCCESS);
    EXPECT_EQ(*memory.page(0), 9);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.page(1), 4096, 0),
              IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(MemoryRegions, RegisteredAnewInAnotherDomain) {
  run_both([&] {
    ibv_pd* pd = ibv_alloc_pd(far().context);
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data(), 4096, kAll);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, nullptr, 0, 0), 0);
    EXPECT_EQ(mr->pd, pd);
    expect_refused(mr->rkey, at(mr->addr));
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    std::vector<std::uint8_t> memory(100);
    ASSERT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_FLAGS_SUPPORTED, far().pd, memory.data(), memory.size(), kAll), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, at(memory.data())), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(MemoryRegions, MistakesInRegisteringAnew) {
  run_both([&] {
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data(), 4096, kAll);
    const auto key = mr->rkey;
    struct Mistake {
      int flags;
      ibv_pd* pd;
      void* address;
      std::size_t length;
      int access;
      int error;
      ibv_rereg_mr_err_code code;
    };
    // Errors that rdma-core itself returns (input), and those of the kernel (command).
    constexpr auto input = IBV_REREG_MR_ERR_INPUT, command = IBV_REREG_MR_ERR_CMD;
    const Mistake mistakes[] = {
        {0, nullptr, nullptr, 0, 0, EINVAL, command},
        {IBV_REREG_MR_FLAGS_SUPPORTED + 1, nullptr, nullptr, 0, 0, EINVAL, input},
        {IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 64, 0, EINVAL, input},
        {IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, far().buffer.data(), 0, 0, EINVAL, input},
        {IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, far().buffer.data(), SIZE_MAX, 0, EINVAL, command},
        {IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, far().buffer.data(), 64, kAll, EINVAL, input},
        {IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0, EINVAL, command},
        {IBV_REREG_MR_CHANGE_PD, near().pd, nullptr, 0, 0, ENOENT, command},
        {IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL, command},
        {IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_ATOMIC, EINVAL, command},
    };
    for (const auto& mistake : mistakes) {
      SCOPED_TRACE(&mistake - mistakes);
      errno = 0;
      EXPECT_EQ(ibv_rereg_mr(mr, mistake.flags, mistake.pd, mistake.address, mistake.length, mistake.access),
                mistake.code);
      EXPECT_EQ(errno, mistake.error);
    }
    std::swap(mr->handle, far().mr->handle);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, kAll), IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, ENOENT);
    std::swap(mr->handle, far().mr->handle);
    EXPECT_EQ(mr->rkey, key);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, at(mr->addr)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

TEST_F(MemoryRegions, DomainsInUse) {
  run_alone([](Endpoint& end) {
    EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);
    ibv_pd* pd = ibv_alloc_pd(end.context);
    ibv_mr* mr = ibv_reg_mr(pd, end.buffer.data(), 64, kAll);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);

    const auto handle = pd->handle;
    pd->handle ^= 0x1000;
    EXPECT_EQ(ibv_dealloc_pd(pd), ENOENT);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd, end.buffer.data(), 64, kAll), nullptr);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(ibv_alloc_null_mr(pd), nullptr);
    EXPECT_EQ(errno, ENOENT);
    pd->handle = handle;

    // PD handles of another context of the same device.
    Endpoint other;
    std::swap(pd->context, other.pd->context);
    for (ibv_pd* swapped : {pd, other.pd}) {
      EXPECT_EQ(ibv_dealloc_pd(swapped), ENOENT);
      errno = 0;
      EXPECT_EQ(ibv_reg_mr(swapped, end.buffer.data(), 64, kAll), nullptr);
      EXPECT_EQ(errno, ENOENT);
    }
    std::swap(pd->context, other.pd->context);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);

    const auto right = end.mr->handle;
    end.mr->handle ^= 0x1000;
    EXPECT_EQ(ibv_dereg_mr(end.mr), ENOENT);
    end.mr->handle = right;
  });
}

TEST_F(MemoryRegions, ForkNeedsNothing) {
  run_alone([](Endpoint&) {
    EXPECT_EQ(ibv_fork_init(), 0);
    EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
  });
}

class FewPages : public MemoryRegions {
 protected:
  FewPages() : MemoryRegions({"nic.capabilities.max_mtt=40"}) {}
};
// Only one of the two places has room: the region stays unchanged.
TEST_F(FewPages, RegisteringAnewThatFailsChangesNothing) {
  run_both([&] {
    std::vector<std::uint8_t> memory(20 * 4096);
    ibv_mr* mr = ibv_reg_mr(far().pd, far().buffer.data(), 20 * 4096 - 30'000, kAll);
    ASSERT_NE(mr, nullptr);
    const auto key = mr->rkey;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data(), memory.size(), 0),
                IBV_REREG_MR_ERR_CMD);
      EXPECT_EQ(errno, ENOMEM);
    }
    EXPECT_EQ(mr->rkey, key);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, key, at(far().buffer.data())), IBV_WC_SUCCESS);
    for (int i = 0; i < 9; ++i)
      EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.data() + i * 4096, 4096, 0), 0);
    EXPECT_EQ(access(IBV_WR_RDMA_WRITE, mr->rkey, at(memory.data() + 8 * 4096)), IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing::memory_regions_test
