// SPDX-License-Identifier: Apache-2.0
// PCI Express, TLP by TLP: an oracle for model/nic/pcie/pcie_link.h (closed form) and dma.h (bursts). TLPs are
// enumerated one by one after the PCIe Base Specification 4.0 (2.2.7, 2.3.1.1). Slow, and simple enough to be verified
// by reading.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/nic/pcie/dma.h"

namespace rnicsim::nic::test {

struct Tlp {
  std::uint64_t address;
  std::uint64_t payload;  // bytes carried; of a read request: bytes requested
  std::uint64_t on_link;  // bytes, including header and framing
};

class TlpRules {
 public:
  explicit TlpRules(const PcieLinkParams& params) : params_(params) {}

  std::vector<Tlp> write(std::uint64_t address, std::uint64_t bytes) const {
    std::vector<Tlp> tlps;
    for_each_piece(address, bytes, params_.max_payload.bytes, [&](std::uint64_t at, std::uint64_t size) {
      tlps.push_back({at, size, size + params_.request_header.bytes});
    });
    return tlps;
  }
  std::vector<Tlp> requests(std::uint64_t address, std::uint64_t bytes) const {
    std::vector<Tlp> tlps;
    for_each_piece(address, bytes, params_.max_read_request.bytes, [&](std::uint64_t at, std::uint64_t size) {
      tlps.push_back({at, size, params_.request_header.bytes});
    });
    return tlps;
  }
  // A request is answered with one completion where MPS allows; otherwise each completion except the last ends at a
  // multiple of RCB.
  std::vector<Tlp> completions(const Tlp& request) const {
    const auto mps = params_.max_payload.bytes;
    const auto boundary = std::min(params_.read_completion_boundary.bytes, mps);
    std::vector<Tlp> tlps;
    auto at = request.address;
    const auto end = request.address + request.payload;
    do {
      auto next = end;
      if (end - at > mps) {
        next = at;
        for (auto cut = at + 1; cut <= at + mps; ++cut)
          if (cut % boundary == 0) next = cut;
      }
      tlps.push_back({at, next - at, next - at + params_.completion_header.bytes});
      at = next;
    } while (at < end);
    return tlps;
  }
  std::vector<Tlp> completions(std::uint64_t address, std::uint64_t bytes) const {
    std::vector<Tlp> tlps;
    for (const auto& request : requests(address, bytes))
      for (const auto& tlp : completions(request)) tlps.push_back(tlp);
    return tlps;
  }
  // Bits per second in one direction, from the table of transfer rates and line codes.
  double bits_per_second() const {
    const double lane[] = {2.5e9 * 8 / 10, 5e9 * 8 / 10, 8e9 * 128 / 130, 16e9 * 128 / 130, 32e9 * 128 / 130};
    return lane[params_.generation - 1] * params_.lanes * (1 - params_.dllp_share);
  }

 private:
  template <class Take>
  static void for_each_piece(std::uint64_t address, std::uint64_t bytes, std::uint64_t size, Take&& take) {
    if (bytes == 0) return take(address, std::uint64_t{0});
    for (const auto end = address + bytes; address < end;) {
      auto next = address + 1;
      while (next < end && next % size != 0) ++next;
      take(address, next - address);
      address = next;
    }
  }

  const PcieLinkParams params_;
};

// One direction of the link: TLPs follow one another, each for the time of its bytes. A burst's end is rounded to a
// picosecond.
class SerialLink {
 public:
  explicit SerialLink(BitRate rate) : rate_(rate) {}

  // The burst's first TLP starts when the link is free, and not before `ready`. Returns the time at which the last TLP
  // has passed.
  Duration carry(Duration ready, const std::vector<Tlp>& burst) {
    const auto begins = std::max(ready, free_);
    std::uint64_t part = 0;  // fraction of a picosecond: numerator over the rate
    std::int64_t whole = 0;
    for (const auto& tlp : burst) {
      const std::uint64_t scaled = tlp.on_link * 8 * 1'000'000'000'000 + part;
      whole += static_cast<std::int64_t>(scaled / rate_.bits_per_second);
      part = scaled % rate_.bits_per_second;
      ++tlps;
      bytes += tlp.on_link;
    }
    const Duration takes{whole + (part != 0)};
    busy += takes;
    free_ = begins + takes;
    return free_;
  }

  Duration busy;
  std::uint64_t tlps = 0;
  std::uint64_t bytes = 0;

 private:
  const BitRate rate_;
  Duration free_;
};

// The DMA unit without stalls and without queueing in the host. The host answers a read when all requests of the burst
// have arrived. The answer is not complete before earlier writes have landed.
class DmaOracle {
 public:
  explicit DmaOracle(const DmaParams& params)
      : to_host(PcieLink(params.link).rate()),
        to_device(PcieLink(params.link).rate()),
        params_(params),
        rules_(params.link) {}

  Duration read(Duration at, std::uint64_t offset, std::uint64_t bytes) {
    const auto asked = std::max(to_host.carry(at, rules_.requests(offset, bytes)), landed_ - params_.read_latency);
    return to_device.carry(asked + params_.read_latency, rules_.completions(offset, bytes)) + params_.read_internal;
  }
  Duration write(Duration at, std::uint64_t offset, std::uint64_t bytes) {
    const auto lands = to_host.carry(at, rules_.write(offset, bytes)) + params_.write_latency;
    landed_ = std::max(landed_, lands);
    return lands;
  }

  SerialLink to_host, to_device;

 private:
  const DmaParams params_;
  const TlpRules rules_;
  Duration landed_;
};

}  // namespace rnicsim::nic::test
