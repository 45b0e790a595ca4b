// SPDX-License-Identifier: Apache-2.0
// Frames of a hostile peer: first given to the parser alone, then to two NICs with connected and busy QPs.
#include "model/roce/headers.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"
#include "tests/soak/fuzz/raw_qp.h"

namespace rnicsim::fuzz {
namespace {

using roce::Opcode;

enum Step : std::uint8_t {
  frame_to_b,
  frame_to_a,
  send_from_a,
  send_from_b,
  receive_at_b,
  receive_at_a,
  pass_time,
  unreliable_receive,
  send_by_xrc,
  shared_receive,
  page_of_a,
  page_of_b,
  kinds
};

// Fields of a mutated frame that are corrected, so that the mutation passes earlier checks.
enum Mend : std::uint8_t { kLengths = 1, kChecksum = 2, kIcrc = 4, kCut = 8 };

constexpr std::size_t kIpv4Headers = roce::kEthernetBytes + roce::kIpv4Bytes + roce::kUdpBytes;
constexpr std::size_t kIpv6Headers = roce::kEthernetBytes + roce::kIpv6Bytes + roce::kUdpBytes;
constexpr std::uint32_t kChunk = 8192;  // bytes of the regions for each work request

std::span<std::byte> writable(Bytes& bytes) { return std::as_writable_bytes(std::span(bytes)); }

void put16(Bytes& bytes, std::size_t at, std::size_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

void mend(Bytes& frame, std::uint8_t what) {
  const bool ipv4 = frame.size() > 13 && frame[12] == 0x08 && frame[13] == 0x00;
  const auto headers = ipv4 ? kIpv4Headers : kIpv6Headers;
  if (frame.size() < headers + roce::Bth::kBytes + roce::kIcrcBytes) return;
  const auto udp = headers - roce::kUdpBytes;
  if (what & kLengths) {
    put16(frame, udp + 4, frame.size() - udp);
    put16(frame, ipv4 ? 16 : 18, ipv4 ? frame.size() - roce::kEthernetBytes : frame.size() - udp);
  }
  if (ipv4 && (what & kChecksum)) {
    put16(frame, 24, 0);
    std::uint32_t sum = 0;
    for (std::size_t i = 14; i < 34; i += 2) sum += static_cast<std::uint32_t>(frame[i] << 8 | frame[i + 1]);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    put16(frame, 24, ~sum & 0xffff);
  }
  if (what & kIcrc) {
    const auto covered = std::span<const std::byte>(writable(frame))
                             .subspan(roce::kEthernetBytes)
                             .first(frame.size() - roce::kEthernetBytes - roce::kIcrcBytes);
    const auto split = headers + roce::Bth::kBytes - roce::kEthernetBytes;
    const auto crc = roce::icrc(covered.first(split), covered.subspan(split), {});
    for (std::size_t i = 0; i < roce::kIcrcBytes; ++i)
      frame[frame.size() - roce::kIcrcBytes + i] = static_cast<std::uint8_t>(crc >> (8 * i));
  }
}

roce::FrameAddresses addresses(std::uint8_t from, std::uint8_t to) {
  roce::FrameAddresses a;
  a.source = Node::gid_of(from);
  a.destination = Node::gid_of(to);
  a.source_mac[5] = from;
  a.destination_mac[5] = to;
  return a;
}

Bytes frame_of(const roce::FrameAddresses& a, roce::Headers headers, std::size_t payload,
               const QpNumbers& to = kVictim) {
  headers.bth.pad = static_cast<std::uint8_t>(-payload & 3);
  headers.bth.destination = {to.qpn};
  std::array<std::byte, roce::kMaxFrameHeader> head;
  const auto used = roce::frame_header(a, headers, static_cast<std::uint32_t>(payload), head);
  Bytes frame(used + payload + headers.bth.pad + roce::kIcrcBytes);
  std::memcpy(frame.data(), head.data(), used);
  mend(frame, kIcrc);
  return frame;
}

void check_parsed(std::span<const std::byte> bytes) {
  const auto parsed = roce::parse_frame(bytes, bytes.size());
  if (parsed.error != roce::ParseError::none) return;
  require(parsed.payload_offset + std::size_t{parsed.payload_bytes} + parsed.headers.bth.pad + roce::kIcrcBytes <=
              bytes.size(),
          "a packet is longer than its frame");
  // Parsed headers can be written again, and then parse to the same headers.
  std::array<std::byte, roce::kMaxFrameHeader> head;
  const auto used = roce::frame_header(parsed.addresses, parsed.headers, parsed.payload_bytes, head);
  require(used == parsed.payload_offset, "headers change their size when written again");
  std::vector<std::byte> again(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(used));
  again.resize(used + parsed.payload_bytes + parsed.headers.bth.pad + roce::kIcrcBytes);
  const auto twice = roce::parse_frame(again, again.size());
  require(twice.error == roce::ParseError::none && twice.addresses == parsed.addresses &&
              twice.headers.bth.psn == parsed.headers.bth.psn && twice.payload_bytes == parsed.payload_bytes,
          "headers change their meaning when written again");
}

Frame frame_from(const Bytes& bytes, bool cut) {
  const auto all = std::as_bytes(std::span(bytes));
  const auto parsed = roce::parse_frame(all, all.size());
  const auto end = std::size_t{parsed.payload_offset} + parsed.payload_bytes;
  if (cut && parsed.error == roce::ParseError::none && all.size() - end <= Frame::kTrailerCapacity)
    return Frame::of(Payload::copy_of(all.first(parsed.payload_offset)),
                     Payload::copy_of(all.subspan(parsed.payload_offset, parsed.payload_bytes)), all.subspan(end));
  return Frame::of(Payload::copy_of(all));
}

class Conversation {
 public:
  explicit Conversation(Stage& stage) : stage_(stage) {}

  void take(const Input::Step& step) {
    Input body(step.body);
    switch (step.kind % kinds) {
      case frame_to_b: return inject(stage_.a(), body);
      case frame_to_a: return inject(stage_.b(), body);
      case send_from_a: return send(stage_.a(), stage_.victim_a(), stage_.b(), body, 0);
      case send_from_b: return send(stage_.b(), stage_.victim_b(), stage_.a(), body, 1);
      case send_by_xrc: return send(stage_.a(), stage_.xrc_at_a(), stage_.b(), body, 2);
      case receive_at_b: return receive(stage_.b(), stage_.victim_b(), body);
      case receive_at_a: return receive(stage_.a(), stage_.victim_a(), body);
      case unreliable_receive: {
        auto& qp = body.take<std::uint8_t>() % 2 == 0 ? stage_.uc_at_b() : stage_.ud_at_b();
        if (qp.receive_producer < 1u << RawQp::kLogReceives)
          qp.post_receive(qp.buffer, body.take<std::uint16_t>() % kChunk);
        return;
      }
      case shared_receive:
        if (shared_++ < nic::test::SharedRing::kEntries - 1)
          stage_.shared_at_b().post(stage_.b().buffer + 768 * 1024, body.take<std::uint16_t>() % kChunk);
        return;
      case page_of_a: return stage_.pages_of(stage_.a()).change(body.take<std::uint8_t>());
      case page_of_b: return stage_.pages_of(stage_.b()).change(body.take<std::uint8_t>());
      default: return sc_core::sc_start((body.take<std::uint16_t>() + 1) * 10.0, sc_core::SC_NS);
    }
  }

  // Every signalled WQE must complete, whatever the peer sent.
  void finish() {
    Stage::settle();
    RawQp* const senders[] = {&stage_.victim_a(), &stage_.victim_b(), &stage_.xrc_at_a()};
    for (std::size_t i = 0; i < std::size(senders); ++i) {
      auto& qp = *senders[i];
      std::uint32_t completed = 0;
      while (qp.poll(0)) ++completed;
      while (qp.poll(1)) {}
      require(completed == sent_[i], "a send WQE has no completion");
      require(qp.query().send_consumer == qp.producer, "a send WQE was not retired");
    }
    while (stage_.xrc_at_b().poll(1)) {}
    // No packet can move a QP of an unreliable transport to ERR; receives complete successfully.
    for (auto* qp : {&stage_.uc_at_b(), &stage_.ud_at_b()}) {
      require(qp->query().state == abi::QpState::rts, "an unreliable QP has left RTS");
      while (const auto cqe = qp->poll(1))
        require(cqe->syndrome == abi::CqeSyndrome::success, "a receive of an unreliable QP fails");
    }
  }

 private:
  // Sends a frame as if `from` had sent it, over the cable, which keeps the order.
  void inject(Node& from, Input& body) {
    const auto what = body.take<std::uint8_t>();
    const auto part = body.take_span(~std::size_t{0});
    Bytes bytes(part.begin(), part.end());
    mend(bytes, what);
    check_parsed(std::as_bytes(std::span(bytes)));
    const auto parsed = roce::parse_frame(std::as_bytes(std::span(bytes)), bytes.size());
    // Packets to the witness must be valid.
    if (parsed.error == roce::ParseError::none && parsed.headers.bth.destination.value == kWitness.qpn) return;
    from.nic.frame_out()(frame_from(bytes, (what & kCut) != 0));
  }
  // Memory of a work request and its key: host memory, device memory, or on-demand pages.
  struct Place {
    std::uint64_t address;
    std::uint32_t key;
  };
  static Place place_of(Node& node, unsigned kind, std::uint64_t in_buffer) {
    switch (kind % 3) {
      case 1: return {in_buffer % (kDeviceBytes - kChunk), kDeviceKey};
      case 2: return {in_buffer % (HostPages::kBytes - kChunk), kPagedKey};
      default: return {node.buffer + in_buffer, kVictim.key};
    }
  }
  void send(Node& node, RawQp& qp, Node& peer, Input& body, std::size_t which) {
    if (sent_[which] == 32) return;
    constexpr abi::SendOpcode kOpcodes[] = {abi::SendOpcode::write, abi::SendOpcode::read, abi::SendOpcode::send,
                                            abi::SendOpcode::fetch_add, abi::SendOpcode::compare_swap};
    // An XRC atomic takes more than one block.
    const std::size_t possible = &qp == &stage_.xrc_at_a() ? 3 : std::size(kOpcodes);
    const auto opcode = kOpcodes[body.take<std::uint8_t>() % possible];
    const bool atomic = opcode == abi::SendOpcode::fetch_add || opcode == abi::SendOpcode::compare_swap;
    const auto asked = body.take<std::uint16_t>();
    const std::uint32_t length = atomic ? 8u : asked % kChunk;
    const unsigned where = body.take<std::uint8_t>();
    constexpr std::uint32_t kQueues[] = {kSrqn, kStrangeSrqn, kOrdinarySrqn, 0x123456};
    const auto from = place_of(node, where, kChunk * sent_[which]);
    const auto to = place_of(peer, where / 3, 512 * 1024 + kChunk * sent_[which]);
    qp.post_send({.opcode = opcode,
                  .address = from.address,
                  .length = length,
                  .remote_address = to.address,
                  .rkey = opcode == abi::SendOpcode::send ? 0u : to.key,
                  .lkey = from.key,
                  .srqn = kQueues[where / 9 % std::size(kQueues)]});
    ++sent_[which];
  }
  void receive(Node& node, RawQp& qp, Input& body) {
    if (qp.receive_producer == 1u << RawQp::kLogReceives) return;
    const auto length = body.take<std::uint16_t>() % kChunk;
    const auto place = place_of(node, body.take<std::uint8_t>(), 256 * 1024 + kChunk * qp.receive_producer);
    qp.post_receive(place.address, length, place.key);
  }

  Stage& stage_;
  std::array<std::uint32_t, 3> sent_{};
  std::uint32_t shared_ = 0;
};

roce::Headers headers(Opcode opcode, std::uint32_t psn, std::uint32_t length, std::uint64_t address) {
  roce::Headers h;
  h.bth.opcode = opcode;
  h.bth.ack_request = true;
  h.bth.psn = roce::Psn(psn);
  const auto& row = roce::info(opcode);
  if (row.has(roce::header::kReth)) h.reth = roce::Reth{address, {kVictim.key}, length};
  if (row.has(roce::header::kAtomic)) h.atomic = roce::AtomicEth{address, {kVictim.key}, 1, 2};
  if (row.has(roce::header::kAeth)) h.aeth = roce::Aeth{0x1f, 1};
  if (row.has(roce::header::kAtomicAck)) h.atomic_ack = 7;
  if (row.has(roce::header::kImmediate)) h.immediate = 0x12345678;
  if (row.has(roce::header::kInvalidate)) h.invalidate = roce::Rkey{kVictim.key};
  if (row.has(roce::header::kDeth)) h.deth = roce::Deth{kQkey, {kVictim.qpn}};
  if (row.has(roce::header::kXrceth)) h.xrc_srqn = kSrqn;
  return h;
}

// Addresses of the nodes' buffers: the same in each run.
constexpr std::uint64_t kSomewhere = nic::test::kMemoryBase + (1 << 17);
constexpr std::uint8_t kAll = kLengths | kChecksum | kIcrc;

Script conversation() {
  Script script;
  for (int i = 0; i < 8; ++i) script.step(receive_at_b, std::uint16_t{5000}).step(shared_receive, std::uint16_t{5000});
  return script;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto to_b = addresses(Stage::kA, Stage::kB);
  const auto to_a = addresses(Stage::kB, Stage::kA);
  for (unsigned code = 0; code < 256; ++code) {
    const auto* row = roce::find_opcode(static_cast<std::uint8_t>(code));
    if (row == nullptr) continue;
    const auto opcode = static_cast<Opcode>(code);
    const std::size_t payload = row->payload == roce::PayloadRule::none       ? 0
                                : row->payload == roce::PayloadRule::full_mtu ? 1024
                                                                              : 37;
    const bool extended = code >> 5 == 5;  // XRC opcodes
    for (const auto& to : {kVictim, kXrc}) {
      if (to.qpn == kXrc.qpn && !extended) continue;
      auto script = conversation();
      if (row->response()) {
        const auto sends = to.qpn == kXrc.qpn ? send_by_xrc : send_from_a;
        script.step(sends, std::uint8_t{1}, std::uint16_t{3000}).step(sends, std::uint8_t{3}, std::uint16_t{8});
        for (std::uint32_t i = 0; i < 4; ++i)
          script.step(frame_to_a, kAll, frame_of(to_a, headers(opcode, kFirstPsn + i, 3000, kSomewhere), payload, to));
      } else {
        for (std::uint32_t i = 0; i < 3; ++i)
          script.step(frame_to_b, std::uint8_t(kAll | kCut),
                      frame_of(to_b, headers(opcode, kFirstPsn + i, 37, kSomewhere), payload, to));
      }
      all.push_back(script.step(pass_time, std::uint16_t{1000}));
    }
  }
  // Messages of several packets: complete, with a gap, with a duplicate, and in reverse order.
  const struct {
    Opcode parts[3];
    const QpNumbers& to;
  } kMessages[] = {{{Opcode::send_first, Opcode::send_middle, Opcode::send_last_inv}, kVictim},
                   {{Opcode::write_first, Opcode::write_middle, Opcode::write_last_imm}, kVictim},
                   {{Opcode::xrc_send_first, Opcode::xrc_send_middle, Opcode::xrc_send_last_imm}, kXrc},
                   {{Opcode::xrc_write_first, Opcode::xrc_write_middle, Opcode::xrc_write_last_imm}, kXrc}};
  for (const auto& message : kMessages)
    for (const auto& order : {std::array{0u, 1u, 2u}, std::array{0u, 2u, 1u}, std::array{0u, 0u, 1u}}) {
      auto script = conversation();
      for (const auto part : order) {
        const auto h = headers(message.parts[part], kFirstPsn + part, 2100, kSomewhere);
        script.step(frame_to_b, kAll, frame_of(to_b, h, part == 2 ? 52 : 1024, message.to));
      }
      all.push_back(script.step(pass_time, std::uint16_t{100}));
    }
  // SRQs of another domain, of no domain, and a missing SRQ; and an SRQ number that changes within a message.
  for (const std::uint32_t srqn : {kStrangeSrqn, kOrdinarySrqn, 0x123456u, 0xffffffu}) {
    auto script = conversation();
    for (std::uint32_t part = 0; part < 2; ++part) {
      auto h = headers(part == 0 ? Opcode::xrc_send_first : Opcode::xrc_send_last, kFirstPsn + part, 0, 0);
      if (part == 1 || srqn == kStrangeSrqn) h.xrc_srqn = srqn;
      script.step(frame_to_b, kAll, frame_of(to_b, h, part == 0 ? 1024 : 52, kXrc));
    }
    all.push_back(script.step(pass_time, std::uint16_t{100}));
  }
  // Regions of each kind at both ends, while pages are invalidated and brought in.
  for (std::uint8_t where = 0; where < 36; ++where) {
    auto script = conversation();
    for (std::uint8_t i = 0; i < 4; ++i) {
      script.step(receive_at_b, std::uint16_t{5000}, std::uint8_t(where % 3));
      script.step(send_from_a, std::uint8_t(i % 4), std::uint16_t{2500}, where)
          .step(send_by_xrc, std::uint8_t(i % 3), std::uint16_t{2500}, where)
          .step(page_of_a, std::uint8_t(i * 0x11))
          .step(page_of_b, std::uint8_t(i * 0x10 + 1))
          .step(pass_time, std::uint16_t{300})
          .step(page_of_b, i);
    }
    all.push_back(script.step(pass_time, std::uint16_t{1000}));
  }
  // Messages to the unreliable QPs: complete, with a gap, and with opcodes of the other transport.
  for (const auto& to : {kUc, kUd})
    for (const auto& message : {std::array{Opcode::uc_send_first, Opcode::uc_send_middle, Opcode::uc_send_last_imm},
                                std::array{Opcode::uc_write_first, Opcode::uc_write_middle, Opcode::uc_write_last},
                                std::array{Opcode::ud_send_only, Opcode::ud_send_only_imm, Opcode::ud_send_only}})
      for (const auto& order : {std::array{0u, 1u, 2u}, std::array{0u, 2u, 1u}, std::array{0u, 0u, 1u}}) {
        Script script;
        for (std::uint8_t i = 0; i < 8; ++i) script.step(unreliable_receive, i, std::uint16_t{5000});
        for (const auto part : order) {
          const auto h = headers(message[part], kFirstPsn + part, 2100, kSomewhere);
          script.step(frame_to_b, kAll, frame_of(to_b, h, part == 2 ? 52 : 1024, to));
        }
        all.push_back(script.step(pass_time, std::uint16_t{100}));
      }
  // Outstanding sends, and for them ACKs, NAKs of each kind and RNR NAKs.
  for (const std::uint8_t syndrome : {0x00, 0x1f, 0x20, 0x21, 0x3f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f}) {
    Script script;
    for (std::uint8_t opcode = 0; opcode < 5; ++opcode) script.step(send_from_a, opcode, std::uint16_t{2500});
    script.step(pass_time, std::uint16_t{50});
    auto h = headers(Opcode::acknowledge, kFirstPsn + 2, 0, 0);
    h.aeth = roce::Aeth{syndrome, 1};
    script.step(frame_to_a, kAll, frame_of(to_a, h, 0)).step(pass_time, std::uint16_t{500});
    all.push_back(script);
  }
  auto ipv6 = to_b;
  ipv6.source[0] = ipv6.destination[0] = 0xfd;
  all.push_back(
      Script().step(frame_to_b, kAll, frame_of(ipv6, headers(Opcode::write_only, kFirstPsn, 64, kSomewhere), 64)));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  auto& stage = Stage::fresh();
  Conversation conversation(stage);
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 100; ++steps) conversation.take(input.take_step());
  conversation.finish();
  stage.check();
  return 0;
}
