#include "sim/bench/registrar.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace rnicsim::sim::bench {

Registrar::Registrar(Station& station, FlowState& state, Control& control, host::CpuPort& port, std::string name)
    : station_(station),
      state_(state),
      control_(control),
      port_(port),
      name_(std::move(name)),
      pacer_(station.flow(), state, control, port) {}

void Registrar::run() {
  port_.wait_until(state_.begin);
  pacer_.start();
  while (!control_.stopping && !state_.stopped && port_.thread_time() < state_.end)
    if (pacer_.may_begin(1, false)) register_once();
  --state_.senders;
}

void Registrar::register_once() {
  const Duration begun = port_.thread_time();
  if (state_.posted == state_.completed) state_.progress = begun;
  state_.posted_by(station_.plan().place, 1);
  ibv_mr* mr = ibv_reg_mr(station_.pd(), station_.memory().data(), station_.plan().region.bytes, Station::kAccess);
  const int error = mr ? ibv_dereg_mr(mr) : errno;
  if (error != 0)
    return control_.fail(
        fmt::format("{}: {}: {}", name_, mr ? "ibv_dereg_mr" : "ibv_reg_mr", std::strerror(error)));
  const Duration at = port_.thread_time();
  state_.progress = at;
  auto* interval = state_.stopped ? nullptr : state_.interval_of(at);
  state_.completed_by(station_.plan().place, interval, at, 1);
  state_.observe(interval, at, 1);
  if (interval == nullptr) return;
  interval->latency.add(at - begun);
  if (state_.count(*interval, 0, at)) control_.report();
}

std::string Registrar::describe() const {
  return fmt::format("{}: registers and deregisters {}", name_, to_string(station_.plan().region));
}

}  // namespace rnicsim::sim::bench
