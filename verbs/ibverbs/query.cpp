// SPDX-License-Identifier: Apache-2.0
// Capabilities of the device.
#include <infiniband/verbs.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint64_t kPageSizes = 0xfffffffffffff000ull;  // from 4 KiB, any: a region is one range of addresses

// IB_UVERBS_DEVICE_ATOMIC_WRITE of later kernel headers.
constexpr std::uint64_t kAtomicWriteFlag = 1ull << 40;

// The smaller of a limit and its bound, as an int.
int least(std::uint64_t limit, std::uint64_t bound) { return int(std::min({limit, bound, std::uint64_t{INT_MAX}})); }

void fill_multicast_limits(const abi::DeviceCapabilities& from, ibv_device_attr& to) {
  const std::uint64_t group = std::min(std::uint32_t(from.max_group_qps), std::uint32_t(from.max_qp));
  to.max_mcast_grp = least(from.max_multicast_groups, from.max_attached_qps);
  to.max_mcast_qp_attach = least(group, from.max_attached_qps);
  to.max_total_mcast_qp_attach = least(from.max_attached_qps, group * from.max_multicast_groups);
}

void fill_limits(const abi::DeviceCapabilities& from, ibv_device_attr& to) {
  to.max_mr_size = from.max_mr_size;
  to.max_qp = int(from.max_qp);
  to.max_qp_wr = int(most_work_requests(from));
  to.max_sge = to.max_sge_rd = int(std::min<std::uint32_t>(from.max_send_sge, from.max_receive_sge));
  to.max_cq = int(from.max_cq);
  to.max_cqe = int(from.max_cqe);
  to.max_mr = int(from.max_mr);
  to.max_pd = int(from.max_pd);
  to.max_qp_rd_atom = int(from.max_rd_atomic);
  to.max_qp_init_rd_atom = int(from.max_rd_atomic);
  to.max_res_rd_atom = least(std::uint64_t{from.max_rd_atomic} * from.max_qp, INT_MAX);
  to.max_ah = int(from.max_ah);
  to.max_srq = int(from.max_srq);
  to.max_srq_wr = int(from.max_srq_wr);
  to.max_srq_sge = int(from.max_srq_sge);
  to.max_pkeys = 1;
  fill_multicast_limits(from, to);
}

void fill_attributes(const Context& context, ibv_device_attr& to) {
  const abi::DeviceCapabilities& from = context.capabilities;
  const __be64 guid = ibv_get_device_guid(context.context.device);
  std::snprintf(to.fw_ver, sizeof to.fw_ver, "%s", firmware_text(from.firmware_version).c_str());
  to.node_guid = guid;
  to.sys_image_guid = guid;
  to.page_size_cap = kPageSizes;
  to.vendor_id = abi::kPciVendorId;
  to.vendor_part_id = from.vendor_part_id;
  to.hw_ver = abi::kPciRevision;
  to.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                        IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_BAD_PKEY_CNTR;
  if (context.has_feature(abi::feature::kUd)) to.device_cap_flags |= IBV_DEVICE_BAD_QKEY_CNTR;
  if (context.has_feature(abi::feature::kWindows)) {
    to.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    to.max_mw = int(from.max_mr);
  }
  if (context.has_feature(abi::feature::kRaw))
    to.device_cap_flags |= IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING;
  if (context.has_feature(abi::feature::kXrc)) to.device_cap_flags |= IBV_DEVICE_XRC;
  if (context.has_feature(abi::feature::kSrq)) to.device_cap_flags |= IBV_DEVICE_SRQ_RESIZE;
  to.atomic_cap = ibv_atomic_cap(std::uint32_t(from.atomic));
  to.local_ca_ack_delay = std::uint8_t(from.local_ca_ack_delay);
  to.phys_port_cnt = std::uint8_t(from.ports);
  fill_limits(from, to);
}

constexpr std::uint64_t kHashFields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |
                                      IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |
                                      IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP | IBV_RX_HASH_IPSEC_SPI |
                                      IBV_RX_HASH_INNER;

void fill_raw_packets(const Context& context, ibv_device_attr_ex& to) {
  if (!context.has_feature(abi::feature::kRaw)) return;
  const abi::DeviceCapabilities& from = context.capabilities;
  to.rss_caps = {.supported_qpts = 1u << IBV_QPT_RAW_PACKET,
                 .max_rwq_indirection_tables = from.max_rss,
                 .max_rwq_indirection_table_size = from.max_rss_queues,
                 .rx_hash_fields_mask = kHashFields,
                 .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ};
  to.max_wq_type_rq = from.max_qp;
  to.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_CVLAN_STRIPPING | IBV_RAW_PACKET_CAP_SCATTER_FCS;
  to.device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS;
  if (context.has_feature(abi::feature::kPacing))
    to.packet_pacing_caps = {.qp_rate_limit_min = from.min_rate_limit,
                             .qp_rate_limit_max = from.max_rate_limit,
                             .supported_qpts = 1u << IBV_QPT_RAW_PACKET};
  to.tso_caps = {.max_tso = from.max_tso, .supported_qpts = 1u << IBV_QPT_RAW_PACKET};
}

void fill_on_demand(const Context& context, ibv_device_attr_ex& to) {
  if (!context.has_feature(abi::feature::kOnDemand)) return;
  constexpr std::uint32_t kQueues = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
  to.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
  auto& transports = to.odp_caps.per_transport_caps;
  transports.rc_odp_caps = kQueues | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  if (context.has_feature(abi::feature::kSrq)) transports.rc_odp_caps |= IBV_ODP_SUPPORT_SRQ_RECV;
  if (context.has_feature(abi::feature::kUc)) transports.uc_odp_caps = kQueues | IBV_ODP_SUPPORT_WRITE;
  if (context.has_feature(abi::feature::kUd)) transports.ud_odp_caps = kQueues;
  if (context.has_feature(abi::feature::kXrc)) to.xrc_odp_caps = transports.rc_odp_caps;
}

}  // namespace

std::string firmware_text(std::uint64_t version) {
  return std::to_string(version >> 32) + "." + std::to_string(version >> 16 & 0xffff) + "." +
         std::to_string(version & 0xffff);
}

int query_capabilities(Context& context) {
  return context.execute(provider::header(abi::CommandOpcode::query_device), context.capabilities);
}

int query_device_ex(ibv_context* handle, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t size) {
  return guarded([&] {
    if (input != nullptr && input->comp_mask != 0) return EINVAL;
    if (size < sizeof(ibv_device_attr)) return EINVAL;
    const Context& context = Context::of(handle);
    ibv_device_attr_ex all{};
    fill_attributes(context, all.orig_attr);
    all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
    all.hca_core_clock = context.capabilities.core_clock_khz;
    all.completion_timestamp_mask = all.hca_core_clock != 0 ? ~0ull : 0;
    all.cq_mod_caps = {context.capabilities.max_cq_moderation_count, context.capabilities.max_cq_moderation_period};
    if (context.has_feature(abi::feature::kAtomicWrite)) all.device_cap_flags_ex |= kAtomicWriteFlag;
    fill_raw_packets(context, all);
    if (context.has_feature(abi::feature::kDeviceMemory)) all.max_dm_size = context.capabilities.device_memory;
    if (context.has_feature(abi::feature::kWritePadding)) all.device_cap_flags_ex |= IBV_DEVICE_PCI_WRITE_END_PADDING;
    fill_on_demand(context, all);
    all.phys_port_cnt_ex = context.capabilities.ports;
    std::memset(attributes, 0, size);
    std::memcpy(static_cast<void*>(attributes), &all, std::min(size, sizeof all));
    return 0;
  });
}

// Reads the device's clock in ticks, the unit of completion timestamps.
int query_rt_values(ibv_context* handle, ibv_values_ex* values) {
  return guarded([&] {
    const bool wanted = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;
    values->comp_mask = 0;  // becomes the mask of the values that were filled in
    if (!wanted) return 0;
    const std::uint64_t ticks = Context::of(handle).port.mmio_read(abi::reg::kClock, sizeof(std::uint64_t));
    values->raw_clock = {.tv_sec = 0, .tv_nsec = long(ticks)};
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
  });
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return guarded([&] {
    std::memset(attributes, 0, sizeof *attributes);
    fill_attributes(Context::of(context), *attributes);
    return 0;
  });
}
