// SPDX-License-Identifier: Apache-2.0
#include "sim/processes/in_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "model/base/byte_stream.h"
#include "model/base/kernel.h"

namespace rnicsim::sim {

InOrder::InOrder(Boundary* boundary, Then then) : boundary_(boundary), then_(std::move(then)) {
  if (boundary_ != nullptr) boundary_->add(*this);
}

void InOrder::add(Duration at, std::uint32_t node, Origin origin, std::span<const std::byte> note) {
  if (boundary_ != nullptr && !boundary_->is_here(node)) return;
  if (boundary_ == nullptr && !held_.empty() && held_.back().at != at) pass_on(at);
  hold({.at = at, .node = node, .origin = origin}, note);
}

void InOrder::hold(const Held& place, std::span<const std::byte> note) {
  auto& held = held_.emplace_back(place);
  held.begin = notes_.size();
  held.bytes = note.size();
  notes_.insert(notes_.end(), note.begin(), note.end());
}

Message InOrder::report() {
  Message report;
  ByteWriter out(report);
  for (const auto& held : held_) {
    out.put(held);
    out.put_bytes(std::span(notes_).subspan(held.begin, held.bytes));
  }
  held_.clear();
  notes_.clear();
  return report;
}

void InOrder::take(std::span<const std::byte> report) {
  for (ByteReader in(report); !in.at_end();) {
    const auto place = in.take<Held>();
    hold(place, in.take_bytes());
  }
}

// Notes handed over at the last exchange were made after it, and may have earlier times: pass on only up to that
// exchange.
void InOrder::all_told() { pass_on(std::exchange(met_, now())); }

void InOrder::pass_on(Duration before) {
  const auto place = [](const Held& held) { return std::tuple(held.at, held.node, held.origin); };
  if (held_.size() > 1 && !std::ranges::is_sorted(held_, {}, place)) std::ranges::stable_sort(held_, {}, place);
  held_.swap(passing_);
  notes_.swap(passing_notes_);
  for (const auto& held : passing_) {
    const auto note = std::span<const std::byte>(passing_notes_).subspan(held.begin, held.bytes);
    held.at < before ? then_(held.at, held.node, note) : hold(held, note);
  }
  passing_.clear();
  passing_notes_.clear();
}

}  // namespace rnicsim::sim
