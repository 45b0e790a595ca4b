// SPDX-License-Identifier: Apache-2.0
// Options for sizes of buffers and queues, for streams and datagrams.
#pragma once

#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// SO_RCVBUF and SO_SNDBUF. As with Linux's sockets, the buffer gets twice the value. Returns 0 or a positive errno.
int set_buffer_size(Sizes& sizes, int name, int bytes);

// Numeric options of level SOL_RDMA. Return 0 or a positive errno; ENOTSUP: unknown option.
int set_rdma_size(Sizes& sizes, int name, int value);
int get_rdma_size(const Sizes& sizes, int name, int& value);

}  // namespace rnicsim::rsockets
