#include <Vstream_fifo.h>

#include <deque>

#include "tests/rtl/clocked.h"

namespace rnicsim::rtl::test {
namespace {

constexpr std::size_t kDepth = 4;

class Fifo : public ::testing::TestWithParam<std::tuple<Inserter::Mode, Inserter::Mode>> {};

TEST_P(Fifo, KeepsOrderAndLosesNothing) {
  Clocked<Vstream_fifo> fifo;
  Inserter offers(std::get<0>(GetParam()), 1), takes(std::get<1>(GetParam()), 2);
  std::deque<std::uint32_t> held;
  std::uint32_t next = 1, taken = 0;
  bool was_full = false;
  for (int cycle = 0; cycle < 20'000; ++cycle) {
    fifo->in_valid_i = offers.open();
    fifo->in_data_i = next * 0x9e3779b9u;
    fifo->out_ready_i = takes.open();
    fifo.settle();
    ASSERT_EQ(fifo->count_o, held.size()) << "cycle " << cycle;
    ASSERT_EQ(bool(fifo->in_ready_o), held.size() < kDepth);
    ASSERT_EQ(bool(fifo->out_valid_o), !held.empty());
    was_full |= held.size() == kDepth;
    if (fifo->out_valid_o && fifo->out_ready_i) {
      ASSERT_EQ(fifo->out_data_o, held.front());
      held.pop_front();
      ++taken;
    }
    if (fifo->in_valid_i && fifo->in_ready_o) held.push_back(next++ * 0x9e3779b9u);
    fifo.tick();
  }
  EXPECT_GT(taken, 2000u);
  // One that is always emptied as fast never fills.
  const bool always_emptied = std::get<1>(GetParam()) == Inserter::Mode::always;
  EXPECT_EQ(was_full, !always_emptied);
  if (always_emptied && std::get<0>(GetParam()) == Inserter::Mode::always) {
    EXPECT_EQ(taken, 19'999u);
  }
}
INSTANTIATE_TEST_SUITE_P(Under, Fifo, ::testing::Combine(::testing::ValuesIn(kModes), ::testing::ValuesIn(kModes)),
                         [](const auto& info) {
                           return name_of(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace rnicsim::rtl::test
