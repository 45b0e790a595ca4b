// SPDX-License-Identifier: Apache-2.0
// The device's capabilities: the limits that it reports and enforces.
#pragma once

#include <cstdint>

#include "model/base/params.h"
#include "model/base/units.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct DeviceFeatures;
struct FlowLimits;
struct MulticastLimits;

struct CapabilityParams {
  static constexpr std::uint32_t kMostInlineReceive = 32;
  static constexpr std::uint32_t kMostRssQueues = 512;
  static constexpr std::uint32_t kMostTsoHeader = 256;
  static constexpr std::uint32_t kLeastRateLimit = 1;  // kb/s

  std::uint32_t vendor_part_id = 1;
  std::uint32_t max_qp = 65536;
  std::uint32_t max_qp_wr = 32768;
  std::uint32_t max_sge = 30;
  std::uint32_t max_cq = 65536;
  std::uint32_t max_cqe = 4194303;
  std::uint32_t max_cq_moderation_count = 65535;
  Duration max_cq_moderation_period = 4095_us;
  std::uint32_t max_srq = 65536;
  std::uint32_t max_srq_wr = 32767;
  std::uint32_t max_mr = 1u << 20;
  std::uint32_t max_mtt = 1u << 24;
  std::uint32_t max_pd = 65536;
  std::uint32_t max_ah = 0x7fffffff;
  std::uint32_t max_eq = 64;
  std::uint32_t max_inline = 220;
  std::uint32_t max_inline_receive = kMostInlineReceive;
  std::uint32_t max_rd_atomic = 16;
  std::uint32_t max_mtu = 5;
  std::uint32_t max_message = 1u << 30;
  std::uint32_t gids = 16;
  std::uint32_t active_speed = 32;
  std::uint32_t active_width = 2;
  std::uint64_t max_mr_size = 1ull << 40;
  bool invalidate = true;
  bool windows = true;
  bool fast_register = true;
  bool atomic_write = true;
  bool uc = true;
  bool ud = true;
  bool source_qpn = true;
  std::uint32_t max_multicast_groups = 8192;
  std::uint32_t max_group_qps = 240;
  std::uint32_t max_attached_qps = 65536;
  bool srq = true;
  bool xrc = true;
  bool raw = true;
  bool on_demand = true;
  std::uint32_t max_frame = 9018;
  std::uint32_t max_flows = 4096;
  std::uint32_t max_flow_counters = 1024;
  std::uint32_t max_rss = 256;
  std::uint32_t max_rss_queues = kMostRssQueues;
  std::uint32_t max_tso = 1u << 18;
  std::uint32_t max_rate_limit = 100'000'000;
  bool relaxed_ordering = true;
  bool write_padding = true;
  std::uint64_t mac = 0x0200'0000'0001;
  std::uint32_t device_memory = 0;  // bytes; set from DeviceMemoryParams

  DeviceFeatures features() const;
  MulticastLimits multicast_limits() const;
  FlowLimits flow_limits() const;
  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
