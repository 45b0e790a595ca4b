// SPDX-License-Identifier: Apache-2.0
// Decodes and checks the commands of <rdma/rdma_user_cm.h>, and executes them on a channel's ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/pcie.h"
#include "model/host/cm/rdma_ids.h"

namespace rnicsim::host {

// The caller of a command.
struct UserChannel {
  Pasid process;
  std::uint32_t number;
};

// 0 or errno. EINVAL: `input` or `output` is too short for the command; ENOSYS: unknown command.
int execute_user_command(RdmaIds& ids, const UserChannel& channel, std::uint32_t command,
                         std::span<const std::byte> input, std::span<std::byte> output);

}  // namespace rnicsim::host
