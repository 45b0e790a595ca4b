// SPDX-License-Identifier: Apache-2.0
// RoCEv2 packets of a capture, parsed and with their ICRC checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/payload.h"
#include "model/roce/packet.h"
#include "sim/replay/capture/capture_file.h"

namespace rnicsim::sim::replay {

inline constexpr std::uint32_t kGeneralServicesQp = 1;

struct WirePacket {
  std::uint32_t frame = 0;
  roce::FrameAddresses addresses;
  roce::Headers headers;
  Payload payload;
  bool icrc_right = false;
  Duration time{};  // since the capture's first frame
  Payload grh{};    // datagram: the GRH that its receiver finds before the payload

  const roce::OpcodeInfo& row() const { return roce::info(headers.bth.opcode); }
  roce::Psn psn() const { return headers.bth.psn; }
};

struct UnparsedPacket {
  std::uint32_t frame = 0;
  roce::ParseError error = roce::ParseError::none;
};

struct WireCapture {
  std::size_t frames = 0;
  Duration end{};                        // time of the last frame
  std::vector<WirePacket> packets;       // parsed, in order
  std::vector<UnparsedPacket> unparsed;  // to the RoCEv2 UDP port, but not parsed

  std::size_t roce_frames() const { return packets.size() + unparsed.size(); }
  std::size_t icrc_right() const;
  std::vector<roce::Gid> addresses() const;  // of RoCEv2 packets, in order of appearance
};

// ConfigError: a RoCEv2 frame was cut by the capture, or there is no RoCEv2 frame.
WireCapture parse_capture(std::span<const CapturedFrame> frames);

// Parses an IPv4 or IPv6 address; nullopt: neither. An IPv4 address becomes an IPv4-mapped GID.
std::optional<roce::Gid> parse_address(const std::string& text);
std::string address_text(const roce::Gid& gid);

}  // namespace rnicsim::sim::replay
