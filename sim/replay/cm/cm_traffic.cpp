// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/cm/cm_traffic.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

namespace rnicsim::sim::replay {
namespace {

constexpr std::uint32_t kGeneralServicesQkey = 0x80010000;
constexpr std::size_t kClassAt = 1;
constexpr std::byte kCmClass{0x07};

bool is_datagram_to_qp1(const WirePacket& packet) {
  return packet.row().transport == roce::Transport::ud && packet.headers.deth &&
         packet.headers.bth.destination.value == kGeneralServicesQp;
}

// Reason why a manager cannot read the datagram; nullopt: it can.
std::optional<std::string> oddity(const WirePacket& packet) {
  const auto bytes = packet.payload.bytes();
  if (!packet.icrc_right) return "the ICRC is wrong";
  if (packet.headers.deth->qkey != kGeneralServicesQkey)
    return fmt::format("Q_Key {:#x} is not QP1's", packet.headers.deth->qkey);
  if (bytes.size() != cm::kMadBytes)
    return fmt::format("{} bytes; a management datagram has {}", bytes.size(), cm::kMadBytes);
  if (bytes[kClassAt] != kCmClass)
    return fmt::format("management class {:#04x} is not the communication manager's",
                       std::to_integer<unsigned>(bytes[kClassAt]));
  return std::nullopt;
}

// Communication IDs or service of the message.
std::string ids_text(const cm::Envelope& envelope) {
  return std::visit(
      [](const auto& message) {
        std::string text;
        if constexpr (requires { message.local_id; }) text += fmt::format(" from {:#x}", message.local_id);
        if constexpr (requires { message.remote_id; }) text += fmt::format(" to {:#x}", message.remote_id);
        if constexpr (requires { message.request_id; }) text += fmt::format(" {:#x}", message.request_id);
        if constexpr (requires { message.service_id; }) text += fmt::format(", service {:#x}", message.service_id);
        if constexpr (requires { message.reason; })
          text += fmt::format(", reason {}", static_cast<unsigned>(message.reason));
        return text;
      },
      envelope.message);
}

}  // namespace

CmTraffic cm_traffic(const WireCapture& capture, const roce::Gid& address) {
  CmTraffic traffic;
  traffic.end = capture.end;
  for (const auto& packet : capture.packets) {
    const bool sent = packet.addresses.source == address;
    if (!is_datagram_to_qp1(packet) || (!sent && packet.addresses.destination != address)) continue;
    if (auto what = oddity(packet)) {
      const auto bytes = packet.payload.bytes();
      const bool of_cm = bytes.size() <= kClassAt || bytes[kClassAt] == kCmClass;
      traffic.odd.push_back({packet.frame, sent, of_cm, std::move(*what)});
    } else if (auto envelope = cm::decode(packet.payload.bytes())) {
      const auto& peer = sent ? packet.addresses.destination : packet.addresses.source;
      traffic.messages.push_back({packet.frame, packet.time, sent, peer, std::move(*envelope)});
    } else {
      traffic.odd.push_back({packet.frame, sent, true, "version, method or attribute is not of a message"});
    }
  }
  return traffic;
}

std::string decoded(const cm::Envelope& envelope) {
  return fmt::format("{}{}, transaction {:#x}", cm::name_of(envelope.message), ids_text(envelope),
                     envelope.transaction_id);
}

}  // namespace rnicsim::sim::replay
