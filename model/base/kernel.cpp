// SPDX-License-Identifier: Apache-2.0
#include "model/base/kernel.h"

namespace rnicsim {

void wake(sc_core::sc_event& event, Duration at) {
  event.notify(to_sc_time(at - Agenda::kernel_now()));
  auto* agenda = Agenda::current();
  if (agenda != nullptr && agenda->serving_) agenda->limit_ = agenda->limit();
}

void sleep_until(Duration at) {
  if (at <= now()) return;
  if (auto* agenda = Agenda::current()) agenda->release();
  sc_core::wait(to_sc_time(at - Agenda::kernel_now()));
}

void sleep_on(const sc_core::sc_event& event) {
  if (auto* agenda = Agenda::current()) agenda->release();
  sc_core::wait(event);
}

// The horizon is valid for the lifetime of this object.
struct Agenda::Horizon {
  explicit Horizon(Duration at) {
    if (current_ != nullptr) current_->horizon_ = at;
  }
  ~Horizon() {
    if (current_ != nullptr) current_->horizon_ = {};
  }
  Horizon(const Horizon&) = delete;
  Horizon& operator=(const Horizon&) = delete;
};

void pause_run() {
  if (auto* agenda = Agenda::current()) agenda->yield();
  sc_core::sc_pause();
}

void run_until(Duration at) {
  const Agenda::Horizon horizon(at);
  sc_core::sc_start(to_sc_time(at - Agenda::kernel_now()));
}

void run_on(Duration limit) {
  const Agenda::Horizon horizon(limit);
  if (limit == Agenda::kNever) return sc_core::sc_start();
  sc_core::sc_start(to_sc_time(limit - Agenda::kernel_now()), sc_core::SC_EXIT_ON_STARVATION);
  // sc_start() also returns at the last event before `limit` when later events follow.
  const Duration next = Agenda::next_in_kernel();
  if (sc_core::sc_get_status() != sc_core::SC_STOPPED && next > limit && next != Agenda::kNever)
    sc_core::sc_start(to_sc_time(limit - Agenda::kernel_now()));
}

}  // namespace rnicsim
