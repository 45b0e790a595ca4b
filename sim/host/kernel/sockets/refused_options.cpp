// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/refused_options.h"

#include <sys/socket.h>

#include <algorithm>
#include <iterator>

namespace rnicsim::clock {
namespace {

// Options of which the real socket behind the descriptor would report the machine's time, interfaces or processes, or
// look at the header before each datagram.
constexpr int kRefused[] = {
    SO_TIMESTAMP,     SO_TIMESTAMPNS, SO_TIMESTAMPING, SO_BINDTODEVICE, SO_REUSEPORT,
    SO_ATTACH_FILTER, SO_ATTACH_BPF,  SO_PASSCRED,     SO_PEEK_OFF,     SO_TXTIME,
};

}  // namespace

bool is_refused(int name) { return std::ranges::find(kRefused, name) != std::end(kRefused); }

}  // namespace rnicsim::clock
