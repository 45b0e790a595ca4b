// struct ibv_ah_attr to and from an address vector: of a QP's path, and of an address handle.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "model/abi/context.h"
#include "verbs/ibverbs/device.h"

namespace rnicsim::verbs {

// What the device can't see or can't refuse: 0 or errno. `port` is the port it is to leave by: an address vector names
// one of its own, and the device never sees it.
int check_path(Context& context, const ibv_ah_attr& path, std::uint8_t port);
// The MAC address is the kernel's to find.
abi::AddressVector encode_path(Context& context, const ibv_ah_attr& path);
void decode_path(const abi::AddressVector& vector, std::uint8_t port, ibv_ah_attr& path);

}  // namespace rnicsim::verbs
