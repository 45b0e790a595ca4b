// SPDX-License-Identifier: Apache-2.0
// Calls to sockets of the simulated out-of-band network.
#pragma once

#include <cstdint>

#include "sim/attached/descriptor_account.h"
#include "sim/attached/network/network.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {

class NetworkCalls {
 public:
  NetworkCalls(Network& network, TimeKeeper& keeper, DescriptorAccount& descriptors)
      : network_(network), keeper_(keeper), descriptors_(descriptors) {}

  // Calls of streams and datagram sockets. True: the call is answered.
  bool execute(Thread& thread, abi::ThreadSlot& slot);

 private:
  bool stream_call(Thread& thread, abi::ThreadSlot& slot);
  bool accept(Thread& thread, abi::ThreadSlot& slot, Network::Number number);
  bool connect(Thread& thread, abi::ThreadSlot& slot, Network::Number number);
  int find_inherited(abi::ThreadSlot& slot, std::uint32_t host) const;
  bool new_datagrams(Thread& thread, abi::ThreadSlot& slot);
  bool datagram_call(abi::ThreadSlot& slot, std::uint32_t host);

  Network& network_;
  TimeKeeper& keeper_;
  DescriptorAccount& descriptors_;
};

}  // namespace rnicsim::sim
