// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/atomic_unit.h"

#include <cstring>
#include <memory>

namespace rnicsim::nic {
namespace {

std::uint64_t apply(const Atomic& request, std::uint64_t original) {
  if (!request.is_swap) return original + request.operation.swap_add;
  return original == request.operation.compare ? request.operation.swap_add : original;
}

}  // namespace

AtomicUnit::AtomicUnit(sc_core::sc_module_name name, const AtomicParams& params, Translation& translation,
                       PayloadMemory& memory)
    : sc_module(name), params_(params), translation_(translation), memory_(memory) {}

// Atomics of one QP take their locks in order, even if a later translation would be faster.
void AtomicUnit::execute(const Atomic& request) {
  auto& turn = turns_[request.qpn.value];
  turn.waiting.push_back(Atomic(request));
  take_turn(turn);
}

void AtomicUnit::take_turn(Turn& turn) {
  if (turn.waiting.empty() || turn.translating || turn.paused) return;
  if (turn.next > now()) {
    turn.paused = true;
    return pauses_.push(turn.next, &turn);
  }
  const auto next = std::move(turn.waiting.front());
  turn.waiting.pop_front();
  turn.next = now() + params_.qp_interval;
  turn.translating = true;
  translate(next);
}

void AtomicUnit::turns_due() {
  Turn* turn = nullptr;
  while (pauses_.pop_due(turn)) {
    turn->paused = false;
    take_turn(*turn);
  }
}

void AtomicUnit::translate(const Atomic& request) {
  const Region region{request.operation.rkey.value, request.operation.address, roce::kAtomicBytes};
  translation_.translate({request.pd, access::kRemoteAtomic, request.qpn, true}, region,
                         [this, request, resets = resets_](const Translated& place) {
                           if (resets == resets_) translated(request, place);
                         });
}

void AtomicUnit::translated(const Atomic& request, const Translated& place) {
  // A region that begins at an odd address may split a word over two pages that are not adjacent.
  auto hold = translation_.take_hold();
  if (hold != nullptr && place.result == AccessResult::ok && !hold->begin()) return translate(request);
  const bool cut = place.result == AccessResult::ok && place.ranges.size() != 1;
  if (place.result == AccessResult::ok && !cut)
    lock({request, place.place(0), slot_of(place.place(0)), 0, std::move(hold)});
  else
    done({request.tag, cut ? AccessResult::bad_range : place.result, 0});
  auto& turn = turns_[request.qpn.value];
  turn.translating = false;
  take_turn(turn);
}

// If the host gives no physical addresses, words are distinguished within a process only.
std::uint64_t AtomicUnit::slot_of(const Dma::Place& place) const {
  const bool asks = physical && !PayloadMemory::on_device(place);
  const auto address = asks ? physical(place.pasid, place.address) : std::nullopt;
  return address.value_or(place.address) % params_.lock_slots;
}

void AtomicUnit::lock(const Operation& operation) {
  const auto [holder, free] = locked_.try_emplace(operation.slot);
  if (free) return read(operation);
  ++counters_.conflicts;
  holder->second.push_back(Operation(operation));
}

void AtomicUnit::read(const Operation& operation) {
  ++counters_.operations;
  auto sampled = [this, kept = std::make_unique<Operation>(operation), resets = resets_](AccessResult result,
                                                                                         const Payload& bytes) {
    if (resets != resets_) return;
    if (result != AccessResult::ok) {
      done({kept->request.tag, result, 0});
      return unlock(*kept);
    }
    std::memcpy(&kept->original, bytes.bytes().data(), sizeof kept->original);
    modifying_.push(now() + params_.service, *kept);
  };
  memory_.read(operation.place, roce::kAtomicBytes, memory_.closure(std::move(sampled)),
               {.ordered = true, .for_peer = true});
}

void AtomicUnit::modify_due() {
  Operation operation;
  while (modifying_.pop_due(operation)) {
    const bool answers = write(operation);
    unlock(operation);
    if (answers) done({operation.request.tag, AccessResult::ok, operation.original});
  }
}

// False: the write waits for credits, and the answer waits with it.
bool AtomicUnit::write(const Operation& operation) {
  const auto original = operation.original;
  const auto next = apply(operation.request, original);
  if (next == original) return true;
  struct Written {
    Operation operation;
    bool answered = false;
  };
  const auto written = std::make_shared<Written>(Written{operation});
  auto landed = [this, written, resets = resets_](AccessResult result, const Payload&) {
    const auto& [request, place, slot, value, hold] = written->operation;
    if (!written->answered && resets == resets_) done({request.tag, result, value});
  };
  memory_.write(operation.place, Payload::copy_of(std::as_bytes(std::span(&next, 1))),
                memory_.closure(std::move(landed)), {});
  return written->answered = memory_.issued();
}

void AtomicUnit::unlock(const Operation& operation) {
  const auto holder = locked_.find(operation.slot);
  if (holder->second.empty()) return void(locked_.erase(holder));
  const auto next = std::move(holder->second.front());
  holder->second.pop_front();
  read(next);
}

void AtomicUnit::reset() {
  turns_.clear();
  pauses_.clear();
  locked_.clear();
  modifying_.clear();
  ++resets_;
}

}  // namespace rnicsim::nic
