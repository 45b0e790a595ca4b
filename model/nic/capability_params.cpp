// SPDX-License-Identifier: Apache-2.0
#include "model/nic/capability_params.h"

#include "model/nic/packets/multicast_table.h"
#include "model/nic/packets/receive/flow_table.h"
#include "model/nic/personality/commands.h"

namespace rnicsim::nic {
namespace {

// Codes of the InfiniBand specification, PortInfo: LinkSpeedActive and its extension, LinkWidthActive.
constexpr double kSpeeds[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr double kLinkWidths[] = {1, 2, 4, 8, 16};

}  // namespace

DeviceFeatures CapabilityParams::features() const {
  return {.invalidate = invalidate,
          .uc = uc,
          .ud = ud,
          .srq = srq,
          .multicast = max_multicast_groups != 0,
          .windows = windows,
          .raw = raw,
          .atomic_write = atomic_write,
          .pacing = raw && max_rate_limit != 0,
          .source_qpn = ud && source_qpn,
          .device_memory = device_memory != 0,
          .write_padding = write_padding && raw,
          .relaxed_ordering = relaxed_ordering,
          .xrc = xrc && srq,
          .on_demand = on_demand,
          .fast_register = fast_register};
}

MulticastLimits CapabilityParams::multicast_limits() const {
  return {max_multicast_groups, max_group_qps, max_attached_qps};
}

FlowLimits CapabilityParams::flow_limits() const { return {max_flows, max_flow_counters}; }

void CapabilityParams::describe(ParamVisitor& visit) {
  visit.param("vendor_part_id", vendor_part_id,
              "vendor part ID of ibv_query_device: programs such as perftest choose their defaults by this number",
              {0, 0xffffffff});
  visit.param("max_qp", max_qp, "queue pair contexts; the kernel reserves 64", {1, 1 << 24});
  visit.param("max_qp_wr", max_qp_wr, "receive WQEs, or send blocks of 64 bytes, of a queue pair", {1, 32768});
  visit.param("max_sge", max_sge, "scatter/gather entries of a WQE; of a receive 32 at most", {1, 60});
  visit.param("max_cq", max_cq, "completion queue contexts; the kernel reserves one", {1, 1 << 24});
  visit.param("max_cqe", max_cqe, "entries of a completion queue", {1, 4194303});
  visit.param("max_cq_moderation_count", max_cq_moderation_count,
              "completions that an event may wait for (ibv_modify_cq); as mlx5's", {0, 65535});
  visit.param("max_cq_moderation_period", max_cq_moderation_period,
              "longest wait of an event, in whole microseconds; as mlx5's", {0, 65535e6});
  visit.param("max_srq", max_srq, "shared receive queues", {1, 1 << 24});
  visit.param("max_srq_wr", max_srq_wr, "receive WQEs of a shared receive queue; as mlx5's", {1, 32767});
  visit.param("max_mtt", max_mtt, "pages of memory regions", {1, 1 << 28});
  visit.param("max_mr", max_mr, "memory regions and windows; the kernel reserves two entries", {1, 1 << 24});
  visit.param("max_pd", max_pd, "protection domains", {1, 1 << 24});
  visit.param("max_ah", max_ah, "address handles of a program, which its driver holds; as mlx5's", {1, 0x7fffffff});
  visit.param("max_eq", max_eq, "event queues", {1, 64});
  visit.param("max_inline", max_inline,
              "most inline bytes of a WQE; 236: a SEND that fills a 256-byte BlueFlame window", {0, 956});
  visit.param("max_inline_receive", max_inline_receive, "bytes of a message that its completion may hold; as mlx5's",
              {0, kMostInlineReceive});
  visit.param("max_rd_atomic", max_rd_atomic, "READs of a queue pair in flight; docs/timing.md: 16", {0, 128});
  visit.param("max_mtu", max_mtu, "path MTU, as enum ibv_mtu: 1 = 256 .. 5 = 4096", {1, 5});
  visit.param("max_message", max_message, "bytes of a message", {1, 0x1p31});
  visit.param("gids", gids, "entries of the GID table; a host sets three", {3, 256});
  visit.param("active_speed", active_speed, "lane speed, as ibv_port_attr: 32 = 25 Gb/s", {1, 128, kSpeeds});
  visit.param("active_width", active_width, "lanes, as ibv_port_attr: 2 = 4x", {1, 16, kLinkWidths});
  visit.param("max_mr_size", max_mr_size, "bytes of a memory region", {4096, 0x1p62});
  visit.param("invalidate", invalidate, "SEND with invalidate and local invalidate");
  visit.param("windows", windows, "memory windows of types 1 and 2B");
  visit.param("fast_register", fast_register, "regions that a work request gives pages and a key");
  visit.param("atomic_write", atomic_write, "ATOMIC WRITE of the transport RC (IBTA 1.5)");
  visit.param("uc", uc, "queue pairs of the transport UC");
  visit.param("ud", ud, "queue pairs of the transport UD");
  visit.param("source_qpn", source_qpn, "UD queue pairs whose datagrams have another queue pair's source number");
  visit.param("max_multicast_groups", max_multicast_groups, "multicast groups with QPs attached; 0: no multicast",
              {0, 1 << 24});
  visit.param("max_group_qps", max_group_qps, "queue pairs attached to one group; as mlx5's", {1, 1 << 24});
  visit.param("max_attached_qps", max_attached_qps, "attachments to all groups together", {1, 1 << 24});
  visit.param("srq", srq, "shared receive queues");
  visit.param("xrc", xrc, "XRC: queue pairs that share the receive queues of a domain; with srq");
  visit.param("raw", raw, "raw packets: their queue pairs, flows and receive-side scaling");
  visit.param("on_demand", on_demand, "regions on demand: address translation (ATS) and page requests (PRI)");
  visit.param("max_frame", max_frame, "bytes of a raw packet, without FCS: 9000 of payload, Ethernet and a VLAN tag",
              {64, 65535});
  visit.param("max_flows", max_flows, "flow rules of the port", {1, 1 << 20});
  visit.param("max_flow_counters", max_flow_counters, "counters for flow rules", {1, 1 << 20});
  visit.param("max_rss", max_rss, "contexts of receive-side scaling, each with its key and its table", {1, 1 << 16});
  visit.param("max_rss_queues", max_rss_queues, "entries of an indirection table", {1, kMostRssQueues});
  visit.param("max_tso", max_tso, "bytes of data that are sent in segments by one WQE; as mlx5's", {1, 1 << 24});
  visit.param("max_rate_limit", max_rate_limit,
              "highest rate limit of a queue pair of raw packets, in kb/s; 0: no rate limits", {0, 0xffffffff});
  visit.param("relaxed_ordering", relaxed_ordering,
              "memory regions whose TLPs may pass writes; without it the attribute is ignored");
  visit.param("write_padding", write_padding, "raw packets received are written in whole cache lines, if asked for");
  visit.param("mac", mac, "the port's permanent MAC address, as a number");
}

}  // namespace rnicsim::nic
