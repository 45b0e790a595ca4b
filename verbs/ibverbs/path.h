// SPDX-License-Identifier: Apache-2.0
// Conversion between struct ibv_ah_attr and an address vector, for paths of QPs and for address handles.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "model/abi/context.h"
#include "verbs/ibverbs/device.h"

namespace rnicsim::verbs {

// Makes the checks that the device cannot make. Returns 0 or an errno. `port`: the port by which packets leave. The
// port number in an address vector is not passed to the device.
int check_path(Context& context, const ibv_ah_attr& path, std::uint8_t port);
// The kernel fills in the MAC address later.
abi::AddressVector encode_path(Context& context, const ibv_ah_attr& path);
void decode_path(const abi::AddressVector& vector, std::uint8_t port, ibv_ah_attr& path);

}  // namespace rnicsim::verbs
