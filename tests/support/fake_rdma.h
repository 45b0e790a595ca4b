// An <rdma/rdma_cma.h> and <infiniband/verbs.h> without a device: everybody is on one host, in one process, and what
// is posted has arrived. For tests of what is written over these two.
#pragma once

#include <cstdint>

namespace rnicsim::fake_rdma {

// Objects of all kinds that were made and not destroyed.
int objects();
// Sends of all queue pairs so far, the writes of no bytes among them.
std::uint64_t sends();
// Looks at completion queues, of all, that found nothing.
std::uint64_t vain_polls();

}  // namespace rnicsim::fake_rdma
