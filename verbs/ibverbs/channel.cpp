// SPDX-License-Identifier: Apache-2.0
// Completion channels.
#include <infiniband/verbs.h>

#include <memory>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

int create_channel(ibv_context* context, ibv_comp_channel*& created) {
  Context& owner = Context::of(context);
  auto channel = std::make_unique<Channel>(owner.port);
  if (const int error = channel->pipe.open()) return error;
  channel->context = context;
  channel->fd = channel->pipe.fd();
  created = channel.get();
  owner.channels.add(channel->pipe.number(), std::move(channel));
  return 0;
}

int next_event(Channel& channel, ibv_cq*& cq, void*& cq_context) {
  Context& context = Context::of(channel.context);
  context.port.charge(abi::CpuCost::system_call);
  for (;;) {
    abi::EventRecord record;
    if (const int error = channel.pipe.next(record)) return error;
    const bool delivered = context.cqs.with(record.number, [&](Cq& found) {
      ++found.completions_delivered;
      found.asked_for.store(Cq::Notification::none, std::memory_order_relaxed);
      found.told_at.store(found.ring.consumer(), std::memory_order_relaxed);
      cq = found.handle_of();
      cq_context = found.cq_context;
    });
    if (delivered) return 0;
  }
}

}  // namespace

void wait_acknowledged(CpuTime& cpu, pthread_mutex_t& mutex, const std::uint32_t& completed, std::uint32_t delivered,
                       const char* function) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    const std::uint32_t missing = delivered - completed;
    pthread_mutex_unlock(&mutex);
    if (missing == 0) return;
    cpu.wait_acknowledged(&completed, missing, function);
  }
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return guarded_object<ibv_comp_channel>([&](ibv_comp_channel*& made) { return create_channel(context, made); });
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return guarded([&] {
    Context& context = Context::of(channel->context);
    pthread_mutex_lock(&context.context.mutex);
    const bool used = channel->refcnt != 0;
    pthread_mutex_unlock(&context.context.mutex);
    if (used) return EBUSY;
    if (const int error = Channel::of(channel).pipe.close()) return error;
    context.channels.take(Channel::of(channel).pipe.number());
    return 0;
  });
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return guarded_minus_one([&] { return next_event(Channel::of(channel), *cq, *cq_context); });
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  // After the last acknowledgement another thread may destroy the CQ.
  rnicsim::CpuTime& cpu = Cq::of(cq).owner().port;
  const void* const completed = &cq->comp_events_completed;
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
  cpu.acknowledged(completed);
}

}  // extern "C"
