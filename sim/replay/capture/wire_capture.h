// The RoCEv2 packets of a capture, parsed with their ICRC checked.
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
  Payload grh{};    // of a datagram: what its receiver finds before the payload

  const roce::OpcodeInfo& row() const { return roce::info(headers.bth.opcode); }
  roce::Psn psn() const { return headers.bth.psn; }
};

struct UnparsedPacket {
  std::uint32_t frame = 0;
  roce::ParseError error = roce::ParseError::none;
};

struct WireCapture {
  std::size_t frames = 0;
  Duration end{};                        // when the last of them came
  std::vector<WirePacket> packets;       // parsed, in order
  std::vector<UnparsedPacket> unparsed;  // RoCEv2 by their UDP port, and not understood

  std::size_t roce_frames() const { return packets.size() + unparsed.size(); }
  std::size_t icrc_right() const;
  std::vector<roce::Gid> addresses() const;  // of RoCEv2 packets, in order of appearance
};

// ConfigError: a RoCEv2 frame was cut by the capture, or there is none.
WireCapture parse_capture(std::span<const CapturedFrame> frames);

// IPv4 or IPv6, as a person writes it; nullopt: neither. IPv4 becomes a mapped GID.
std::optional<roce::Gid> parse_address(const std::string& text);
std::string address_text(const roce::Gid& gid);

}  // namespace rnicsim::sim::replay
