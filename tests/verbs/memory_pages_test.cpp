// SPDX-License-Identifier: Apache-2.0
// Paged memory regions: data lands correctly across page boundaries, MTT entries can be exhausted and are released, and
// counters match the page size.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kPage = 4096;

// The counts depend on the cache sizes, which must not come from the environment.
std::vector<std::string> with_usual_caches(std::vector<std::string> sets) {
  for (const char* table : {"mtt", "mpt"})
    for (const char* usual : {"l0_entries=128", "l1_entries=4096", "ways=8", "miss_slots=2"})
      sets.insert(sets.begin(), fmt::format("nic.contexts.{}.{}", table, usual));
  return sets;
}

class MemoryPages : public RcPair {
 protected:
  explicit MemoryPages(const std::vector<std::string>& sets = {}) : RcPair(with_usual_caches(sets)) {}

  const nic::CacheCounters mtt(std::size_t host_index) { return host(host_index).counters().nic.contexts.mtt; }

  // Writes to, reads from and sends into the other end's memory, at offsets and lengths around page boundaries.
  void transfer_across_pages() {
    EndpointOptions options;
    options.buffer_bytes = 8 * kPage + 100;
    options.mtu = IBV_MTU_4096;
    Endpoint* ends[2] = {};
    const auto body = [&](std::size_t me) {
      return [&, me](Endpoint& end) {
        ends[me] = &end;
        meet(me);
        if (me == 0) check_transfers(*ends[0], *ends[1]);
        meet(me);
      };
    };
    run_connected(body(0), body(1), options, options);
  }

  static void check_transfers(Endpoint& near, Endpoint& far) {
    const auto last = std::uint32_t(near.buffer.size());
    std::uint8_t seed = 0;
    for (const auto& [offset, length] : {std::pair{0u, 1u},
                                         {kPage - 1, 1u},
                                         {kPage - 1, 2u},
                                         {kPage, 1u},
                                         {kPage - 7, 2 * kPage + 9},
                                         {0u, last},
                                         {last - 1, 1u},
                                         {8 * kPage - 1, 101u},
                                         {3 * kPage, kPage}})
      for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND}) {
        SCOPED_TRACE(::testing::Message() << "opcode " << opcode << " offset " << offset << " length " << length);
        ++seed;
        for (std::uint32_t i = 0; i < last; ++i) {
          near.buffer[i] = std::uint8_t(i * 7 + (i >> 8) + seed);
          far.buffer[i] = std::uint8_t(i * 11 + (i >> 8) + 3 * seed + 1);
        }
        const bool reads = opcode == IBV_WR_RDMA_READ;
        // The offsets differ at the two ends, so that their page boundaries differ.
        const std::uint32_t other = (last - length) / 3;
        auto expected = reads ? near.buffer : far.buffer;
        const auto& source = reads ? far.buffer : near.buffer;
        std::copy_n(source.begin() + (reads ? other : offset), length, expected.begin() + (reads ? offset : other));
        if (opcode == IBV_WR_SEND) {
          ASSERT_EQ(far.receive(other, length), 0);
        }
        ASSERT_EQ(near.post(near.request(opcode, offset, length, other)), 0);
        ASSERT_EQ(near.completion().status, IBV_WC_SUCCESS);
        if (opcode == IBV_WR_SEND) {
          ASSERT_EQ(far.completion().byte_len, length);
        }
        ASSERT_TRUE((reads ? near.buffer : far.buffer) == expected);
      }
  }
};

TEST_F(MemoryPages, DataLandsAcrossThem) {
  transfer_across_pages();
  // Nine pages at each end; two packets may miss a page before its fill is complete.
  for (const std::size_t end : {0, 1}) {
    EXPECT_GE(mtt(end).misses, 9u);
    EXPECT_LE(mtt(end).misses, 12u);
  }
  EXPECT_EQ(mtt(0).evictions, 0u);
}

class WithoutCaches : public MemoryPages {
 protected:
  WithoutCaches()
      : MemoryPages({"nic.contexts.mtt.l0_entries=0", "nic.contexts.mtt.l1_entries=0", "nic.contexts.mtt.miss_slots=1",
                     "nic.contexts.mpt.l0_entries=0", "nic.contexts.mpt.l1_entries=0"}) {}
};
TEST_F(WithoutCaches, DataLandsAcrossThem) {
  transfer_across_pages();
  EXPECT_GT(mtt(1).misses, 50u);
  EXPECT_EQ(mtt(1).l1_hits, 0u);
}

class TinyCaches : public MemoryPages {
 protected:
  TinyCaches()
      : MemoryPages({"nic.contexts.mtt.l0_entries=1", "nic.contexts.mtt.l1_entries=2", "nic.contexts.mtt.ways=1",
                     "nic.contexts.mpt.l0_entries=1", "nic.contexts.mpt.l1_entries=1"}) {}
};
TEST_F(TinyCaches, DataLandsAcrossThem) {
  transfer_across_pages();
  EXPECT_GT(mtt(1).evictions, 10u);
}

class LargePages : public MemoryPages {
 protected:
  LargePages() : MemoryPages({"host.page_size=64KiB"}) {}
};
TEST_F(LargePages, DataLandsAcrossThem) {
  transfer_across_pages();
  EXPECT_EQ(mtt(1).misses, 1u);
  EXPECT_EQ(host(1).counters().kernel.pages_registered, 1u);
}

class FewPages : public MemoryPages {
 protected:
  // The endpoint's own region has 16 of them.
  FewPages() : MemoryPages({"nic.capabilities.max_mtt=64"}) {}
};
TEST_F(FewPages, RunOutAndComeBack) {
  run_alone([&](Endpoint& end) {
    std::vector<std::uint8_t> memory(64 * kPage);
    const auto make = [&](std::size_t pages) {
      errno = 0;
      return ibv_reg_mr(end.pd, memory.data(), pages * kPage, IBV_ACCESS_LOCAL_WRITE);
    };
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(make(49), nullptr);
      EXPECT_EQ(errno, ENOMEM);
      std::vector<ibv_mr*> made;
      for (int i = 0; i < 6; ++i) {
        made.push_back(make(8));
        ASSERT_NE(made.back(), nullptr) << i;
      }
      EXPECT_EQ(make(1), nullptr);
      EXPECT_EQ(errno, ENOMEM);
      // A region of 0 bytes needs no pages.
      made.push_back(make(0));
      EXPECT_NE(made.back(), nullptr);
      EXPECT_EQ(ibv_dereg_mr(made[1]), 0);
      EXPECT_EQ(ibv_dereg_mr(made[3]), 0);
      EXPECT_EQ(make(9), nullptr);  // 16 entries are free, but not in a row
      EXPECT_EQ(ibv_dereg_mr(made[2]), 0);
      made[1] = make(24);
      EXPECT_NE(made[1], nullptr);
      for (const int i : {0, 1, 4, 5, 6}) EXPECT_EQ(ibv_dereg_mr(made[std::size_t(i)]), 0);
    }
    // The failed registrations have left nothing pinned.
    EXPECT_EQ(process(0).port().unpin(reinterpret_cast<std::uint64_t>(memory.data()), 1, true), EINVAL);
  });
}

class LittleKernelMemory : public MemoryPages {
 protected:
  LittleKernelMemory() : MemoryPages({"host.kernel_memory=4MiB"}) {}
};
TEST_F(LittleKernelMemory, RunsOutWithoutALeak) {
  run_alone([&](Endpoint& end) {
    constexpr std::size_t kBytes = std::size_t{4} << 30;  // needs 8 MiB of MTT entries
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (int round = 0; round < 3; ++round) {
      errno = 0;
      EXPECT_EQ(ibv_reg_mr(end.pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE), nullptr);
      EXPECT_EQ(errno, ENOMEM);
      ibv_mr* mr = ibv_reg_mr(end.pd, memory, kBytes / 16, IBV_ACCESS_LOCAL_WRITE);
      ASSERT_NE(mr, nullptr);
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    munmap(memory, kBytes);
  });
}

class Registration : public MemoryPages {
 protected:
  Registration() : MemoryPages({"host.cpu.register_page=7ns"}) {}
};
TEST_F(Registration, CostsByThePage) {
  run_alone([&](Endpoint& end) {
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const auto cost_of = [&](std::size_t bytes) {
      settle(0);
      const Duration start = now();
      ibv_mr* mr = ibv_reg_mr(end.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
      settle(0);
      const Duration cost = now() - start;
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
      return cost;
    };
    cost_of(kBytes);  // maps the memory for the entries
    const Duration one = cost_of(1);
    constexpr auto kEach = 7_ns + 4_ns;  // the kernel's part, and the device's part to flush its tables
    EXPECT_EQ(cost_of(kPage), one);
    EXPECT_EQ(cost_of(kPage + 1), one + kEach);
    EXPECT_EQ(cost_of(kBytes), one + kEach * ((1 << 18) - 1));
    munmap(memory, kBytes);
  });
}

// Random access over 64 MiB.
class RandomAccess : public MemoryPages {
 protected:
  using MemoryPages::MemoryPages;

  static constexpr std::size_t kBytes = 64 << 20;
  static constexpr std::uint64_t kAccesses = 400;

  std::uint64_t misses() {
    EndpointOptions options;
    options.buffer_bytes = kBytes;
    run_connected(
        [](Endpoint& end) {
          std::uint64_t random = 1;
          for (std::uint64_t i = 0; i < kAccesses; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 8, std::uint32_t(random >> 33) % kBytes & ~7u)), 0);
            ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
          }
        },
        [](Endpoint&) {}, options, options);
    EXPECT_EQ(mtt(1).lookups, kAccesses);
    return mtt(1).misses;
  }
};

class RandomAccessInSmallPages : public RandomAccess {};
TEST_F(RandomAccessInSmallPages, Misses) {
  const auto missed = misses();
  EXPECT_GT(missed, kAccesses * 9 / 10);
  EXPECT_EQ(host(1).counters().kernel.pages_registered, kBytes / kPage);
}

class RandomAccessInHugePages : public RandomAccess {
 protected:
  RandomAccessInHugePages() : RandomAccess({"host.page_size=2MiB"}) {}
};
TEST_F(RandomAccessInHugePages, MissesEachPageOnce) {
  EXPECT_EQ(misses(), kBytes >> 21);
  EXPECT_EQ(mtt(1).l1_hits, 0u);
}

}  // namespace
}  // namespace rnicsim::testing
