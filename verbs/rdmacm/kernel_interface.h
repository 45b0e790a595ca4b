// The structures of the kernel's connection manager (<rdma/rdma_user_cm.h>). That header and <rdma/rdma_cma.h> both
// name the port spaces, the options and the join flags, so here the kernel's have a namespace of their own; what the
// header includes stays outside of it.
#pragma once

#include <netinet/in.h>
// In front of the kernel's own definition of the IPv6 addresses.
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

namespace rnicsim::rdmacm::kernel {

#include <rdma/rdma_user_cm.h>

}  // namespace rnicsim::rdmacm::kernel
