// SPDX-License-Identifier: Apache-2.0
// The PCI Express link in closed form: TLPs of a DMA burst, and the time that each direction is busy with them. PCIe
// Base Specification 4.0: 2.2.7 (requests), 2.3.1.1 (completions and the read completion boundary), 2.6.1 (credits).
#pragma once

#include <cstdint>

#include "model/base/params.h"

namespace rnicsim::nic {

using namespace rnicsim::literals;

struct PcieLinkParams {
  std::uint32_t generation = 3;
  std::uint32_t lanes = 16;
  ByteCount max_payload{256};
  ByteCount max_read_request{512};
  ByteCount read_completion_boundary{64};
  ByteCount request_header{24};
  ByteCount completion_header{20};
  double dllp_share = 0.03;

  void describe(ParamVisitor& visit);
};

// Number of TLPs, and their bytes including headers and framing.
struct TlpCount {
  std::uint64_t tlps = 0;
  std::uint64_t bytes = 0;
};

class PcieLink {
 public:
  explicit PcieLink(const PcieLinkParams& params);

  // Data rate of one direction, after encoding and DLLPs.
  BitRate rate() const { return rate_.rate(); }
  Duration time_for(const TlpCount& count) const { return rate_.time_for({count.bytes}); }

  // Memory writes end at multiples of MPS, read requests at multiples of MRRS: no request crosses 4 KiB.
  TlpCount write(std::uint64_t address, std::uint64_t bytes) const {
    const auto tlps = pieces(address, bytes, log_payload_);
    return {tlps, bytes + tlps * params_.request_header.bytes};
  }
  TlpCount read_request(std::uint64_t address, std::uint64_t bytes) const {
    const auto tlps = pieces(address, bytes, log_read_);
    return {tlps, tlps * params_.request_header.bytes};
  }
  // The completions of those requests: each has up to MPS bytes; the first one of a request is shorter, to end at a
  // multiple of RCB.
  TlpCount completion(std::uint64_t address, std::uint64_t bytes) const;

 private:
  // Number of pieces of [address, address + bytes) that end at multiples of 2^log_size; 1 for a request of no bytes.
  static std::uint64_t pieces(std::uint64_t address, std::uint64_t bytes, unsigned log_size) {
    return bytes == 0 ? 1 : ((address + bytes - 1) >> log_size) - (address >> log_size) + 1;
  }
  std::uint64_t completions(std::uint64_t address, std::uint64_t bytes) const;  // number of completions of one request

  PcieLinkParams params_;
  SteadyRate rate_;
  unsigned log_payload_;  // MPS, MRRS and RCB are powers of two
  unsigned log_read_;
  std::uint64_t in_boundary_;  // mask: offset within the unit at which completions may be cut
  std::uint64_t of_largest_;   // completions of a request of MRRS bytes
};

}  // namespace rnicsim::nic
