// SPDX-License-Identifier: Apache-2.0
// rdma_set_option(3). The kernel interprets the options.
#include <cstring>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

constexpr std::size_t kLongestOption = 2048;  // bytes; the longest option has six path records

}  // namespace

int set_option(Id& id, int level, int name, const void* value, std::size_t bytes) {
  if (bytes > kLongestOption) return EINVAL;
  if (value == nullptr && bytes != 0) return EFAULT;
  const kernel::rdma_ucm_set_option command{.optval = 0,
                                            .id = id.handle,
                                            .level = std::uint32_t(level),
                                            .optname = std::uint32_t(name),
                                            .optlen = std::uint32_t(bytes)};
  std::vector<std::byte> input(sizeof command + bytes);
  std::memcpy(input.data(), &command, sizeof command);
  if (bytes != 0) std::memcpy(input.data() + sizeof command, value, bytes);
  return id.events().command(kernel::RDMA_USER_CM_CMD_SET_OPTION, input);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;

extern "C" int rdma_set_option(rdma_cm_id* id, int level, int optname, void* optval, std::size_t optlen) {
  return rnicsim::verbs::guarded_minus_one([&] { return set_option(Id::of(id), level, optname, optval, optlen); });
}
