// SPDX-License-Identifier: Apache-2.0
// The private interface between libibverbs and its providers, IBVERBS_PRIVATE_34 of rdma-core 44: the parts that this
// provider uses, with the sizes and offsets of the library. Debian ships no header for it.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct verbs_sysfs_dev;

// Devices of a provider, by PCI vendor and device.
struct verbs_match_ent {
  void* driver_data;
  const char* modalias;
  std::uint16_t vendor;
  std::uint16_t device;
  std::uint8_t kind;
};
inline constexpr std::uint8_t kMatchPci = 1;

struct verbs_device;
struct verbs_device_ops {
  const char* name;
  std::uint32_t least_abi_version;
  std::uint32_t greatest_abi_version;
  const verbs_match_ent* matches;
  const verbs_device_ops** static_providers;
  bool (*match_device)(verbs_sysfs_dev*);
  verbs_context* (*alloc_context)(ibv_device*, int command_file, void* private_data);
  verbs_context* (*import_context)(ibv_device*, int command_file);
  verbs_device* (*alloc_device)(verbs_sysfs_dev*);
  void (*uninit_device)(verbs_device*);
};

struct verbs_device {
  ibv_device device;
  const verbs_device_ops* ops;
  int reference_count;
  void* list[2];
  verbs_sysfs_dev* sysfs;
  std::uint64_t core_support;
};

// The library's part of an object, which begins with the program's part.
struct verbs_mr {
  ibv_mr mr;
  int type;
  int access;
};
struct verbs_cq {
  union {
    ibv_cq cq;
    ibv_cq_ex cq_ex;
  };
};
struct verbs_qp {
  union {
    ibv_qp qp;
    ibv_qp_ex qp_ex;
  };
  std::uint32_t comp_mask;
  void* xrcd;
};
inline constexpr std::uint32_t kQpIsExtended = 2;  // verbs_qp::comp_mask
struct verbs_srq {
  ibv_srq srq;
  ibv_srq_type type;
  void* xrcd;
  ibv_cq* cq;
  std::uint32_t number;
};

// All operations of a provider, in the library's order. Unused ones have no type here.
using UnusedOperation = void (*)();
struct verbs_context_ops {
  UnusedOperation advise_mr, alloc_dm;
  ibv_mw* (*alloc_mw)(ibv_pd*, ibv_mw_type);
  UnusedOperation alloc_null_mr, alloc_parent_domain;
  ibv_pd* (*alloc_pd)(ibv_context*);
  UnusedOperation alloc_td;
  void (*async_event)(ibv_context*, ibv_async_event*);
  UnusedOperation attach_counters_point_flow;
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  int (*bind_mw)(ibv_qp*, ibv_mw*, ibv_mw_bind*);
  UnusedOperation close_xrcd;
  void (*cq_event)(ibv_cq*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  UnusedOperation create_counters;
  ibv_cq* (*create_cq)(ibv_context*, int entries, ibv_comp_channel*, int vector);
  ibv_cq_ex* (*create_cq_ex)(ibv_context*, ibv_cq_init_attr_ex*);
  UnusedOperation create_flow, create_flow_action_esp;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*);
  UnusedOperation create_rwq_ind_table;
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  UnusedOperation create_srq_ex, create_wq;
  int (*dealloc_mw)(ibv_mw*);
  int (*dealloc_pd)(ibv_pd*);
  UnusedOperation dealloc_td;
  int (*dereg_mr)(verbs_mr*);
  int (*destroy_ah)(ibv_ah*);
  UnusedOperation destroy_counters;
  int (*destroy_cq)(ibv_cq*);
  UnusedOperation destroy_flow, destroy_flow_action;
  int (*destroy_qp)(ibv_qp*);
  UnusedOperation destroy_rwq_ind_table;
  int (*destroy_srq)(ibv_srq*);
  UnusedOperation destroy_wq;
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, std::uint16_t lid);
  void (*free_context)(ibv_context*);
  UnusedOperation free_dm, get_srq_num, import_dm, import_mr, import_pd;
  int (*modify_cq)(ibv_cq*, ibv_modify_cq_attr*);
  UnusedOperation modify_flow_action_esp;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask);
  UnusedOperation modify_qp_rate_limit;
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int mask);
  UnusedOperation modify_wq, open_qp, open_xrcd;
  int (*poll_cq)(ibv_cq*, int capacity, ibv_wc*);
  int (*post_recv)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr** bad);
  UnusedOperation post_srq_ops;
  int (*post_srq_recv)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr** bad);
  int (*query_device_ex)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t bytes);
  UnusedOperation query_ece;
  int (*query_port)(ibv_context*, std::uint8_t port, ibv_port_attr*);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*);
  UnusedOperation query_qp_data_in_order, query_rt_values;
  int (*query_srq)(ibv_srq*, ibv_srq_attr*);
  UnusedOperation read_counters, reg_dm_mr, reg_dmabuf_mr;
  ibv_mr* (*reg_mr)(ibv_pd*, void* address, std::size_t length, std::uint64_t start, int access);
  int (*req_notify_cq)(ibv_cq*, int solicited_only);
  int (*rereg_mr)(verbs_mr*, int flags, ibv_pd*, void* address, std::size_t length, int access);
  int (*resize_cq)(ibv_cq*, int entries);
  UnusedOperation set_ece, unimport_dm, unimport_mr, unimport_pd;
};
static_assert(sizeof(verbs_context_ops) == 76 * sizeof(void*));

void verbs_register_driver_34(const verbs_device_ops*);
// Allocates `bytes` of zeroed memory; `offset` is the position of the verbs_context in it.
void* _verbs_init_and_alloc_context(ibv_device*, int command_file, std::size_t bytes, verbs_context* offset,
                                    std::uint32_t driver_id);
void verbs_uninit_context(verbs_context*);
void verbs_set_ops(verbs_context*, const verbs_context_ops*);

}  // extern "C"

namespace rnicsim::linux_provider {

// Request of a command: the library's header, then the kernel's struct. The library fills both.
template <class Core>
struct Command {
  alignas(8) std::byte bytes[sizeof(ib_uverbs_cmd_hdr) + sizeof(Core)]{};
};
template <class Core>
struct ExtendedCommand {
  alignas(8) std::byte bytes[sizeof(ib_uverbs_cmd_hdr) + sizeof(ib_uverbs_ex_cmd_hdr) + sizeof(Core)]{};
};

// Response of a command: the kernel's struct, then the driver's struct.
template <class Core, class Driver>
struct Answer {
  alignas(8) std::byte bytes[sizeof(Core) + sizeof(Driver)]{};

  Core* core() { return reinterpret_cast<Core*>(bytes); }
  Driver driver() const {
    Driver answer;
    __builtin_memcpy(&answer, bytes + sizeof(Core), sizeof answer);
    return answer;
  }
};

}  // namespace rnicsim::linux_provider

extern "C" {

int ibv_cmd_get_context(verbs_context*, void* command, std::size_t, ib_uverbs_get_context_resp*, std::size_t);
int ibv_cmd_query_device_any(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t,
                             ib_uverbs_ex_query_device_resp*, std::size_t*);
int ibv_cmd_query_port(ibv_context*, std::uint8_t port, ibv_port_attr*, void* command, std::size_t);
int ibv_cmd_alloc_pd(ibv_context*, ibv_pd*, void* command, std::size_t, ib_uverbs_alloc_pd_resp*, std::size_t);
int ibv_cmd_dealloc_pd(ibv_pd*);
int ibv_cmd_reg_mr(ibv_pd*, void* address, std::size_t length, std::uint64_t start, int access, verbs_mr*,
                   void* command, std::size_t, ib_uverbs_reg_mr_resp*, std::size_t);
int ibv_cmd_rereg_mr(verbs_mr*, std::uint32_t flags, void* address, std::size_t length, std::uint64_t start, int access,
                     ibv_pd*, void* command, std::size_t, ib_uverbs_rereg_mr_resp*, std::size_t);
int ibv_cmd_dereg_mr(verbs_mr*);
int ibv_cmd_alloc_mw(ibv_pd*, ibv_mw_type, ibv_mw*, void* command, std::size_t, ib_uverbs_alloc_mw_resp*, std::size_t);
int ibv_cmd_dealloc_mw(ibv_mw*);
int ibv_cmd_create_ah(ibv_pd*, ibv_ah*, ibv_ah_attr*, ib_uverbs_create_ah_resp*, std::size_t);
int ibv_cmd_destroy_ah(ibv_ah*);
int ibv_cmd_create_cq_ex(ibv_context*, const ibv_cq_init_attr_ex*, verbs_cq*, void* command, std::size_t,
                         ib_uverbs_ex_create_cq_resp*, std::size_t, std::uint32_t flags);
int ibv_cmd_resize_cq(ibv_cq*, int entries, void* command, std::size_t, ib_uverbs_resize_cq_resp*, std::size_t);
int ibv_cmd_modify_cq(ibv_cq*, ibv_modify_cq_attr*, void* command, std::size_t);
int ibv_cmd_destroy_cq(ibv_cq*);
int ibv_cmd_create_qp_ex2(ibv_context*, verbs_qp*, ibv_qp_init_attr_ex*, void* command, std::size_t,
                          ib_uverbs_ex_create_qp_resp*, std::size_t);
int ibv_cmd_modify_qp(ibv_qp*, ibv_qp_attr*, int mask, void* command, std::size_t);
int ibv_cmd_query_qp(ibv_qp*, ibv_qp_attr*, int mask, ibv_qp_init_attr*, void* command, std::size_t);
int ibv_cmd_destroy_qp(ibv_qp*);
int ibv_cmd_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);
int ibv_cmd_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t lid);
int ibv_cmd_create_srq(ibv_pd*, ibv_srq*, ibv_srq_init_attr*, void* command, std::size_t, ib_uverbs_create_srq_resp*,
                       std::size_t);
int ibv_cmd_modify_srq(ibv_srq*, ibv_srq_attr*, int mask, void* command, std::size_t);
int ibv_cmd_query_srq(ibv_srq*, ibv_srq_attr*, void* command, std::size_t);
int ibv_cmd_destroy_srq(ibv_srq*);

}  // extern "C"
