// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/host_watch.h"

#include <utility>

namespace rnicsim::driver_check {

bool HostWatch::read(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
  if (!held_.empty()) {
    observer_.pushing(pasid, address, bytes.size());
    land_held();
  }
  const bool ok = host_.read(pasid, address, bytes);
  ok ? observer_.sampled(pasid, address, bytes) : observer_.aborted(pasid, address, bytes.size(), false);
  return ok;
}

bool HostWatch::write(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  const auto body = owner_delay_ == Duration{} ? bytes.size() : observer_.owner_in(pasid, address, bytes.size());
  const bool waits = landing_ || !held_.empty();
  if (!waits && body == bytes.size()) return land(pasid, address, bytes);
  if (waits) {
    hold(pasid, address, bytes.first(body));
  } else if (!host_.write(pasid, address, bytes.first(body))) {
    observer_.aborted(pasid, address, bytes.size(), true);
    return false;
  }
  hold(pasid, address + body, bytes.subspan(body));
  if (!landing_ && !due_.armed()) due_.arm(now() + owner_delay_);
  return true;
}

bool HostWatch::land(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  observer_.landing(pasid, address, bytes);
  const bool ok = host_.write(pasid, address, bytes);
  if (!ok) observer_.aborted(pasid, address, bytes.size(), true);
  return ok;
}

void HostWatch::hold(Pasid pasid, std::uint64_t address, std::span<const std::byte> bytes) {
  if (!bytes.empty()) held_.push_back({pasid, address, {bytes.begin(), bytes.end()}});
}

// A landing write can make the host cause more writes of the device: they are held at the end of the queue.
void HostWatch::land_held() {
  if (landing_) return;
  landing_ = true;
  while (!held_.empty()) {
    const auto next = std::move(held_.front());
    held_.pop_front();
    land(next.pasid, next.address, next.bytes);
  }
  landing_ = false;
  due_.disarm();
}

void HostWatch::forget() {
  held_.clear();
  due_.disarm();
}

}  // namespace rnicsim::driver_check
