// SPDX-License-Identifier: Apache-2.0
// DCQCN, the reaction point (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015), in two
// variants. Both cut the rate when CNPs come, by half of an estimate of congestion, alpha, and raise the rate again by
// a timer and a byte counter: fast recovery to the target rate, then additive and hyper increase of the target.
//
// - "dcqcn": as NVIDIA's NICs (parameters of ecn/roce_rp in sysfs and of mlxconfig). A CNP sets two flags. The first
// flag is read each dce_tcp_rtt and moves alpha; the second is read each rate_reduce_monitor_period and cuts the rate.
// - "dcqcn_paper": as in the paper. A CNP cuts the rate at once and raises alpha; alpha falls when no CNP comes for
// dce_tcp_rtt.
//
// A queue pair begins without a limit. The limit ends when the rate has come back to the line's.
#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/policy_params.h"
#include "model/roce/congestion.h"

namespace rnicsim::roce {
namespace {

using namespace rnicsim::literals;

constexpr double kParts = 1024;      // unit of dce_tcp_g: 1 / kParts
constexpr double kMostAlpha = 1023;  // initial_alpha_value: 1
constexpr int kGdUnit = 10;          // rpg_gd: alpha is divided by 2 to the power of rpg_gd - 10
constexpr double kResolution = 1e6;  // bits per second: a rate this near to the line's counts as the line's

// --- Parameters of both variants.
struct DcqcnParams {
  std::uint32_t dce_tcp_g;
  Duration dce_tcp_rtt;
  std::uint32_t initial_alpha_value = 1023;
  Duration rpg_time_reset;
  ByteCount rpg_byte_reset;
  std::uint32_t rpg_threshold;
  BitRate rpg_ai_rate;
  BitRate rpg_hai_rate;
  BitRate rpg_min_rate;

  void describe(ParamVisitor& visit) {
    visit.param("dce_tcp_g", dce_tcp_g, "share of alpha that remains after a step, in 1024ths: 1024 x (1 - g)",
                {0, 1023});
    visit.param("dce_tcp_rtt", dce_tcp_rtt, "time between two steps of alpha", {1e3, 1e12});
    visit.param("initial_alpha_value", initial_alpha_value, "alpha at the first CNP, in 1023rds", {0, 1023});
    visit.param("rpg_time_reset", rpg_time_reset, "time between two increases of the rate", {1e3, 1e12});
    visit.param("rpg_byte_reset", rpg_byte_reset, "bytes sent between two increases of the rate; 0: they do not count",
                {0, 1e12});
    visit.param("rpg_threshold", rpg_threshold, "increases of fast recovery, before the target rate rises, too",
                {1, 31});
    visit.param("rpg_ai_rate", rpg_ai_rate, "increase of the target rate in additive increase", {1, 1e12});
    visit.param("rpg_hai_rate", rpg_hai_rate, "increase of the target rate in hyper increase", {1, 1e12});
    visit.param("rpg_min_rate", rpg_min_rate, "lowest rate", {1, 1e12});
  }
};

struct NvidiaParams : DcqcnParams {
  // NVIDIA's defaults.
  NvidiaParams()
      : DcqcnParams{.dce_tcp_g = 1019,
                    .dce_tcp_rtt = 1_us,
                    .rpg_time_reset = 300_us,
                    .rpg_byte_reset = {},
                    .rpg_threshold = 1,
                    .rpg_ai_rate = {5'000'000},
                    .rpg_hai_rate = {50'000'000},
                    .rpg_min_rate = {1'000'000}} {}

  Duration rate_reduce_monitor_period = 4_us;
  std::uint32_t rpg_min_dec_fac = 50;
  std::uint32_t rpg_gd = 11;
  bool clamp_tgt_rate = false;
  bool clamp_tgt_rate_after_time_inc = true;
  BitRate rate_to_set_on_first_cnp{0};
  bool hyper_by_timer = true;

  void describe(ParamVisitor& visit) {
    DcqcnParams::describe(visit);
    visit.param("rate_reduce_monitor_period", rate_reduce_monitor_period, "at most one cut of the rate in this time",
                {1e3, 1e12});
    visit.param("rpg_min_dec_fac", rpg_min_dec_fac, "least share of the rate that remains after a cut, in percent",
                {1, 100});
    visit.param("rpg_gd", rpg_gd, "a cut reduces the rate by alpha / 2^(rpg_gd - 10) of its value", {0, 15});
    visit.param("clamp_tgt_rate", clamp_tgt_rate, "each cut makes the rate before the cut the target rate");
    visit.param("clamp_tgt_rate_after_time_inc", clamp_tgt_rate_after_time_inc,
                "a cut behind an increase by the timer makes the rate before the cut the target rate");
    visit.param("rate_to_set_on_first_cnp", rate_to_set_on_first_cnp, "the rate at the first CNP; 0: the line's rate",
                {0, 1e13});
    visit.param("hyper_by_timer", hyper_by_timer,
                "true: without rpg_byte_reset the timer alone leads to hyper increase; false: hyper increase needs "
                "both counters");
  }
};

// The paper's values, section 5; hyper increase as the authors' simulator has it.
struct PaperParams : DcqcnParams {
  PaperParams()
      : DcqcnParams{.dce_tcp_g = 1020,
                    .dce_tcp_rtt = 55_us,
                    .rpg_time_reset = 55_us,
                    .rpg_byte_reset = {10'000'000},
                    .rpg_threshold = 5,
                    .rpg_ai_rate = {40'000'000},
                    .rpg_hai_rate = {200'000'000},
                    .rpg_min_rate = {1'000'000}} {}
};

// Power by squaring: the same result on every machine, which pow() of a library need not give.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

double bits(BitRate rate) { return static_cast<double>(rate.bits_per_second); }

// Alpha falls by the same factor at each step. The value depends on the number of steps, not on the time of the call.
class Alpha {
 public:
  explicit Alpha(const DcqcnParams& params)
      : kept_(params.dce_tcp_g / kParts),
        step_(params.dce_tcp_rtt),
        initial_(params.initial_alpha_value / kMostAlpha) {}

  double initial() const { return initial_; }
  double kept() const { return kept_; }
  double at(Duration now) const { return base_ * power(kept_, (now - base_at_).ps / step_.ps); }
  // Time of the next step after `now`.
  Duration next_step(Duration now) const { return base_at_ + step_ * ((now - base_at_).ps / step_.ps + 1); }
  // Sets alpha from `now` on.
  void set(double alpha, Duration now) {
    base_ = alpha;
    base_at_ = now;
  }
  void raise(double from, Duration now) { set(kept_ * from + 1 - kept_, now); }

 private:
  const double kept_;
  const Duration step_;
  const double initial_;
  double base_ = 0;
  Duration base_at_{};
};

// --- The increase of the rate, the same in both variants.
class Increase {
 public:
  // `hyper_grows`: the n-th hyper increase in a row is n times rpg_hai_rate. `hyper_by_timer`: where the byte counter
  // does not count, the timer's count is enough.
  Increase(const DcqcnParams& params, double line, bool hyper_grows, bool hyper_by_timer)
      : params_(params), line_(line), hyper_grows_(hyper_grows), hyper_by_timer_(hyper_by_timer) {}

  bool limited() const { return limited_; }
  double rate() const { return limited_ ? rate_ : Allowance::kUnlimited; }
  double target() const { return limited_ ? target_ : Allowance::kUnlimited; }
  Duration due() const { return due_; }
  bool raised() const { return time_stage_ != 0 || byte_stage_ != 0; }
  bool raised_by_bytes() const { return byte_stage_ != 0; }

  void begin(double rate) {
    limited_ = true;
    rate_ = target_ = std::min(rate, line_);
  }
  void set_target() { target_ = rate_; }
  // Keeps `factor` of the rate, and restarts the increase.
  void cut(double factor, Duration now) {
    rate_ = std::max(rate_ * factor, std::min(bits(params_.rpg_min_rate), line_));
    restart(now);
  }
  void restart(Duration now) {
    time_stage_ = byte_stage_ = 0;
    bytes_ = 0;
    due_ = now + params_.rpg_time_reset;
  }
  void timer_due() {
    due_ += params_.rpg_time_reset;
    raise(++time_stage_);
  }
  void sent(std::uint32_t bytes) {
    if (!limited_ || params_.rpg_byte_reset.bytes == 0) return;
    for (bytes_ += bytes; limited_ && bytes_ >= params_.rpg_byte_reset.bytes; bytes_ -= params_.rpg_byte_reset.bytes) {
      raise(++byte_stage_);
    }
  }

 private:
  // The first F increases after a cut are fast recovery. Then the target rises. The paper: additively, until both
  // counts are beyond F. NVIDIA: additively at the first increase of each count after fast recovery, and by hyper
  // increase as soon as both counts are beyond that one. `stage`: the count that has just risen.
  void raise(std::uint32_t stage) {
    const auto threshold = params_.rpg_threshold;
    const bool timer_alone = params_.rpg_byte_reset.bytes == 0 && hyper_by_timer_;
    const auto least = timer_alone ? time_stage_ : std::min(time_stage_, byte_stage_);
    if (hyper_grows_ ? least > threshold : least > threshold + 1)
      target_ += bits(params_.rpg_hai_rate) * (hyper_grows_ ? least - threshold : 1);
    else if (hyper_grows_ ? std::max(time_stage_, byte_stage_) > threshold : stage == threshold + 1)
      target_ += bits(params_.rpg_ai_rate);
    target_ = std::min(target_, line_);
    rate_ = (rate_ + target_) / 2;
    if (line_ - rate_ < kResolution) limited_ = false;
  }

  const DcqcnParams& params_;
  const double line_;
  const bool hyper_grows_;
  const bool hyper_by_timer_;
  bool limited_ = false;
  double rate_ = 0;
  double target_ = 0;
  std::uint32_t time_stage_ = 0;  // increases by the timer since the last cut
  std::uint32_t byte_stage_ = 0;  // increases by the byte counter since the last cut
  std::uint64_t bytes_ = 0;       // bytes sent since the last increase by the byte counter
  Duration due_{};                // next increase by the timer
};

// --- NVIDIA's variant.
class Nvidia final : public CongestionControl {
 public:
  Nvidia(const PolicyParams* params, BitRate line)
      : params_(params_as<NvidiaParams>(*params)),
        line_(bits(line)),
        increase_(params_, line_, false, params_.hyper_by_timer) {}

  Allowance allowance(Duration now) override {
    advance(now);
    return {.rate = increase_.rate()};
  }
  Duration next_change() const override { return increase_.limited() ? std::min(cut_at_, increase_.due()) : kNever; }
  bool wants_cnps() const override { return true; }
  bool at_rest() const override { return !increase_.limited(); }
  ControlState state(Duration now) override {
    advance(now);
    return {increase_.rate(), increase_.target(), increase_.limited() ? alpha_.at(now) : 0};
  }

  void sent(std::uint32_t bytes, Duration now) override {
    advance(now);
    increase_.sent(bytes);
  }
  void notified(Duration now) override {
    advance(now);
    if (!increase_.limited()) {
      const auto first = bits(params_.rate_to_set_on_first_cnp);
      increase_.begin(first != 0 ? first : line_);
      increase_.restart(now);
      alpha_.set(alpha_.initial(), now);
      began_ = now;
      cut_at_ = raise_at_ = kNever;
    }
    if (raise_at_ == kNever) raise_at_ = alpha_.next_step(now);
    if (cut_at_ == kNever) {
      const auto period = params_.rate_reduce_monitor_period;
      cut_at_ = began_ + period * ((now - began_).ps / period.ps + 1);
    }
  }

 private:
  void advance(Duration now) {
    while (increase_.limited()) {
      const auto next = std::min({raise_at_, cut_at_, increase_.due()});
      if (next > now) break;
      if (next == raise_at_)
        raise_alpha();
      else if (next == cut_at_)
        cut();
      else
        increase_.timer_due();
    }
  }
  // A CNP came in the step that ends now: alpha rises instead of falling.
  void raise_alpha() {
    const auto step = std::exchange(raise_at_, kNever);
    alpha_.raise(alpha_.at(step - Duration{1}), step);
  }
  void cut() {
    const auto now = std::exchange(cut_at_, kNever);
    const bool raised = params_.clamp_tgt_rate_after_time_inc ? increase_.raised() : increase_.raised_by_bytes();
    if (params_.clamp_tgt_rate || raised) increase_.set_target();
    const auto share = std::ldexp(alpha_.at(now), kGdUnit - static_cast<int>(params_.rpg_gd));
    increase_.cut(std::max(1 - share, params_.rpg_min_dec_fac / 100.0), now);
  }

  const NvidiaParams& params_;
  const double line_;
  Increase increase_;
  Alpha alpha_{params_};
  Duration began_{};            // time of the first CNP: periods are counted from there
  Duration cut_at_ = kNever;    // end of the period in which a CNP came; kNever: no CNP
  Duration raise_at_ = kNever;  // end of alpha's step in which a CNP came; kNever: no CNP
};

// --- The paper's variant.
class Paper final : public CongestionControl {
 public:
  Paper(const PolicyParams* params, BitRate line)
      : params_(params_as<PaperParams>(*params)), line_(bits(line)), increase_(params_, line_, true, false) {
    alpha_.set(alpha_.initial(), {});
  }

  Allowance allowance(Duration now) override {
    advance(now);
    return {.rate = increase_.rate()};
  }
  Duration next_change() const override { return increase_.limited() ? increase_.due() : kNever; }
  // Alpha stays valid after the limit ends.
  bool wants_cnps() const override { return true; }
  bool at_rest() const override { return !is_notified_; }
  ControlState state(Duration now) override {
    advance(now);
    return {increase_.rate(), increase_.target(), alpha_now(now)};
  }

  void sent(std::uint32_t bytes, Duration now) override {
    advance(now);
    increase_.sent(bytes);
  }
  void notified(Duration now) override {
    advance(now);
    if (!increase_.limited()) increase_.begin(line_);
    increase_.set_target();
    const auto alpha = alpha_now(now);
    increase_.cut(1 - alpha / 2, now);
    alpha_.raise(alpha, now);
    is_notified_ = true;
  }

 private:
  void advance(Duration now) {
    while (increase_.limited() && increase_.due() <= now) increase_.timer_due();
  }
  double alpha_now(Duration now) const { return is_notified_ ? alpha_.at(now) : alpha_.initial(); }

  const PaperParams& params_;
  const double line_;
  Increase increase_;
  Alpha alpha_{params_};
  bool is_notified_ = false;  // true after the first CNP: alpha does not fall before it
};

template <class Control>
std::unique_ptr<CongestionControl> make(const PolicyParams* params, BitRate line) {
  return std::make_unique<Control>(params, line);
}

const PolicyEntry<CongestionControl> kNvidia{"dcqcn", make<Nvidia>, make_policy_params<NvidiaParams>};
const PolicyEntry<CongestionControl> kPaper{"dcqcn_paper", make<Paper>, make_policy_params<PaperParams>};

}  // namespace
}  // namespace rnicsim::roce
