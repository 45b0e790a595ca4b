// SPDX-License-Identifier: Apache-2.0
// A driver that follows the manual gets no finding, and the check changes nothing that it observes.
#include <fstream>
#include <iterator>
#include <random>
#include <tuple>

#include "model/nic/pcie/dma.h"
#include "model/nic/queues/completion.h"
#include "tests/unit/driver_check/checked_pair.h"

namespace rnicsim::driver_check {
namespace {

using nic::test::kReceiveCqn;
using nic::test::kSendCqn;

class RightDriver : public CheckedPair {
 protected:
  // Sends and writes, over many laps of each ring; every completion is consumed.
  void work(int count) {
    for (int i = 0; i < count; ++i) {
      b().post_receive(b().buffer, 4096);
      a().post_send({.opcode = abi::SendOpcode::send, .length = 100, .blueflame = i % 2 == 0});
      write(2000, i % 3 == 0);
      if (i % 5 == 0) a().arm(kSendCqn, false);
      run(4);
      while (a().poll(kSendCqn)) {}
      while (b().poll(kReceiveCqn)) {}
    }
    run(50);
  }
  using Step = std::tuple<std::int64_t, bool, std::uint64_t, std::uint32_t>;
  std::vector<Step> trace(const CheckParams& params, bool checked) {
    build(params, checked);
    std::vector<Step> steps;
    a().nic.blocks().dma_unit.issued.subscribe([&steps](const nic::DmaIssued& dma) {
      steps.emplace_back((now() + dma.done).ps, dma.write, dma.address, dma.bytes);
    });
    a().nic.blocks().completion.written.subscribe(
        [&steps](const nic::CqeWritten& cqe) { steps.emplace_back(now().ps, true, cqe.index, cqe.cqn.value); });
    bring_up();
    work(100);
    steps.emplace_back(now().ps, false, a().nic.counters().pcie.dma_reads, 0);
    return steps;
  }
};

TEST_F(RightDriver, HearsNothing) {
  bring_up();
  work(500);
  check().finish();
  expect_nothing();
  EXPECT_GT(check().accesses(), 1000u);
}

TEST_F(RightDriver, HearsNothingInTheModes) {
  build({.poison = true, .owner_delay = 1_us});
  bring_up();
  work(300);
  check().finish();
  expect_nothing();
}

TEST_F(RightDriver, TakesTheSameTimeWithAndWithout) {
  const auto without = trace({}, false);
  EXPECT_GT(without.size(), 500u);
  EXPECT_EQ(trace({}, true), without);
}

// A faulty driver: random rings, records and mailboxes, and stores everywhere. The check must keep running, and each
// finding is one line.
TEST_F(RightDriver, NoiseIsTold) {
  bring_up();
  std::mt19937 random(7);
  const auto upto = [&random](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
  };
  const std::uint64_t places[] = {
      0, 0x80, 0x88, abi::kMsixTable, page(), page() + 0x10, abi::kUarBase + 0x20, page() + 0x800};
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> data(std::array{1, 2, 4, 8, 64}[upto(4)]);
    for (auto& byte : data) byte = static_cast<std::byte>(upto(3) == 0 ? upto(255) : upto(17));
    const auto offset = upto(3) == 0 ? upto(abi::kBarSize) : places[upto(std::size(places) - 1)] + upto(1) * upto(64);
    a().host.mmio(offset, data);
    if (upto(9) == 0) *a().host.at(nic::test::kMemoryBase + upto(0x140000)) = static_cast<std::byte>(upto(255));
    if (upto(99) == 0) a().host.config_write(upto(1) == 0 ? 4 : upto(0xff0), static_cast<std::uint32_t>(random()), 2);
    if (upto(999) == 0) a().host.config_write(abi::config::kCommand, 6, 2);
    if (upto(99) == 0) run(2);
  }
  run(1000);
  check().finish();
  EXPECT_GT(check().findings().size(), 20u);
  EXPECT_LE(check().findings().size(), 1000u);
  for (const auto& finding : check().findings()) EXPECT_EQ(finding.line().find('\n'), std::string::npos);
  EXPECT_FALSE(check().burndown().empty());
}

// Every kind has a row in docs/driver-check.md, and its section is a heading of the manual.
TEST(FindingKinds, AreInTheManual) {
  const auto text_of = [](const char* page) {
    std::ifstream file(std::string(RNICSIM_SOURCE_DIR "/docs/") + page);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto page = text_of("driver-check.md"), manual = text_of("device.md");
  ASSERT_FALSE(page.empty() || manual.empty());
  for (const auto& term : finding_kinds()) {
    EXPECT_EQ(&term, &term_of(term.kind));
    EXPECT_NE(page.find(std::string("\n| ") + term.name + " | "), std::string::npos) << term.name;
    EXPECT_NE(manual.find(std::string("# ") + term.section + "\n"), std::string::npos) << term.section;
  }
}

TEST_F(RightDriver, ResetsAndBeginsAnew) {
  bring_up();
  work(20);
  a().host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
  run(100'000);
  a().restart();
  a().bring_up();
  a().create_qp();
  run(10);
  expect_nothing();
}

}  // namespace
}  // namespace rnicsim::driver_check
