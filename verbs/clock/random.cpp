// The kernel's random numbers: from the run's seed, so that two runs draw the same.

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <random>

#include "verbs/clock/attach.h"
#include "verbs/clock/next.h"
#include "verbs/clock/turn.h"

RNICSIM_NEXT(getrandom);
RNICSIM_NEXT(getentropy);

namespace rnicsim::clock {
namespace {

void fill(void* buffer, std::size_t bytes) {
  // A process's own: a forked child has another session, and so another seed.
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

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
  if (simulated_slot() == nullptr) return next_getrandom(buffer, bytes, flags);
  fill(buffer, bytes);
  return ssize_t(bytes);
}

RNICSIM_EXPORT int getentropy(void* buffer, size_t bytes) {
  if (simulated_slot() == nullptr) return next_getentropy(buffer, bytes);
  if (bytes > 256) {
    errno = EIO;
    return -1;
  }
  fill(buffer, bytes);
  return 0;
}
