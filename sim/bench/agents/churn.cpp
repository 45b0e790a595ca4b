// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/churn.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/bench/made.h"

namespace rnicsim::sim::bench {

Churn::Churn(Station& station, FlowState& state, Control& control, host::CpuPort& port, std::string name)
    : station_(station),
      state_(state),
      control_(control),
      port_(port),
      name_(std::move(name)),
      pacer_(station.flow(), state, control, port) {}

void Churn::run() {
  port_.wait_until(state_.begin);
  pacer_.start();
  while (!control_.stopping && !state_.stopped && port_.thread_time() < state_.end)
    if (pacer_.may_begin(1, false)) make_and_destroy();
  --state_.senders;
}

void Churn::register_memory() {
  ibv_mr* mr = made(ibv_reg_mr(station_.pd(), station_.memory().data(), station_.plan().region.bytes, Station::kAccess),
                    "ibv_reg_mr");
  must(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

void Churn::make_and_destroy() {
  const Duration begun = port_.thread_time();
  if (state_.posted == state_.completed) state_.progress = begun;
  state_.posted_by(station_.plan().place, 1);
  try {
    if (station_.flow().registers())
      register_memory();
    else
      station_.connect_and_destroy();
  } catch (const std::runtime_error& error) {
    return control_.fail(fmt::format("{}: {}", name_, error.what()));
  }
  const Duration at = port_.thread_time();
  state_.progress = at;
  auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
  state_.completed_by(station_.plan().place, interval, at, 1);
  state_.observe(interval, at, 1);
  if (interval == nullptr) return;
  interval->latency.add(at - begun);
  if (state_.count(*interval, 0, at)) control_.report();
}

std::string Churn::describe() const {
  if (!station_.flow().registers()) return fmt::format("{}: connects and destroys queue pairs", name_);
  return fmt::format("{}: registers and deregisters {}", name_, to_string(station_.plan().region));
}

}  // namespace rnicsim::sim::bench
