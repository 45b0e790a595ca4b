// SPDX-License-Identifier: Apache-2.0
// DCQCN's reaction point: rates step by step, in both variants; the times of queries must not matter.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "model/base/policy_params.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce::dcqcn_test {
namespace {

using namespace rnicsim::literals;

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr BitRate kLine = 100_Gbps;

std::unique_ptr<PolicyParams> params_of_policy(const char* name) {
  return find_policy<CongestionControl>(name)->make_params()();
}

// Sets one parameter by its name.
class Setter final : public ParamVisitor {
 public:
  Setter(std::string path, double value) : path_(std::move(path)), value_(value) {}
  bool found() const { return found_; }

  void param(const char* name, Duration& value, const char*, Range) override { set(name, value.ps); }
  void param(const char* name, ByteCount& value, const char*, Range) override { set(name, value.bytes); }
  void param(const char* name, BitRate& value, const char*, Range) override { set(name, value.bits_per_second); }
  void param(const char* name, std::uint32_t& value, const char*, Range) override { set(name, value); }
  void param(const char* name, std::uint64_t& value, const char*, Range) override { set(name, value); }
  void param(const char* name, double& value, const char*, Range) override { set(name, value); }
  void param(const char* name, bool& value, const char*) override { set(name, value); }
  void param(const char*, std::string&, const char*, std::span<const char* const>) override {}

 protected:
  void enter(const char* name) override { at_.push_back(name); }
  void leave() override { at_.pop_back(); }

 private:
  template <class Value>
  void set(const char* name, Value& value) {
    std::string path;
    for (const auto& group : at_) path += group + '.';
    if (path + name != path_) return;
    value = static_cast<Value>(value_);
    found_ = true;
  }

  const std::string path_;
  const double value_;
  std::vector<std::string> at_;
  bool found_ = false;
};

class Dcqcn : public testing::Test {
 protected:
  explicit Dcqcn(const char* name = "dcqcn") : name_(name), params_(params_of_policy(name)) {}

  // Call before make().
  void set(const std::string& name, double value) {
    Setter setter(name, value);
    params_->describe(setter);
    ASSERT_TRUE(setter.found()) << name;
  }
  CongestionControl& make() {
    control_ = make_policy<CongestionControl>(name_, params_.get(), kLine);
    return *control_;
  }
  CongestionControl& control() { return control_ ? *control_ : make(); }
  double rate_at(Duration at) { return control().allowance(asked_ = at).rate / 1e9; }
  double target() { return control().state(asked_).target / 1e9; }
  double alpha() { return control().state(asked_).alpha; }

 private:
  const char* const name_;
  const std::unique_ptr<PolicyParams> params_;
  std::unique_ptr<CongestionControl> control_;
  Duration asked_{};  // time of the last query
};

class DcqcnPaper : public Dcqcn {
 protected:
  DcqcnPaper() : Dcqcn("dcqcn_paper") {}
};

TEST_F(Dcqcn, NothingIsHeldBackBeforeTheFirstCnp) {
  control().sent(1'000'000, 1_ms);
  EXPECT_EQ(rate_at(5_ms), Allowance::kUnlimited);
  EXPECT_EQ(control().next_change(), CongestionControl::kNever);
}

// A cut is due at the end of the monitor period, not at the CNP; then increases, 300 us apart: one of fast recovery,
// one additive, then hyper.
TEST_F(Dcqcn, OneCnpAndTheWayUp) {
  control().notified(10_us);
  EXPECT_DOUBLE_EQ(rate_at(10_us), 100);
  EXPECT_EQ(control().next_change(), 14_us);
  EXPECT_DOUBLE_EQ(rate_at(14_us - 1_ps), 100);
  // Alpha started at 1, stayed at 1 in the first step of 1 us because of the CNP, and fell in three further steps.
  const auto alpha_then = std::pow(1019.0 / 1024, 3);
  const auto cut = 100 * (1 - alpha_then / 2);
  EXPECT_NEAR(rate_at(14_us), cut, 1e-9);
  EXPECT_EQ(control().next_change(), 314_us);
  EXPECT_NEAR(rate_at(314_us), (cut + 100) / 2, 1e-9);
  EXPECT_NEAR(target(), 100, 1e-9);
  const auto second = ((cut + 100) / 2 + 100) / 2;
  EXPECT_NEAR(rate_at(614_us), second, 1e-9);
  EXPECT_EQ(rate_at(100_ms), Allowance::kUnlimited);
  EXPECT_EQ(control().next_change(), CongestionControl::kNever);
}

TEST_F(Dcqcn, ManyCnpsOfOnePeriodAreOneCut) {
  control().notified(0_us);
  for (int i = 0; i < 30; ++i) control().notified(1_us + i * 100_ns);
  EXPECT_DOUBLE_EQ(rate_at(4_us - 1_ps), 100);
  EXPECT_NEAR(rate_at(4_us), 50, 0.5);
  EXPECT_EQ(control().next_change(), 304_us);
}

TEST_F(Dcqcn, CnpsInEachPeriodCutAgainAndAgainToTheLeastRate) {
  for (int i = 0; i < 100; ++i) control().notified(4_us * i + 1_us);
  EXPECT_DOUBLE_EQ(rate_at(405_us), 0.001);
  EXPECT_LT(alpha(), 0.5);  // three of four steps saw no CNP
}

TEST_F(Dcqcn, ACutTakesNoMoreThanTheLeastFactor) {
  set("rpg_min_dec_fac", 90);
  control().notified(0_us);
  EXPECT_DOUBLE_EQ(rate_at(4_us), 90);
}

TEST_F(Dcqcn, RpgGdDividesAlpha) {
  set("rpg_gd", 12);
  set("dce_tcp_g", 1023);
  control().notified(0_us);
  EXPECT_NEAR(rate_at(4_us), 75, 0.1);
}

TEST_F(Dcqcn, TheFirstCnpCanSetTheRate) {
  set("rate_to_set_on_first_cnp", 25e9);
  control().notified(0_us);
  EXPECT_DOUBLE_EQ(rate_at(1_us), 25);
}

// The target becomes the rate before the cut if the rate had risen, or with clamp_tgt_rate.
TEST_F(Dcqcn, TheTargetStaysWhereCutsFollowEachOther) {
  control().notified(0_us);
  control().notified(5_us);
  rate_at(8_us);
  EXPECT_DOUBLE_EQ(target(), 100);
  control().notified(400_us);
  const auto risen = rate_at(403_us);
  rate_at(404_us);
  EXPECT_NEAR(target(), risen, 1e-9);
}

TEST_F(Dcqcn, ClampTgtRateMovesTheTargetAtEachCut) {
  set("clamp_tgt_rate", 1);
  control().notified(0_us);
  control().notified(5_us);
  const auto before = rate_at(7_us);
  rate_at(8_us);
  EXPECT_NEAR(target(), before, 1e-9);
}

// With 150 KB per step: fast recovery, then additive increase; hyper increase only after the timer has counted, too.
TEST_F(Dcqcn, TheByteCounterRaisesTheRate) {
  set("rpg_byte_reset", 150'000);
  set("clamp_tgt_rate", 1);
  control().notified(0_us);
  const auto cut = rate_at(4_us);
  EXPECT_EQ(rate_at(5_us), cut);
  control().sent(149'999, 6_us);
  EXPECT_DOUBLE_EQ(rate_at(6_us), cut);
  control().sent(1, 6_us);
  EXPECT_DOUBLE_EQ(rate_at(6_us), (cut + 100) / 2);
}

// --- The variant of the paper.
TEST_F(DcqcnPaper, ACnpCutsAtOnceAndRaisesAlpha) {
  control().notified(10_us);
  EXPECT_DOUBLE_EQ(rate_at(10_us), 50);
  EXPECT_DOUBLE_EQ(target(), 100);
  EXPECT_DOUBLE_EQ(alpha(), 1);
  control().notified(20_us);
  EXPECT_DOUBLE_EQ(rate_at(20_us), 25);
  EXPECT_DOUBLE_EQ(target(), 50);
}

TEST_F(DcqcnPaper, AlphaFallsWithoutCnps) {
  control().notified(0_us + 1_ps);
  rate_at(55_us);
  EXPECT_DOUBLE_EQ(alpha(), 1);
  rate_at(55_us + 1_ps);
  EXPECT_DOUBLE_EQ(alpha(), 255.0 / 256);
  rate_at(550_us + 1_ps);
  EXPECT_NEAR(alpha(), std::pow(255.0 / 256, 10), 1e-12);
}

// Five steps of fast recovery, 55 us apart; the target rises from the sixth on, by 40 Mb/s. The byte counter has not
// counted, so there is no hyper increase.
TEST_F(DcqcnPaper, FastRecoveryThenAdditiveIncrease) {
  control().notified(1_us);
  control().notified(2_us);
  double rate = 25, wanted = 50;
  for (int step = 1; step <= 8; ++step) {
    if (step > 5) wanted += 0.04;
    rate = (rate + wanted) / 2;
    EXPECT_NEAR(rate_at(2_us + 55_us * step), rate, 1e-9) << step;
    EXPECT_NEAR(target(), wanted, 1e-9) << step;
  }
}

// Both counts beyond 5: step n increases by n x 200 Mb/s.
TEST_F(DcqcnPaper, HyperIncreaseGrows) {
  control().notified(1_us);
  control().notified(2_us);
  auto at = 2_us;
  for (int step = 0; step < 6; ++step) {
    at += 55_us;
    control().sent(10'000'000, at);
  }
  const auto before = target();
  control().sent(10'000'000, at);  // 7 steps by bytes, 6 by the timer
  EXPECT_NEAR(target() - before, 0.2, 1e-9);
  rate_at(at + 55_us);  // 7 and 7
  EXPECT_NEAR(target() - before, 0.2 + 0.4, 1e-9);
}

TEST(CongestionControls, NoneHoldsNothingBack) {
  EXPECT_EQ(make_policy<CongestionControl>("none", nullptr, kLine), nullptr);
}

// A control that is queried at other times between its inputs reaches the same state.
void expect_lazy(const char* name) {
  const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 400), rc::gen::inRange(0, 3), rc::gen::inRange(0, 20)));
  const auto params = params_of_policy(name);
  const auto often = make_policy<CongestionControl>(name, params.get(), kLine);
  const auto seldom = make_policy<CongestionControl>(name, params.get(), kLine);
  Duration at{};
  for (const auto& [after, what, asks] : steps) {
    const auto until = at + 1_us * after;
    for (int i = 1; i <= asks; ++i) {
      const auto ask = at + Duration{(until - at).ps * i / (asks + 1)};
      const auto change = often->next_change();
      const auto before = often->allowance(at).rate;
      // The rate stays between changes.
      if (ask < change) RC_ASSERT(often->allowance(ask).rate == before);
      at = ask;
    }
    at = until;
    for (const auto* control : {&often, &seldom})
      what == 0 ? (*control)->notified(at) : (*control)->sent(std::uint32_t(500'000 * what), at);
    RC_ASSERT(often->allowance(at).rate == seldom->allowance(at).rate);
    const auto a = often->state(at);
    const auto b = seldom->state(at);
    RC_ASSERT(a.target == b.target);
    RC_ASSERT(a.alpha == b.alpha);
    RC_ASSERT(a.rate > 0 && (a.rate == Allowance::kUnlimited || a.rate <= a.target));
    RC_ASSERT(a.alpha >= 0 && a.alpha <= 1);
  }
}
RC_GTEST_PROP(CongestionControls, DcqcnIsLazy, ()) { expect_lazy("dcqcn"); }
RC_GTEST_PROP(CongestionControls, DcqcnPaperIsLazy, ()) { expect_lazy("dcqcn_paper"); }

}  // namespace
}  // namespace rnicsim::roce::dcqcn_test
