// SPDX-License-Identifier: Apache-2.0
#include "verbs/rdmacm/event_channel.h"

#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/devices.h"

namespace rnicsim::rdmacm {

int open_channel(std::unique_ptr<EventChannel>& opened) {
  if (!has_devices()) return ENODEV;
  auto channel = std::make_unique<EventChannel>(*process_port());
  if (const int error = channel->pipe.open()) return error;
  channel->fd = channel->pipe.fd();
  opened = std::move(channel);
  return 0;
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  return rnicsim::verbs::guarded_object<rdma_event_channel>([](rdma_event_channel*& created) {
    std::unique_ptr<EventChannel> channel;
    const int error = open_channel(channel);
    created = channel.release();
    return error;
  });
}

void rdma_destroy_event_channel(rdma_event_channel* channel) { delete static_cast<EventChannel*>(channel); }

}  // extern "C"
