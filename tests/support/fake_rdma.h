// SPDX-License-Identifier: Apache-2.0
// <rdma/rdma_cma.h> and <infiniband/verbs.h> without a device: all endpoints are in one process on one host, and posted
// data arrives at once. For tests of libraries that use these two headers.
#pragma once

#include <cstdint>

namespace rnicsim::fake_rdma {

// Number of objects of all kinds that were created and not destroyed.
int objects();
// Number of sends of all queue pairs so far, including writes of 0 bytes.
std::uint64_t sends();
// Number of polls of all completion queues that found no completion.
std::uint64_t vain_polls();

}  // namespace rnicsim::fake_rdma
