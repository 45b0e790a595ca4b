// SPDX-License-Identifier: Apache-2.0
// Structures of the kernel's connection manager (<rdma/rdma_user_cm.h>), in a namespace of their own: that header and
// <rdma/rdma_cma.h> both define the port spaces, options and join flags. The headers that it includes stay outside of
// the namespace.
#pragma once

#include <netinet/in.h>
// <netinet/in.h> must come before this header, which defines the IPv6 addresses for the kernel.
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

namespace rnicsim::rdmacm::kernel {

#include <rdma/rdma_user_cm.h>

}  // namespace rnicsim::rdmacm::kernel
