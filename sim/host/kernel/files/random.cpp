// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(getrandom);
RNICSIM_NEXT(getentropy);
RNICSIM_NEXT(arc4random);
RNICSIM_NEXT(arc4random_buf);
RNICSIM_NEXT(arc4random_uniform);
// std::random_device::_M_init(const std::string&) of libstdc++.
#define RNICSIM_DEVICE_INIT "_ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
static const rnicsim::clock::Next<void(void*, const std::string&)> next_device_init{RNICSIM_DEVICE_INIT};

namespace rnicsim::clock {

void draw(void* buffer, std::size_t bytes) {
  // Each process has a generator of its own: a forked child has another session, and another seed.
  static const Session* seeded_for = nullptr;
  static std::uint32_t seeded_pid = 0;
  static std::mt19937_64 generator;
  const std::uint32_t pid = session()->header().virtual_pid;
  if (seeded_for != session() || seeded_pid != pid) {
    seeded_for = session();
    seeded_pid = pid;
    generator.seed(session()->header().random_seed);
  }
  auto* out = static_cast<unsigned char*>(buffer);
  while (bytes > 0) {
    const std::uint64_t word = generator();
    const std::size_t part = bytes < sizeof word ? bytes : sizeof word;
    std::memcpy(out, &word, part);
    out += part;
    bytes -= part;
  }
}

void redraw_auxiliary_bytes() {
  constexpr std::size_t kBytes = 16;
  if (void* bytes = reinterpret_cast<void*>(::getauxval(AT_RANDOM))) draw(bytes, kBytes);
}

}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
  if (simulated_slot() == nullptr) return next_getrandom(buffer, bytes, flags);
  draw(buffer, bytes);
  return ssize_t(bytes);
}

RNICSIM_EXPORT int getentropy(void* buffer, size_t bytes) {
  if (simulated_slot() == nullptr) return next_getentropy(buffer, bytes);
  if (bytes > 256) {
    errno = EIO;
    return -1;
  }
  draw(buffer, bytes);
  return 0;
}

// The C library's own functions read from the kernel without the interposed getrandom().
RNICSIM_EXPORT uint32_t arc4random() noexcept {
  if (simulated_slot() == nullptr) return next_arc4random();
  std::uint32_t word;
  draw(&word, sizeof word);
  return word;
}
RNICSIM_EXPORT void arc4random_buf(void* buffer, size_t bytes) noexcept {
  if (simulated_slot() == nullptr) return next_arc4random_buf(buffer, bytes);
  draw(buffer, bytes);
}
RNICSIM_EXPORT uint32_t arc4random_uniform(uint32_t bound) noexcept {
  if (simulated_slot() == nullptr || bound < 2) return next_arc4random_uniform(bound);
  const std::uint32_t uneven = -bound % bound;  // 2^32 mod bound
  for (;;) {
    const std::uint32_t word = ::arc4random();
    if (word >= uneven) return word % bound;
  }
}

// By default the device asks the processor (RDSEED, RDRAND), which cannot be simulated.
RNICSIM_EXPORT void own_device_init(void* device, const std::string& token) asm(RNICSIM_DEVICE_INIT);
void own_device_init(void* device, const std::string& token) {
  if (!simulated() || token != "default") return next_device_init(device, token);
  next_device_init(device, "getentropy");
}
