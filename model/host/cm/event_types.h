// SPDX-License-Identifier: Apache-2.0
// Events of an rdma_cm_id; the values are those of enum rdma_cm_event_type (rdma_get_cm_event(3)).
#pragma once

#include <cstdint>

namespace rnicsim::host {

enum class CmEventType : std::uint32_t {
  address_resolved = 0,
  address_error = 1,
  route_resolved = 2,
  route_error = 3,
  connect_request = 4,
  connect_response = 5,
  connect_error = 6,
  unreachable = 7,
  rejected = 8,
  established = 9,
  disconnected = 10,
  device_removal = 11,
  multicast_join = 12,
  multicast_error = 13,
  address_change = 14,
  timewait_exit = 15,
};

}  // namespace rnicsim::host
