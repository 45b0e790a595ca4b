// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/workload.h"

#include <algorithm>
#include <array>

namespace rnicsim::sim::bench {
namespace {

template <std::size_t count, class Choice>
std::string_view name_of(const std::array<std::string_view, count>& names, Choice choice) {
  return names[static_cast<std::size_t>(choice)];
}

}  // namespace

std::string_view to_string(Op op) {
  return name_of(std::to_array<std::string_view>({"write", "write_imm", "send", "send_imm", "read", "fetch_add",
                                                  "cmp_swap", "lock_write", "reg_mr", "connect_qp"}),
                 op);
}
std::string_view to_string(Transport transport) {
  return name_of(std::to_array<std::string_view>({"rc", "uc", "ud", "raw", "xrc"}), transport);
}
std::string_view to_string(Connect connect) {
  return name_of(std::to_array<std::string_view>({"pairwise", "all"}), connect);
}
std::string_view to_string(WindowPer per) { return name_of(std::to_array<std::string_view>({"qp", "thread"}), per); }
std::string_view to_string(Pick pick) {
  return name_of(std::to_array<std::string_view>({"round_robin", "random"}), pick);
}
std::string_view to_string(Doorbell doorbell) {
  return name_of(std::to_array<std::string_view>({"blueflame", "plain"}), doorbell);
}
std::string_view to_string(Uars uars) {
  return name_of(std::to_array<std::string_view>({"shared", "per_thread"}), uars);
}
std::string_view to_string(Addressing addressing) {
  return name_of(std::to_array<std::string_view>({"fixed", "sequential", "random", "one", "stride", "slots", "zipf"}),
                 addressing);
}

ByteCount Flow::longest() const {
  ByteCount longest{};
  for (const auto& entry : mix) longest = std::max(longest, entry.size);
  return longest;
}

double Flow::mean_bytes() const {
  double bytes = 0, weights = 0;
  for (const auto& of : sequences) {
    weights += of.weight;
    for (std::uint32_t i = 0; i < of.count; ++i) bytes += static_cast<double>(mix[of.first + i].size.bytes) * of.weight;
  }
  for (const auto& entry : sequence ? std::vector<MixedOp>() : mix) {
    bytes += static_cast<double>(entry.size.bytes) * entry.weight;
    weights += entry.weight;
  }
  return bytes / weights;
}

ByteCount Flow::place() const {
  constexpr std::uint64_t kGrhBytes = 40;
  if (transport == Transport::raw) return {raw.frame_bytes(static_cast<std::uint32_t>(longest().bytes))};
  return {longest().bytes + (transport == Transport::ud ? kGrhBytes : locks() ? kLockBytes : 0)};
}

bool Flow::takes_receives() const {
  return std::ranges::any_of(mix, [](const MixedOp& entry) { return takes_receive(entry.op); });
}

}  // namespace rnicsim::sim::bench
