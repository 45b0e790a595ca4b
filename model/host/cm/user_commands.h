// The commands of <rdma/rdma_user_cm.h> on a channel's ids, checked and taken apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/pcie.h"
#include "model/host/cm/rdma_ids.h"

namespace rnicsim::host {

// Whose command it is.
struct UserChannel {
  Pasid process;
  std::uint32_t number;
};

// 0 or errno; EINVAL: too short for what it is, ENOSYS: no such command.
int execute_user_command(RdmaIds& ids, const UserChannel& channel, std::uint32_t command,
                         std::span<const std::byte> input, std::span<std::byte> output);

}  // namespace rnicsim::host
