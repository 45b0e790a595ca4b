// The options that size buffers and queues; the same for streams and datagrams.
#pragma once

#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

// SO_RCVBUF and SO_SNDBUF. Like a socket's, a buffer is twice what is asked for. 0 or a positive errno.
int set_buffer_size(Sizes& sizes, int name, int bytes);

// Options of SOL_RDMA that are numbers. ENOTSUP: another.
int set_rdma_size(Sizes& sizes, int name, int value);
int get_rdma_size(const Sizes& sizes, int name, int& value);

}  // namespace rnicsim::rsockets
