// SPDX-License-Identifier: Apache-2.0
#include <Vround_robin.h>

#include <bitset>
#include <optional>

#include "tests/rtl/clocked.h"

namespace rnicsim::rtl::test {
namespace {

constexpr unsigned kEntries = 256;

// Model of the module's function, without its structure.
class Reference {
 public:
  std::optional<unsigned> grant() const { return grant_; }
  bool busy() const { return grant_ || wanting_.any(); }
  void tick(std::optional<unsigned> request, bool taken) {
    if (wanting_.any() && (!grant_ || taken)) {
      auto next = last_;
      do next = (next + 1) % kEntries;
      while (!wanting_[next]);
      wanting_.reset(next);
      grant_ = last_ = next;
    } else if (taken) {
      grant_.reset();
    }
    if (request) wanting_.set(*request);
  }

 private:
  std::bitset<kEntries> wanting_;
  unsigned last_ = kEntries - 1;
  std::optional<unsigned> grant_;
};

struct Walk {
  Inserter::Mode asks, takes;
  unsigned spread;  // number of entries that send requests
};

class RoundRobin : public ::testing::TestWithParam<Walk> {};

TEST_P(RoundRobin, GrantsTheNextInACircle) {
  Clocked<Vround_robin> module;
  Reference reference;
  Inserter asks(GetParam().asks, 1), takes(GetParam().takes, 2);
  std::minstd_rand random(3);
  std::array<unsigned, kEntries> granted{};
  for (int cycle = 0; cycle < 50'000; ++cycle) {
    std::optional<unsigned> request;
    if (asks.open()) request = random() % GetParam().spread * (kEntries / GetParam().spread);
    const bool ready = takes.open();
    module->request_valid_i = request.has_value();
    module->request_entry_i = static_cast<std::uint8_t>(request.value_or(random() % kEntries));
    module->grant_ready_i = ready;
    module.settle();
    ASSERT_EQ(bool(module->grant_valid_o), reference.grant().has_value()) << "cycle " << cycle;
    if (reference.grant()) {
      ASSERT_EQ(module->grant_entry_o, *reference.grant()) << "cycle " << cycle;
    }
    ASSERT_EQ(bool(module->busy_o), reference.busy());
    const bool taken = reference.grant() && ready;
    if (taken) ++granted[*reference.grant()];
    reference.tick(request, taken);
    module.tick();
  }
  for (unsigned i = 0; i < kEntries; i += kEntries / GetParam().spread) EXPECT_GT(granted[i], 20u) << i;
}
INSTANTIATE_TEST_SUITE_P(Under, RoundRobin,
                         ::testing::Values(Walk{Inserter::Mode::always, Inserter::Mode::always, 256},
                                           Walk{Inserter::Mode::always, Inserter::Mode::often, 256},
                                           Walk{Inserter::Mode::always, Inserter::Mode::seldom, 256},
                                           Walk{Inserter::Mode::seldom, Inserter::Mode::always, 16},
                                           Walk{Inserter::Mode::bursts, Inserter::Mode::bursts, 64},
                                           Walk{Inserter::Mode::often, Inserter::Mode::bursts, 2},
                                           Walk{Inserter::Mode::often, Inserter::Mode::often, 1}),
                         [](const auto& info) {
                           return name_of(info.param.asks) + "_" + name_of(info.param.takes) + "_" +
                                  std::to_string(info.param.spread);
                         });

}  // namespace
}  // namespace rnicsim::rtl::test
