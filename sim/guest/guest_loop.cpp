#include "sim/guest/guest_loop.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "model/base/kernel.h"
#include "sim/engine_choice.h"
#include "sim/system.h"

namespace rnicsim::sim {

GuestLoop::GuestLoop(System& system) : system_(system), snapshots_(system, [](Snapshot&) {}) {}

ServedGuest& GuestLoop::add(std::uint32_t host) {
  return *guests_.emplace_back(std::make_unique<ServedGuest>(system_, host));
}

void GuestLoop::start() {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  system_.start();
}

void GuestLoop::turn(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit) {
  const auto idle = pace_.advance(limit);
  wait(others, std::min(idle.value_or(longest), longest), limit);
  for (auto& guest : guests_) guest->serve();
  snapshots_.serve();
}

void GuestLoop::wait(std::vector<pollfd>& others, std::chrono::nanoseconds longest, Duration limit) {
  watched_ = others;
  for (const auto& guest : guests_) guest->watch(watched_);
  constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds(1);
  const timespec time{longest / kSecond, (longest % kSecond).count()};
  if (::ppoll(watched_.data(), nfds_t(watched_.size()), &time, nullptr) > 0)
    pace_.catch_up(limit);
  else
    for (auto& one : watched_) one.revents = 0;
  std::copy_n(watched_.begin(), std::ptrdiff_t(others.size()), others.begin());
}

bool GuestLoop::has_stopped() const {
  return !system_.engines().mismatch().empty() || sc_core::sc_get_status() == sc_core::SC_STOPPED;
}

std::string GuestLoop::state() const {
  std::string text;
  for (const auto& guest : guests_) text += guest->state();
  return text;
}

}  // namespace rnicsim::sim
