// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/received_frame.h"

#include <algorithm>
#include <boost/crc.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "model/nic/packets/network_headers.h"

namespace rnicsim::nic {
namespace {

using namespace network;

// FCS (IEEE 802.3) over the received frame, lowest byte first.
void append_fcs(std::span<const std::byte> frame, std::vector<std::byte>& out) {
  boost::crc_32_type crc;
  crc.process_bytes(frame.data(), frame.size());
  for (int i = 0; i < 4; ++i) out.push_back(std::byte(crc.checksum() >> (8 * i) & 0xff));
}

}  // namespace

PacketHandle adapted(const Packet& frame, const ReceiveOptions& options) {
  const auto came = frame.payload().bytes();
  auto facts = frame.raw;
  std::vector<std::byte> bytes(came.begin(), came.end());
  if (options.scatter_fcs) append_fcs(came, bytes);
  if (options.strip_vlan && came.size() >= kAddresses + kTag + 2 && is_tag(word_at(came, kAddresses))) {
    facts.vlan = static_cast<std::uint16_t>(word_at(came, kAddresses + 2));
    const auto tag = bytes.begin() + kAddresses;
    bytes.erase(tag, tag + kTag);
  }
  return Packet::received(Payload::copy_of(bytes), facts, frame.id());
}

}  // namespace rnicsim::nic
