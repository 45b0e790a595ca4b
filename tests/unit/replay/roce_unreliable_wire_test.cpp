// SPDX-License-Identifier: Apache-2.0
// Packets of ibv_uc_pingpong and ibv_ud_pingpong between two hosts with Linux' rxe: our responders accept all, and our
// requester's headers are equal to the bit.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "model/roce/packet.h"
#include "model/roce/requester.h"
#include "model/roce/responders/uc_responder.h"
#include "model/roce/responders/ud_responder.h"
#include "sim/replay/capture/capture_file.h"

namespace rnicsim::roce {
namespace {

using Kind = Verdict::Kind;
constexpr std::uint32_t kMtu = 1024;
constexpr std::uint32_t kPortMtu = 4096;  // MTU of datagrams
constexpr Qpn kManagement{1};

struct Captured {
  ParsedFrame frame;
  std::vector<std::byte> headers;  // BTH and the headers behind it
};

// Packets of one transport, by sender.
std::map<Gid, std::vector<Captured>> captured(Transport transport) {
  std::map<Gid, std::vector<Captured>> packets;
  const auto path = std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces" / "wire" / "rxe-two-guests.pcap";
  for (const auto& frame : sim::replay::read_capture(path)) {
    const auto parsed = parse_frame(frame.bytes, frame.bytes.size());
    if (parsed.error != ParseError::none || info(parsed.headers.bth.opcode).transport != transport) continue;
    if (parsed.headers.bth.destination == kManagement) continue;
    const auto size = encoded_size(info(parsed.headers.bth.opcode));
    const auto begin = frame.bytes.begin() + parsed.payload_offset;
    packets[parsed.addresses.source].push_back({parsed, {begin - static_cast<std::ptrdiff_t>(size), begin}});
  }
  return packets;
}

std::vector<std::byte> encoded(const Headers& headers) {
  std::vector<std::byte> bytes(Headers::kMaxBytes);
  bytes.resize(encode(headers, bytes));
  return bytes;
}

TEST(UnreliableWire, ConnectionsAreTaken) {
  const auto senders = captured(Transport::uc);
  ASSERT_EQ(senders.size(), 2u);
  for (const auto& [sender, packets] : senders) {
    ASSERT_EQ(packets.size(), 20u);
    UcResponder responder;
    responder.start({.mtu = kMtu, .access = 0}, packets.front().frame.headers.bth.psn);
    std::uint32_t offset = 0, messages = 0;
    for (const auto& packet : packets) {
      const Offer offer{.receive = Offer::Receive::available, .receive_bytes = 4096};
      const auto verdict = responder.receive(packet.frame.headers, packet.frame.payload_bytes, offer);
      ASSERT_EQ(verdict.kind, Kind::place);
      EXPECT_EQ(verdict.offset, offset);
      offset += packet.frame.payload_bytes;
      if (!verdict.completes_receive) continue;
      EXPECT_EQ(verdict.message_bytes, 4096u);
      offset = 0;
      ++messages;
    }
    EXPECT_EQ(messages, 5u);
  }
}

TEST(UnreliableWire, ConnectionsSendTheSame) {
  for (const auto& [sender, packets] : captured(Transport::uc)) {
    const auto& bth = packets.front().frame.headers.bth;
    SendWindow window;
    Requester requester{window};
    window.start({.transport = Transport::uc, .local = {1}, .remote = bth.destination, .mtu = kMtu}, bth.psn);
    for (std::uint64_t id = 0; id < 5; ++id) window.post({.id = id, .operation = SendOperation::send, .length = 4096});
    for (const auto& packet : packets) {
      auto ours = requester.next_packet();
      ASSERT_TRUE(ours);
      EXPECT_EQ(ours->payload, packet.frame.payload_bytes);
      ours->headers.bth.migrated = packet.frame.headers.bth.migrated;  // rxe leaves MigReq clear
      EXPECT_EQ(encoded(ours->headers), packet.headers);
    }
    EXPECT_FALSE(requester.next_packet());
  }
}

TEST(UnreliableWire, DatagramsAreTakenAndSentTheSame) {
  const auto senders = captured(Transport::ud);
  ASSERT_EQ(senders.size(), 2u);
  for (const auto& [sender, packets] : senders) {
    const auto& first = packets.front().frame.headers;
    UdResponder responder;
    std::uint64_t id = 0;
    responder.start({.mtu = kPortMtu, .qkey = first.deth->qkey});
    SendWindow window;
    Requester requester{window};
    window.start({.transport = Transport::ud, .local = first.deth->source, .remote = {0}, .mtu = kPortMtu},
                 first.bth.psn);
    for (const auto& packet : packets) {
      const Offer offer{.receive = Offer::Receive::available, .receive_bytes = kGrhBytes + kPortMtu};
      const auto bytes = packet.frame.payload_bytes;
      const auto verdict = responder.receive(packet.frame.headers, bytes, offer);
      ASSERT_EQ(verdict.kind, Kind::place);
      EXPECT_EQ(verdict.message_bytes, kGrhBytes + bytes);
      window.post({.id = id++,
                   .operation = SendOperation::send,
                   .length = bytes,
                   .remote = packet.frame.headers.bth.destination,
                   .qkey = first.deth->qkey});
      auto ours = requester.next_packet();
      ASSERT_TRUE(ours);
      ours->headers.bth.migrated = packet.frame.headers.bth.migrated;  // rxe leaves MigReq clear
      EXPECT_EQ(encoded(ours->headers), packet.headers);
    }
  }
}

}  // namespace
}  // namespace rnicsim::roce
