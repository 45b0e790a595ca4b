// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/timed_loop.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace rnicsim::clock {

namespace {

constinit thread_local TimedLoop* loop = nullptr;

}  // namespace

TimedLoop* TimedLoop::of_thread() {
  if (loop != nullptr) return loop;
  void* memory = ::mmap(nullptr, sizeof(TimedLoop), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) loop = new (memory) TimedLoop;
  return loop;
}

void TimedLoop::release_of_thread() {
  if (loop != nullptr) ::munmap(std::exchange(loop, nullptr), sizeof(TimedLoop));
}

TimedLoop::Entered TimedLoop::enter(const ucontext_t& context, WrittenMemory& written, const abi::ThreadSlot& slot) {
  const CpuState state(context);
  if (looks_ != 0 && state == look_[0].state && written.is_as_before()) return Entered::came_round;
  if (looks_ == 0 || looked_ == keeps_) {
    if (looks_ != 0) keeps_ *= 2;
    looks_ = 0;
    began_ = slot.now;
    changes_ = slot.changes;
    pages_ = 0;
    written.clear();
  }
  if (looks_ == look_.size() || looked_ == most_looks_) return Entered::too_long;
  ++looked_;
  Look& look = look_[looks_++];
  look.state = state;
  look.times.begins = slot.now - began_;
  look.written = written.save(look.values);
  return Entered::on_the_way;
}

void TimedLoop::note_page(std::uint64_t address) {
  const std::uint64_t page = address / abi::kLoopPage * abi::kLoopPage;
  if (pages_ > page_.size() ||
      std::find(page_.begin(), page_.begin() + std::ptrdiff_t(pages_), page) != page_.begin() + std::ptrdiff_t(pages_))
    return;
  if (pages_ < page_.size()) page_[pages_] = page;
  ++pages_;
}

void TimedLoop::note_reads(const Instruction& instruction, const ucontext_t& context) {
  for (std::size_t i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0) continue;
    const auto address = address_of(instruction, operand, context);
    if (!address) {
      pages_ = page_.size() + 1;
      return;
    }
    note_page(*address);
    if (operand.size >= 8) note_page(*address + operand.size / 8 - 1);
  }
}

TimedLoop::Round TimedLoop::describe(abi::ThreadSlot& slot) const {
  std::byte* to = slot.input;
  for (std::size_t i = 0; i < looks_; ++i) {
    memcpy(to, &look_[i].times, sizeof(abi::LoopLook));
    to += sizeof(abi::LoopLook);
  }
  memcpy(to, page_.data(), std::min(pages_, page_.size()) * sizeof(std::uint64_t));
  return {began_, slot.now - began_, looks_, pages_, changes_};
}

void TimedLoop::continue_at(std::size_t look, const WrittenMemory& written, ucontext_t& context) const {
  const Look& next = look_[std::min(look, looks_ - 1)];
  next.state.put_into(context);
  written.restore(next.values, next.written);
}

}  // namespace rnicsim::clock
