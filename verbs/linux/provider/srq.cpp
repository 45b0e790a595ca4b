// SPDX-License-Identifier: Apache-2.0
// Shared receive queues.
#include <memory>

#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

int create(ibv_pd* pd, ibv_srq_init_attr& attributes, std::unique_ptr<Srq>& made) {
  auto srq = std::make_unique<Srq>();
  Command<ib_uverbs_create_srq> command;
  Answer<ib_uverbs_create_srq_resp, rnic_create_srq_resp> answer;
  if (const int error =
          ibv_cmd_create_srq(pd, &srq->srq, &attributes, &command, sizeof command, answer.core(), sizeof answer.bytes))
    return error;
  const rnic_create_srq_resp given = answer.driver();
  srq->memory = Mapping(Context::of(pd->context).command_file, given.ring);
  if (!srq->memory) {
    const int error = errno;
    ibv_cmd_destroy_srq(&srq->srq);
    return error;
  }
  const provider::SharedReceiveRing::Layout layout{.log_entries = given.log_entries, .log_stride = given.log_stride};
  srq->ring = provider::SharedReceiveRing(layout, srq->memory.buffer(),
                                          srq->memory.at<abi::QpDoorbellRecord>(given.record_offset));
  srq->max_wr = attributes.attr.max_wr;
  srq->max_sge = attributes.attr.max_sge;
  made = std::move(srq);
  return 0;
}

}  // namespace

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  std::unique_ptr<Srq> srq;
  return guarded([&] { return create(pd, *attributes, srq); }) == 0 ? &srq.release()->srq : nullptr;
}

int modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  Command<ib_uverbs_modify_srq> command;
  return ibv_cmd_modify_srq(srq, attributes, mask, &command, sizeof command);
}

int query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  Command<ib_uverbs_query_srq> command;
  return ibv_cmd_query_srq(srq, attributes, &command, sizeof command);
}

int destroy_srq(ibv_srq* handle) {
  const int error = ibv_cmd_destroy_srq(handle);
  if (error == 0) delete &Srq::of(handle);
  return error;
}

std::uint64_t retire_shared(Srq& srq, std::uint16_t index) {
  QueueGuard guard(srq.lock);
  return srq.ring.retire(index);
}

}  // namespace rnicsim::linux_provider
