#include "model/nic/contexts.h"

namespace rnicsim::nic {

CompletionQueue decode(const abi::Cqc& context) {
  CompletionQueue queue;
  queue.log_entries = context.log_entries;
  queue.ignore_overrun = (context.flags & abi::Cqc::kIgnoreOverrun) != 0;
  queue.uar_page = context.uar_page;
  queue.pasid = context.pasid;
  queue.ring = context.ring;
  queue.doorbell_record = context.doorbell_record;
  queue.eqn = context.eqn;
  queue.producer = context.producer & kCounterMask;
  queue.consumer = context.consumer & kCounterMask;
  queue.solicited = context.solicited & kCounterMask;
  queue.dead = (context.flags & abi::Cqc::kInError) != 0;
  queue.armed = static_cast<Arm>(context.armed & 3);
  queue.moderation_count = context.moderation_count;
  queue.moderation_period = context.moderation_period;
  queue.withheld = context.withheld;
  return queue;
}

EventQueueContext decode(const abi::Eqc& context) {
  EventQueueContext queue;
  queue.log_entries = context.log_entries;
  queue.vector = context.msix_vector;
  queue.pasid = context.pasid;
  queue.ring = context.ring;
  queue.producer = context.producer & kCounterMask;
  queue.consumer = context.consumer & kCounterMask;
  return queue;
}

SharedReceiveQueue decode(const abi::Srqc& context) {
  SharedReceiveQueue queue;
  queue.log_entries = context.log_entries;
  queue.log_stride = context.log_stride;
  queue.pasid = context.pasid;
  queue.pd = context.pd;
  queue.limit = context.limit;
  queue.ring = context.ring;
  queue.doorbell_record = context.doorbell_record;
  queue.head = static_cast<std::uint16_t>(std::uint32_t(context.head));
  queue.taken = static_cast<std::uint16_t>(std::uint32_t(context.taken));
  queue.dead = (context.flags & abi::Srqc::kInError) != 0;
  return queue;
}

MemoryRegion decode(const abi::Mpt& context) {
  return {.kind = context.kind,
          .valid = context.valid == 1u,
          .key = context.key,
          .pd = context.pd,
          .pasid = context.pasid,
          .access = context.access_flags,
          .start = context.start,
          .length = context.length,
          .bus_address = context.bus_address,
          .log_page = context.log_page,
          .first_page = context.first_page,
          .region = context.region,
          .qpn = context.qpn,
          .windows = context.windows};
}

abi::Cqc encode(const CompletionQueue& queue) {
  abi::Cqc context;
  context.log_entries = queue.log_entries;
  context.flags = static_cast<std::uint8_t>((queue.ignore_overrun ? abi::Cqc::kIgnoreOverrun : 0) |
                                            (queue.dead ? abi::Cqc::kInError : 0));
  context.uar_page = queue.uar_page;
  context.pasid = queue.pasid;
  context.ring = queue.ring;
  context.doorbell_record = queue.doorbell_record;
  context.eqn = queue.eqn;
  context.producer = queue.producer;
  context.consumer = queue.consumer;
  context.solicited = queue.solicited;
  context.armed = static_cast<std::uint32_t>(queue.armed);
  context.moderation_count = queue.moderation_count;
  context.moderation_period = queue.moderation_period;
  context.withheld = queue.withheld;
  return context;
}

abi::Eqc encode(const EventQueueContext& queue) {
  abi::Eqc context;
  context.log_entries = queue.log_entries;
  context.msix_vector = queue.vector;
  context.pasid = queue.pasid;
  context.ring = queue.ring;
  context.producer = queue.producer;
  context.consumer = queue.consumer;
  return context;
}

abi::Srqc encode(const SharedReceiveQueue& queue) {
  abi::Srqc context;
  context.log_entries = queue.log_entries;
  context.log_stride = queue.log_stride;
  context.flags = queue.dead ? abi::Srqc::kInError : 0;
  context.pasid = queue.pasid;
  context.pd = queue.pd;
  context.limit = queue.limit;
  context.ring = queue.ring;
  context.doorbell_record = queue.doorbell_record;
  context.head = queue.head;
  context.taken = queue.taken;
  return context;
}

abi::Mpt encode(const MemoryRegion& region) {
  abi::Mpt context;
  context.key = region.key;
  context.pd = region.pd;
  context.pasid = region.pasid;
  context.access_flags = region.access;
  context.start = region.start;
  context.length = region.length;
  context.bus_address = region.bus_address;
  context.log_page = region.log_page;
  context.first_page = region.first_page;
  context.valid = region.valid ? 1u : 0u;
  context.kind = region.kind;
  context.region = region.region;
  context.qpn = region.qpn;
  context.windows = region.windows;
  return context;
}

}  // namespace rnicsim::nic
