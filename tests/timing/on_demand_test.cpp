// SPDX-License-Identifier: Apache-2.0
// Cost of on-demand pages: docs/timing.md, and docs/device.md, Regions on demand.
#include <sys/mman.h>

#include "model/host/memory/page_faults.h"
#include "model/host/software_process.h"
#include "tests/timing/steps.h"

namespace rnicsim::testing {
namespace {

constexpr std::size_t kPage = 4096;

class OnDemandCosts : public Steps {
 protected:
  explicit OnDemandCosts(std::vector<std::string> sets = {}) : Steps(std::move(sets)) {}

  // Time of a WRITE of 64 bytes from pinned memory, from a page whose translation the device has, from a present page,
  // and from an absent page.
  struct Times {
    Duration pinned, known, present, absent;
  };
  Times measure() {
    Times times;
    run_connected(
        [&](Endpoint& end) {
          void* memory = mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          ibv_mr* mr = ibv_reg_mr(end.pd, memory, 3 * kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
          ibv_mr* pinned = ibv_reg_mr(end.pd, memory, 3 * kPage, IBV_ACCESS_LOCAL_WRITE);
          ASSERT_TRUE(mr != nullptr && pinned != nullptr);
          const auto from = [&](std::uint64_t page) {
            pass(0, kSettled);
            ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + page * kPage, 64, mr->lkey};
            auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
            wr.sg_list = &sge;
            const auto start = process(0).port().thread_time();
            complete(end, wr);
            return process(0).port().thread_time() - start;
          };
          from(0);
          times.known = from(0);
          std::swap(mr, pinned);
          from(0);
          times.pinned = from(0);
          std::swap(mr, pinned);
          ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + kPage, 1, mr->lkey};
          ASSERT_EQ(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
          times.present = from(1);
          times.absent = from(2);
          EXPECT_EQ(ibv_dereg_mr(mr) | ibv_dereg_mr(pinned), 0);
          munmap(memory, 3 * kPage);
        },
        [](Endpoint&) {});
    return times;
  }
  // The device requests the translation of a page.
  Duration translation() const { return read(8) + config().host.iommu_walk; }
  // The device requests the page, the host responds, and the device requests the translation again.
  Duration fault() const {
    return svc(0, link().request_header) + nic().dma.write_latency + config().host.page_fault +
           config().host.mmio_write_latency + translation();
  }
};

TEST_F(OnDemandCosts, APageCostsItsTranslationAndItsFault) {
  const auto [pinned, known, present, absent] = measure();
  EXPECT_EQ((known - pinned).ps, nic().atc.lookup.ps);
  EXPECT_EQ((present - known).ps, translation().ps);
  EXPECT_EQ((absent - known).ps, (translation() + fault()).ps);
}

struct Slower : OnDemandCosts {
  Slower() : OnDemandCosts({"host.iommu_walk=1us", "host.page_fault=200us", "nic.atc.lookup=50ns"}) {}
};
TEST_F(Slower, TheSumsAreOfTheParameters) {
  const auto [pinned, known, present, absent] = measure();
  EXPECT_EQ((known - pinned).ps, nic().atc.lookup.ps);
  EXPECT_EQ((present - known).ps, translation().ps);
  EXPECT_EQ((absent - known).ps, (translation() + fault()).ps);
}

TEST_F(OnDemandCosts, AdviceTakesTimeByThePage) {
  run_alone([this](Endpoint& end) {
    void* memory = mmap(nullptr, 64 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ibv_mr* mr = ibv_reg_mr(end.pd, memory, 64 * kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    const auto advise = [&](std::uint64_t page, std::uint32_t pages) {
      ibv_sge sge{reinterpret_cast<std::uint64_t>(memory) + page * kPage, pages * std::uint32_t(kPage), mr->lkey};
      settle(0);
      const auto start = process(0).port().thread_time();
      EXPECT_EQ(ibv_advise_mr(end.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
      return process(0).port().thread_time() - start;
    };
    const auto one = advise(0, 1);
    EXPECT_EQ((advise(1, 31) - one).ps, (config().host.page_in * 30).ps);
    EXPECT_EQ(one.ps, (config().host.cpu.system_call + config().host.page_in).ps);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    munmap(memory, 64 * kPage);
  });
}

}  // namespace
}  // namespace rnicsim::testing
