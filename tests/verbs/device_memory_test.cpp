// SPDX-License-Identifier: Apache-2.0
// Device memory after ibv_alloc_dm(3): sizes, and accesses of the CPU, of work requests and of peers, which are faster
// than over PCIe.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <unistd.h>

#include "model/abi/device.h"
#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "model/nic/capability_params.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "model/nic/pcie/pcie_link.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing::device_memory_test {
namespace {

using namespace rnicsim::literals;

constexpr std::size_t kPage = 4096;
constexpr unsigned kAll = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                          IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::vector<std::uint8_t> numbers(std::size_t bytes, std::uint8_t first = 1) {
  std::vector<std::uint8_t> all(bytes);
  std::iota(all.begin(), all.end(), first);
  return all;
}

// The call returns nullptr, with this errno.
template <class Call>
void expect_errno(int error, Call&& call) {
  errno = 0;
  EXPECT_EQ(call(), nullptr);
  EXPECT_EQ(errno, error);
}

class DeviceMemory : public RcPair {
 protected:
  using RcPair::RcPair;

  static ibv_dm* alloc(ibv_context* context, std::size_t bytes, std::uint32_t log_align = 0) {
    ibv_alloc_dm_attr wanted{bytes, log_align, 0};
    return ibv_alloc_dm(context, &wanted);
  }
  static std::vector<std::uint8_t> read(ibv_dm* dm, std::uint64_t offset, std::size_t bytes) {
    std::vector<std::uint8_t> found(bytes, 0xee);
    EXPECT_EQ(ibv_memcpy_from_dm(found.data(), dm, offset, bytes), 0);
    return found;
  }
  static void write(ibv_dm* dm, std::uint64_t offset, const std::vector<std::uint8_t>& bytes) {
    EXPECT_EQ(ibv_memcpy_to_dm(dm, offset, bytes.data(), bytes.size()), 0);
  }
  // A peer's device memory, the target in place of its buffer.
  struct Target {
    std::uint32_t rkey = 0;
  };
  static void to_target(ibv_send_wr& wr, const Target& target, std::uint64_t offset) {
    const bool atomic = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    (atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey) = target.rkey;
    (atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr) = offset;
  }
  const nic::DeviceMemoryParams& params() { return system().config().nic.device_memory; }
  nic::NicCounters counters_of(std::size_t index) { return host(index).nic().counters(); }

  // h0 works on a device memory of h1; then h1 checks it.
  using Work = std::function<void(Endpoint&, const Target&)>;
  using Look = std::function<void(Endpoint&, ibv_dm*)>;
  using Before = std::function<ibv_mr*(Endpoint&, ibv_dm*)>;
  void run_on_peers(std::size_t bytes, const Work& work, const Look& look, const Before& before = {}) {
    Target target;
    run_connected(
        [&](Endpoint& end) {
          meet(0);
          work(end, target);
          meet(0);
        },
        [&](Endpoint& end) {
          ibv_dm* dm = alloc(end.context, bytes);
          ASSERT_NE(dm, nullptr);
          ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 0, bytes, kAll);
          ASSERT_NE(mr, nullptr);
          ibv_mr* more = before ? before(end, dm) : nullptr;
          target.rkey = mr->rkey;
          meet(1);
          meet(1);
          look(end, dm);
          if (more != nullptr) {
            EXPECT_EQ(ibv_dereg_mr(more), 0);
          }
          EXPECT_EQ(ibv_free_dm(dm), EBUSY);
          EXPECT_EQ(ibv_dereg_mr(mr), 0);
          EXPECT_EQ(ibv_free_dm(dm), 0);
        });
  }
};

TEST_F(DeviceMemory, TheDeviceSaysHowMuch) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &attributes), 0);
    EXPECT_EQ(attributes.max_dm_size, params().size.bytes);
    EXPECT_EQ(attributes.max_dm_size, 256u * 1024);
  });
}

TEST_F(DeviceMemory, AllOfItCanBeHadAndNoMore) {
  run_alone([&](Endpoint& end) {
    const auto all = params().size.bytes;
    expect_errno(ENOMEM, [&] { return alloc(end.context, all + 1); });
    ibv_dm* whole = alloc(end.context, all);
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(whole->context, end.context);
    expect_errno(ENOMEM, [&] { return alloc(end.context, 1); });
    EXPECT_EQ(ibv_free_dm(whole), 0);
    // In pages, as processes map them.
    std::vector<ibv_dm*> pages;
    while (ibv_dm* dm = alloc(end.context, 1)) pages.push_back(dm);
    EXPECT_EQ(pages.size(), all / kPage);
    for (ibv_dm* dm : pages) EXPECT_EQ(ibv_free_dm(dm), 0);
    ibv_dm* again = alloc(end.context, all);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(ibv_free_dm(again), 0);
  });
}

TEST_F(DeviceMemory, MayBeAligned) {
  run_alone([&](Endpoint& end) {
    ibv_dm* first = alloc(end.context, 1);
    ibv_dm* aligned = alloc(end.context, 1, 15);
    ASSERT_NE(aligned, nullptr);
    EXPECT_EQ(aligned->handle % (1 << 15), 0u);
    EXPECT_NE(aligned->handle, first->handle);
    ibv_dm* between = alloc(end.context, 1);  // pages before an aligned range stay available
    EXPECT_LT(between->handle, aligned->handle);
    // only the first byte is aligned, and it is allocated
    expect_errno(ENOMEM, [&] { return alloc(end.context, 1, 18); });
    EXPECT_EQ(ibv_free_dm(first), 0);
    ibv_dm* most = alloc(end.context, 1, 63);
    ASSERT_NE(most, nullptr);
    EXPECT_EQ(most->handle, 0u);
    expect_errno(EINVAL, [&] { return alloc(end.context, 1, 64); });
  });
}

TEST_F(DeviceMemory, NonsenseIsRefused) {
  run_alone([&](Endpoint& end) {
    expect_errno(EINVAL, [&] { return alloc(end.context, 0); });
    for (const std::uint32_t mask : {1u, 1u << 31}) {
      ibv_alloc_dm_attr wanted{64, 0, mask};
      expect_errno(EINVAL, [&] { return ibv_alloc_dm(end.context, &wanted); });
    }
    ibv_dm* dm = alloc(end.context, 100);
    const auto region = [&](std::uint64_t offset, std::size_t bytes, unsigned access) {
      return [=, &end] { return ibv_reg_dm_mr(end.pd, dm, offset, bytes, access); };
    };
    expect_errno(EINVAL, region(0, 100, kAll & ~unsigned(IBV_ACCESS_ZERO_BASED)));
    expect_errno(EINVAL, region(0, 101, kAll));
    expect_errno(EINVAL, region(101, 0, kAll));
    expect_errno(EINVAL, region(~0ull, 2, kAll));
    expect_errno(EINVAL, region(0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE));
    expect_errno(EINVAL, region(0, 100, IBV_ACCESS_ZERO_BASED | 1u << 9));
    if (capabilities().on_demand) expect_errno(EINVAL, region(0, 100, kAll | IBV_ACCESS_ON_DEMAND));
    {
      Endpoint other;
      expect_errno(ENOENT, [&] { return ibv_reg_dm_mr(other.pd, dm, 0, 100, kAll); });
    }
    ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 100, 0, kAll);
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, int(kAll)), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    std::uint8_t bytes[128] = {};
    for (const auto& [offset, length] : {std::pair<std::uint64_t, std::size_t>{3, 4},
                                         {4, 3},
                                         {104, 4},
                                         {0, 104},
                                         {100, 4},
                                         {~0ull - 3, 8},
                                         {4, ~std::size_t{3}}}) {
      EXPECT_EQ(ibv_memcpy_to_dm(dm, offset, bytes, length), EINVAL) << offset;
      EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, offset, length), EINVAL) << offset;
    }
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 96, bytes, 4), 0);
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 100, bytes, 0), 0);
    const auto handle = std::exchange(dm->handle, 0x10000);
    expect_errno(ENOENT, region(0, 100, kAll));
    EXPECT_EQ(ibv_memcpy_to_dm(dm, 0, bytes, 4), ENOENT);
    EXPECT_EQ(ibv_memcpy_from_dm(bytes, dm, 0, 4), ENOENT);
    EXPECT_EQ(ibv_free_dm(dm), ENOENT);
    dm->handle = handle;
    EXPECT_EQ(ibv_free_dm(dm), 0);
  });
}

// Copies of every shape: words, double words, lines; bytes around them are unchanged.
TEST_F(DeviceMemory, TheCpuCopiesThereAndBack) {
  run_alone([&](Endpoint& end) {
    ibv_dm* other = alloc(end.context, kPage);
    ibv_dm* dm = alloc(end.context, kPage);
    for (const std::size_t offset : {0, 4, 8, 60, 64, 100, 252, 256}) {
      for (const std::size_t length : {4, 8, 12, 60, 64, 68, 128, 252, 256, 260, 1000}) {
        write(dm, 0, std::vector<std::uint8_t>(2048, 0xaa));
        const auto bytes = numbers(length, std::uint8_t(offset + 3));
        write(dm, offset, bytes);
        EXPECT_EQ(read(dm, offset, length), bytes) << offset << " " << length;
        if (offset >= 4) {
          EXPECT_EQ(read(dm, offset - 4, 4), std::vector<std::uint8_t>(4, 0xaa));
        }
        EXPECT_EQ(read(dm, offset + length, 4), std::vector<std::uint8_t>(4, 0xaa));
      }
    }
    EXPECT_EQ(read(other, 0, kPage), std::vector<std::uint8_t>(kPage, 0));
  });
  EXPECT_EQ(counters_of(0).pcie.mmio_refused, 0u);
}

// More data than a slot of an attached process can hold, and it arrives before the doorbell behind it.
TEST_F(DeviceMemory, AllOfItAtOnceBeforeADoorbell) {
  EndpointOptions options;
  options.buffer_bytes = 1 << 18;
  run_connected(
      [&](Endpoint& end) {
        const auto all = params().size.bytes;
        ibv_dm* dm = alloc(end.context, all);
        ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 0, all, kAll);
        write(dm, 0, numbers(all, 7));
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, std::uint32_t(all));
        wr.sg_list->addr = 0;
        wr.sg_list->lkey = mr->lkey;
        complete(end, wr);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_EQ(end.buffer, numbers(end.buffer.size(), 7));
      },
      options, options);
  EXPECT_EQ(counters_of(0).device_memory.read_bytes, params().size.bytes);
  EXPECT_LT(counters_of(0).dma.read_bytes, 64u * 1024);
}

// A new owner must not read the previous owner's data.
TEST_F(DeviceMemory, IsZerosWhenItIsGivenOut) {
  run_alone([&](Endpoint& end) {
    ibv_dm* dm = alloc(end.context, kPage);
    const auto handle = dm->handle;
    write(dm, 0, numbers(kPage));
    EXPECT_EQ(ibv_free_dm(dm), 0);
    dm = alloc(end.context, 8);
    EXPECT_EQ(dm->handle, handle);
    EXPECT_EQ(read(dm, 0, 8), std::vector<std::uint8_t>(8, 0));
    // The other bytes of its page, too.
    EXPECT_EQ(process(0).port().mmio_read(abi::kDeviceMemoryBase + handle + 8, 8), 0u);
  });
}

// The kernel lets a process access only its own pages.
TEST_F(DeviceMemory, IsNobodyElses) {
  run_alone([&](Endpoint& end) {
    ibv_dm* dm = alloc(end.context, kPage);
    auto& port = process(0).port();
    const auto refused = [&] { return host(0).agent().counters().mmio_refused; };
    const std::array<std::byte, 64> line{std::byte{1}};
    const auto at = abi::kDeviceMemoryBase + dm->handle;
    const auto stores = [&](std::uint32_t offset, std::size_t bytes) {
      const auto before = refused();
      port.mmio_write(offset, std::span(line).first(bytes));
      port.settle();
      pass(0, kSettled);
      return refused() == before;
    };
    EXPECT_TRUE(stores(at, 64));
    EXPECT_TRUE(stores(at + kPage - 64, 64));
    EXPECT_FALSE(stores(at + kPage - 32, 64));  // crosses the end of the page
    EXPECT_FALSE(stores(at + kPage, 4));
    EXPECT_FALSE(stores(abi::kDeviceMemoryBase - 4, 8));
    EXPECT_FALSE(stores(abi::kBarSize - 4, 8));
    EXPECT_EQ(port.mmio_read(at + kPage - 8, 8), 0u);
    EXPECT_EQ(port.mmio_read(at + kPage - 4, 8), ~0ull);
    EXPECT_EQ(port.mmio_read(at + kPage, 4), ~0ull);
    EXPECT_EQ(ibv_free_dm(dm), 0);
    EXPECT_FALSE(stores(at, 64));
  });
}

TEST_F(DeviceMemory, PeersWriteReadAndSendThere) {
  constexpr std::size_t kBytes = 3 * kPage;
  run_on_peers(
      kBytes,
      [](Endpoint& end, const Target& target) {
        fill(end);
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 5000);
        to_target(wr, target, 100);
        complete(end, wr);
        wr = end.request(IBV_WR_RDMA_READ, 20000, 5000);
        to_target(wr, target, 100);
        complete(end, wr);
        EXPECT_TRUE(filled(end, 20000, 5000));
        send(end, 3000);
        wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);
        to_target(wr, target, kBytes - 4);
        complete(end, wr, IBV_WC_REM_ACCESS_ERR);
      },
      [](Endpoint&, ibv_dm* dm) {
        EXPECT_EQ(read(dm, 100, 5000), numbers(5000));
        EXPECT_EQ(read(dm, 0, 100), std::vector<std::uint8_t>(100, 0));
        EXPECT_EQ(read(dm, 8000, 3000), numbers(3000));
      },
      [](Endpoint& end, ibv_dm* dm) {
        ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 8000, 3000, kAll);
        ibv_sge sge{0, 3000, mr->lkey};
        ibv_recv_wr wr{1, nullptr, &sge, 1};
        ibv_recv_wr* bad = nullptr;
        EXPECT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
        return mr;
      });
}

TEST_F(DeviceMemory, AtomicsOfPeers) {
  run_on_peers(
      64,
      [](Endpoint& end, const Target& target) {
        for (std::uint64_t i = 0; i < 20; ++i) {
          auto wr = end.fetch_add(std::uint32_t(8 * i), 3);
          to_target(wr, target, 8);
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint64_t i = 0; i < 20; ++i) {
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          std::uint64_t value;
          std::memcpy(&value, end.buffer.data() + 8 * i, sizeof value);
          EXPECT_EQ(value, 3 * i);
        }
        auto wr = end.compare_swap(0, 60, 0x0807060504030201);
        to_target(wr, target, 8);
        complete(end, wr);
      },
      [](Endpoint&, ibv_dm* dm) { EXPECT_EQ(read(dm, 8, 8), numbers(8)); });
  EXPECT_EQ(counters_of(1).device_memory.reads, 21u);
  EXPECT_EQ(counters_of(1).device_memory.writes, 21u);
}

// Messages alternate between host memory and device memory: the last byte of each must land last.
TEST_F(DeviceMemory, WritesLandInOrderOverBothMemories) {
  constexpr std::uint32_t kMessages = 16, kEach = 2000;
  Target target;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        fill(end);
        for (std::uint32_t i = 0; i < kMessages; ++i) {
          auto wr = end.request(IBV_WR_RDMA_WRITE, 0, kEach, i * kEach);
          if (i % 2 != 0) to_target(wr, target, i * kEach);
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint32_t i = 0; i < kMessages; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        ibv_dm* dm = alloc(end.context, kMessages * kEach);
        ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 0, kMessages * kEach, kAll);
        auto& port = process(1).port();
        // The last byte of message 1, in device memory, must not land before that of message 0.
        std::vector<int> too_early(kMessages, 0);
        bool all = false;
        target.rkey = mr->rkey;
        meet(1);
        while (!all) {
          std::vector<bool> there(kMessages);
          for (std::uint32_t i = kMessages; i-- > 0;) {
            const auto last = (i + 1) * kEach - 1;
            there[i] = i % 2 == 0 ? end.buffer[last] != 0
                                  : port.mmio_read(abi::kDeviceMemoryBase + dm->handle + last / 4 * 4, 4) != 0;
          }
          // Read from the last to the first: if a byte has landed, all earlier bytes must have landed.
          for (std::uint32_t i = 1; i < kMessages; ++i)
            if (there[i] && !there[i - 1]) ++too_early[i];
          all = std::ranges::all_of(there, std::identity{});
        }
        EXPECT_EQ(too_early, std::vector<int>(kMessages, 0));
        for (std::uint32_t i = 1; i < kMessages; i += 2) EXPECT_EQ(read(dm, i * kEach, kEach), numbers(kEach));
        meet(1);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
      });
  EXPECT_GT(counters_of(1).device_memory.turns, 0u);
}

// A receive whose list names both memories; its completion comes after all of its payload.
TEST_F(DeviceMemory, AListMayNameBothMemories) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        send(end, 4000);
      },
      [&](Endpoint& end) {
        ibv_dm* dm = alloc(end.context, kPage);
        ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, 64, 2000, kAll);
        const auto buffer = reinterpret_cast<std::uintptr_t>(end.buffer.data());
        ibv_sge parts[] = {{buffer, 1000, end.mr->lkey}, {500, 1500, mr->lkey}, {buffer + 1000, 1500, end.mr->lkey}};
        ibv_recv_wr wr{1, nullptr, parts, 3};
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
        meet(1);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_TRUE(filled(end, 0, 1000));
        EXPECT_TRUE(filled(end, 1000, 1500, 2500));
        EXPECT_EQ(read(dm, 564, 1500), numbers(1500, std::uint8_t(1000 + 1)));
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
      });
}

// --- Time.
class DeviceMemoryTime : public DeviceMemory {
 protected:
  Duration host_takes(std::uint32_t bytes) {
    const auto& dma = system().config().nic.dma;
    const nic::PcieLink link(dma.link);
    return link.time_for(link.read_request(0, bytes)) + dma.read_latency + link.time_for(link.completion(0, bytes)) +
           dma.read_internal;
  }
  Duration device_takes(std::uint32_t bytes) { return params().line_interval * ((bytes + 63) / 64) + params().latency; }
  // Time of the READ with this response frame: from the request's last bit to the response's.
  Duration answered_in(std::size_t answer) {
    EXPECT_EQ(wire()[answer - 1].from, 0u);
    EXPECT_EQ(wire()[answer].from, 1u);
    return wire()[answer].at - wire()[answer - 1].at;
  }
};

TEST_F(DeviceMemoryTime, AReadOfItIsFasterByWhatPcieTakes) {
  constexpr std::uint32_t kBytes = 256;
  run_on_peers(
      kPage,
      [&](Endpoint& end, const Target& target) {
        for (int i = 0; i < 6; ++i) {
          auto wr = end.request(IBV_WR_RDMA_READ, 0, kBytes);
          if (i >= 3) to_target(wr, target, 0);
          complete(end, wr);
        }
      },
      [](Endpoint&, ibv_dm*) {});
  ASSERT_EQ(wire().size(), 12u);
  // The contexts are cached from the second READ on, if the cache has room for them.
  const bool cached = ::getenv("RNICSIM_TEST_SETS") == nullptr;
  const auto of_host = answered_in(5), of_device = answered_in(11);
  if (cached)
    EXPECT_EQ((of_host - of_device).ps, (host_takes(kBytes) - device_takes(kBytes)).ps);
  else
    EXPECT_GE(of_host - of_device, host_takes(kBytes) - device_takes(kBytes) - 400_ns);
}

// Stores are posted, one line each interval; a load takes a round trip for 8 bytes.
TEST_F(DeviceMemoryTime, TheCpuStoresFastAndLoadsSlowly) {
  run_alone([&](Endpoint& end) {
    ibv_dm* dm = alloc(end.context, kPage);
    auto& port = process(0).port();
    port.settle();
    pass(0, kSettled);
    const auto& cpu = system().config().host;
    const auto bytes = numbers(kPage);
    auto begun = now();
    write(dm, 0, bytes);
    port.settle();
    const auto stored = now() - begun;
    EXPECT_GE(stored, cpu.cpu.mmio_write * std::int64_t{kPage / 256});
    EXPECT_LE(stored,
              cpu.cpu.mmio_write * std::int64_t{kPage / 256} + cpu.mmio_line_interval * std::int64_t{kPage / 64});
    begun = now();
    EXPECT_EQ(read(dm, 0, 64), numbers(64));
    EXPECT_GE(now() - begun, cpu.cpu.mmio_read * 8);
  });
}

// --- Imported contexts.
TEST_F(DeviceMemory, IsImportedWithItsContext) {
  run_alone([&](Endpoint& end) {
    ibv_dm* dm = alloc(end.context, 100);
    ibv_context* other = ibv_import_device(::dup(end.context->cmd_fd));
    ASSERT_NE(other, nullptr);
    ibv_dm* imported = ibv_import_dm(other, dm->handle);
    ASSERT_NE(imported, nullptr);
    write(dm, 8, numbers(8));
    EXPECT_EQ(read(imported, 8, 8), numbers(8));
    EXPECT_EQ(ibv_memcpy_from_dm(end.buffer.data(), imported, 100, 4), EINVAL);
    expect_errno(ENOENT, [&] { return ibv_import_dm(other, dm->handle + 4); });
    expect_errno(ENOENT, [&] { return ibv_import_dm(other, ~0u); });
    ibv_unimport_dm(imported);
    ibv_close_device(other);
    EXPECT_EQ(read(dm, 8, 8), numbers(8));
    EXPECT_EQ(ibv_free_dm(dm), 0);
  });
}

class NoDeviceMemory : public DeviceMemory {
 protected:
  NoDeviceMemory() : DeviceMemory({"nic.device_memory.size=0KiB"}) {}
};

TEST_F(NoDeviceMemory, SaysSo) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &attributes), 0);
    EXPECT_EQ(attributes.max_dm_size, 0u);
    expect_errno(EOPNOTSUPP, [&] { return alloc(end.context, 1); });
    expect_errno(EOPNOTSUPP, [&] { return ibv_import_dm(end.context, 0); });
  });
}

}  // namespace
}  // namespace rnicsim::testing::device_memory_test
