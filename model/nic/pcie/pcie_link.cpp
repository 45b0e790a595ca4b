// SPDX-License-Identifier: Apache-2.0
#include "model/nic/pcie/pcie_link.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rnicsim::nic {
namespace {

// Data bits per second of a lane: transfer rate times the efficiency of the line code (8b/10b, then 128b/130b).
double lane_rate(std::uint32_t generation) {
  constexpr double kGigatransfers[] = {2.5, 5, 8, 16, 32};
  const double transfers = 1e9 * kGigatransfers[std::clamp(generation, 1u, 5u) - 1];
  return generation < 3 ? transfers * 8 / 10 : transfers * 128 / 130;
}

// Values that the Device Control, Link Control and Link Status registers can encode.
constexpr double kTlpSizes[] = {128, 256, 512, 1024, 2048, 4096};
constexpr double kBoundaries[] = {64, 128};
constexpr double kWidths[] = {1, 2, 4, 8, 12, 16, 32};

}  // namespace

void PcieLinkParams::describe(ParamVisitor& visit) {
  visit.param("generation", generation, "PCI Express generation: 2.5, 5, 8, 16, 32 GT/s a lane; docs/timing.md",
              {1, 5});
  visit.param("lanes", lanes, "lanes; docs/timing.md", {1, 32, kWidths});
  visit.param("max_payload", max_payload, "largest payload of a TLP (MPS); docs/timing.md", {128, 4096, kTlpSizes});
  visit.param("max_read_request", max_read_request, "largest read request (MRRS); docs/timing.md",
              {128, 4096, kTlpSizes});
  visit.param("read_completion_boundary", read_completion_boundary,
              "where completions of a read may be cut (RCB); docs/timing.md", {64, 128, kBoundaries});
  visit.param("request_header", request_header, "MWr or MRd TLP with framing; docs/timing.md", {0, 64});
  visit.param("completion_header", completion_header, "CplD TLP with framing; docs/timing.md", {0, 64});
  visit.param("dllp_share", dllp_share, "share of the link used by acknowledgements and credits; docs/timing.md",
              {0, 0.5});
}

PcieLink::PcieLink(const PcieLinkParams& params)
    : params_(params),
      rate_({static_cast<std::uint64_t>(
          std::llround(lane_rate(params.generation) * params.lanes * (1 - params.dllp_share)))}),
      log_payload_(static_cast<unsigned>(std::countr_zero(params.max_payload.bytes))),
      log_read_(static_cast<unsigned>(std::countr_zero(params.max_read_request.bytes))),
      in_boundary_(std::min(params.max_payload.bytes, params.read_completion_boundary.bytes) - 1),
      of_largest_(completions(0, params.max_read_request.bytes)) {}

std::uint64_t PcieLink::completions(std::uint64_t address, std::uint64_t bytes) const {
  const auto mps = params_.max_payload.bytes;
  if (bytes <= mps) return 1;
  const auto first = mps - (address & in_boundary_);
  return 1 + ((bytes - first + mps - 1) >> log_payload_);
}

TlpCount PcieLink::completion(std::uint64_t address, std::uint64_t bytes) const {
  const auto mrrs = params_.max_read_request.bytes;
  // The first and the last request may be shorter; those between are equal.
  const auto first = std::min(bytes, mrrs - (address & (mrrs - 1)));
  auto tlps = completions(address, first);
  if (const auto rest = bytes - first; rest != 0) {
    tlps += (rest >> log_read_) * of_largest_;
    if (const auto last = rest & (mrrs - 1); last != 0) tlps += completions(0, last);
  }
  return {tlps, bytes + tlps * params_.completion_header.bytes};
}

}  // namespace rnicsim::nic
