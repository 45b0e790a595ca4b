// SPDX-License-Identifier: Apache-2.0
#include "model/nic/queues/wqe_fetch_params.h"

#include "model/base/policy.h"
#include "model/nic/contexts/cache.h"

namespace rnicsim::nic {

void ReceiveWqeParams::describe(ParamVisitor& visit) {
  visit.param("ahead", ahead, "receive WQEs of a queue pair read at a time, when it holds fewer than half as many",
              {2, 1024});
  visit.param("queues", queues, "queue pairs whose receive WQEs have room on the device; docs/timing.md", {1, 1 << 20});
  visit.param("ways", ways, "entries of a set, which the queue pair's number selects", {1, 64});
  visit.param("reads", reads, "reads of receive rings at a time", {1, 1024});
  visit.param("replacement", replacement, "policy that selects the queue pair to evict", policy_names<Replacement>());
  visit.refuse(!CacheTags::can_be(queues, ways), "queues", "is not a multiple of", "ways");
}

}  // namespace rnicsim::nic
