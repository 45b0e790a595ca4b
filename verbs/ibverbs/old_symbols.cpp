// SPDX-License-Identifier: Apache-2.0
// The symbols of IBVERBS_1.0 (libibverbs before 1.1, 2007). Their structures differ from today's, so every call fails
// with ENOSYS. All symbols must exist, since the loader binds them at once.
#include <cerrno>

// clang-format off
#define RNICSIM_OLD_CALLS(X)                                                                                    \
  X(ibv_ack_async_event) X(ibv_ack_cq_events) X(ibv_attach_mcast) X(ibv_close_device) X(ibv_dealloc_pd)         \
  X(ibv_dereg_mr) X(ibv_destroy_ah) X(ibv_destroy_cq) X(ibv_destroy_qp) X(ibv_destroy_srq) X(ibv_detach_mcast)  \
  X(ibv_free_device_list) X(ibv_get_async_event) X(ibv_get_cq_event) X(ibv_modify_qp) X(ibv_modify_srq)         \
  X(ibv_query_device) X(ibv_query_gid) X(ibv_query_pkey) X(ibv_query_port) X(ibv_query_qp) X(ibv_query_srq)     \
  X(ibv_resize_cq)

#define RNICSIM_OLD_OBJECTS(X)                                                                                  \
  X(ibv_alloc_pd) X(ibv_create_ah) X(ibv_create_cq) X(ibv_create_qp)                 \
  X(ibv_create_srq) X(ibv_get_device_list) X(ibv_get_device_name) X(ibv_open_device) X(ibv_reg_mr)
// clang-format on

#define RNICSIM_DEFINE_OLD_CALL(name) \
  __attribute__((symver(#name "@IBVERBS_1.0"))) int old_##name() { return errno = ENOSYS; }
#define RNICSIM_DEFINE_OLD_OBJECT(name)                              \
  __attribute__((symver(#name "@IBVERBS_1.0"))) void* old_##name() { \
    errno = ENOSYS;                                                  \
    return nullptr;                                                  \
  }

extern "C" {

RNICSIM_OLD_CALLS(RNICSIM_DEFINE_OLD_CALL)
RNICSIM_OLD_OBJECTS(RNICSIM_DEFINE_OLD_OBJECT)

__attribute__((symver("ibv_get_device_guid@IBVERBS_1.0"))) unsigned long long old_ibv_get_device_guid() { return 0; }

// For drivers of libibverbs 1.1 to 1.5; none can be registered.
__attribute__((symver("ibv_register_driver@IBVERBS_1.1"))) void old_ibv_register_driver() {}

}  // extern "C"
