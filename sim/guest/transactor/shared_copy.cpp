// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/shared_copy.h"

#include <setjmp.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstring>

namespace rnicsim::sim {
namespace {

thread_local sigjmp_buf* way_out = nullptr;

void on_bus_error(int) {
  if (way_out != nullptr) siglongjmp(*way_out, 1);
  ::signal(SIGBUS, SIG_DFL);  // outside of these functions: the access repeats, and the signal ends the process
}

void catch_bus_errors() {
  static const bool caught = [] {
    struct sigaction action {};
    action.sa_handler = on_bus_error;
    action.sa_flags = SA_NODEFER;  // siglongjmp() does not restore the signal mask
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  static_cast<void>(caught);
}

template <class Copy>
bool guarded(Copy&& copy) {
  catch_bus_errors();
  sigjmp_buf here;
  if (sigsetjmp(here, 0) != 0) {
    way_out = nullptr;
    return false;
  }
  way_out = &here;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  copy();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_out = nullptr;
  return true;
}

constexpr std::size_t kWord = 8;

template <class Word>
void store_word(std::byte* to, const std::byte* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  std::atomic_ref(*reinterpret_cast<Word*>(to)).store(word, std::memory_order_release);
}

// An aligned word is stored by one instruction.
void store_last(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto place = reinterpret_cast<std::uintptr_t>(to);
  if (bytes == 8 && place % 8 == 0) return store_word<std::uint64_t>(to, from);
  if (bytes == 4 && place % 4 == 0) return store_word<std::uint32_t>(to, from);
  if (bytes == 2 && place % 2 == 0) return store_word<std::uint16_t>(to, from);
  for (std::size_t i = 0; i < bytes; ++i) store_word<std::uint8_t>(to + i, from + i);
}

}  // namespace

bool copy_from_shared(std::span<std::byte> to, const std::byte* from) {
  return guarded([&] { std::memcpy(to.data(), from, to.size()); });
}

bool copy_to_shared(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return true;
  const auto end = reinterpret_cast<std::uintptr_t>(to) + from.size();
  const std::size_t in_last_word = (end - 1) % kWord + 1;
  const std::size_t last = from.size() < in_last_word ? from.size() : in_last_word;
  const std::size_t before = from.size() - last;
  return guarded([&] {
    std::memcpy(to, from.data(), before);
    std::atomic_thread_fence(std::memory_order_release);
    store_last(to + before, from.data() + before, last);
  });
}

}  // namespace rnicsim::sim
