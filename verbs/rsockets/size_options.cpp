// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/size_options.h"

#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets {

namespace {

constexpr int kLargestQueue = 0xfffe;
constexpr std::uint32_t kLargestBuffer = std::uint32_t(std::numeric_limits<int>::max()) & ~1u;

}  // namespace

int set_buffer_size(Sizes& sizes, int name, int bytes) {
  const auto doubled = std::uint32_t(std::min<std::uint64_t>(std::uint64_t(std::max(bytes, 1)) * 2, kLargestBuffer));
  if (name == SO_RCVBUF) {
    sizes.receive_bytes = doubled;
  } else {
    sizes.send_bytes = doubled < kLowWater ? 2 * kLowWater : doubled;
  }
  return 0;
}

int set_rdma_size(Sizes& sizes, int name, int value) {
  if (value < 0) return EINVAL;
  const auto limited = std::uint16_t(std::min(value, kLargestQueue));
  switch (name) {
    case RDMA_SQSIZE: sizes.send_queue = limited; return 0;
    case RDMA_RQSIZE: sizes.receive_queue = limited; return 0;
    case RDMA_INLINE: sizes.inline_bytes = limited; return 0;
    case RDMA_IOMAPSIZE: sizes.iomap_entries = round_iomap_entries(limited); return 0;
    default: return ENOTSUP;
  }
}

int get_rdma_size(const Sizes& sizes, int name, int& value) {
  switch (name) {
    case RDMA_SQSIZE: value = sizes.send_queue; return 0;
    case RDMA_RQSIZE: value = sizes.receive_queue; return 0;
    case RDMA_INLINE: value = sizes.inline_bytes; return 0;
    case RDMA_IOMAPSIZE: value = sizes.iomap_entries; return 0;
    default: return ENOTSUP;
  }
}

}  // namespace rnicsim::rsockets
