// SPDX-License-Identifier: Apache-2.0
// Captures for the replay: arbitrary files, and arbitrary frames with a valid ICRC, replayed against the engine.
#include "model/cm/messages.h"
#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/config/config_error.h"
#include "sim/replay/replay.h"
#include "sim/replay/report.h"
#include "tests/soak/fuzz/memory_file.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::fuzz {
namespace {

using roce::Opcode;
using sim::replay::CapturedFrame;
using sim::replay::test::Wire;

constexpr Duration kFrameTime{5'000'000'000};

enum Step : std::uint8_t { file, frame, sealed_frame, cut_frame, kinds };

void replay(const std::vector<CapturedFrame>& frames, std::uint8_t host) {
  const auto engine_owner = nic::make_model_engine(nic::QpLimits{});
  auto& engine = *engine_owner;
  const auto result = sim::replay::replay_frames(frames, Wire::address(host), engine);
  require(result.capture.frames == frames.size(), "frames of a capture are lost");
  require(!sim::replay::report_text(result).empty(), "a replay without a report");
}

void take(const Input::Step& step, std::vector<CapturedFrame>& frames) {
  if (step.kind % kinds == file) {
    for (auto& one : sim::replay::read_capture(MemoryFile(step.body).path())) frames.push_back(std::move(one));
    return;
  }
  const auto bytes = std::as_bytes(step.body);
  CapturedFrame one{static_cast<std::uint32_t>(frames.size() + 1),
                    static_cast<std::uint32_t>(bytes.size()),
                    {bytes.begin(), bytes.end()},
                    kFrameTime * static_cast<std::int64_t>(frames.size())};
  if (step.kind % kinds == cut_frame) ++one.length;
  if (step.kind % kinds == sealed_frame && roce::parse_frame(bytes, bytes.size()).error == roce::ParseError::none)
    sim::replay::test::seal(one);
  frames.push_back(std::move(one));
}

Bytes pcap_of(const std::vector<CapturedFrame>& frames) {
  Bytes out;
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  for (const std::uint32_t word : {0xa1b2c3d4u, 0x00040002u, 0u, 0u, 65535u, 1u}) put(word);
  for (const auto& one : frames) {
    put(one.number), put(0), put(static_cast<std::uint32_t>(one.bytes.size())), put(one.length);
    for (const auto byte : one.bytes) out.push_back(std::to_integer<std::uint8_t>(byte));
  }
  return out;
}

// A pcapng file (little-endian) of a section header, an interface and packets.
Bytes pcapng_of(const std::vector<CapturedFrame>& frames) {
  Bytes out;
  const auto block = [&](std::uint32_t type, Bytes body) {
    body.resize((body.size() + 3) / 4 * 4);
    const auto put = [&](std::uint32_t value) {
      for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    };
    put(type), put(static_cast<std::uint32_t>(body.size() + 12));
    out.insert(out.end(), body.begin(), body.end());
    put(static_cast<std::uint32_t>(body.size() + 12));
  };
  block(0x0a0d0d0a, {0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  block(1, {1, 0, 0, 0, 0, 0, 4, 0});
  for (const auto& one : frames) {
    Bytes body(20);
    const auto size = static_cast<std::uint32_t>(one.bytes.size());
    std::memcpy(body.data() + 12, &size, 4);
    std::memcpy(body.data() + 16, &one.length, 4);
    for (const auto byte : one.bytes) body.push_back(std::to_integer<std::uint8_t>(byte));
    block(6, body);
  }
  return out;
}

Wire conversation() {
  Wire wire;
  const auto with_reth = [](Opcode opcode, std::uint32_t psn, std::uint32_t length) {
    auto headers = Wire::headers(opcode, psn);
    headers.reth = roce::Reth{0x1000, {0x1234}, length};
    return headers;
  };
  wire.request(Wire::headers(Opcode::send_only, 100), 64);
  wire.answer(Opcode::acknowledge, 100, 0x1f, 1);
  wire.request(with_reth(Opcode::write_first, 101, 1500), 1024);
  auto last = Wire::headers(Opcode::write_last_imm, 102);
  last.immediate = 7;
  wire.request(last, 476);
  wire.answer(Opcode::acknowledge, 102, 0x1f, 2);
  wire.request(with_reth(Opcode::read_request, 103, 100));
  auto response = Wire::headers(Opcode::read_response_only, 103, false);
  response.aeth = roce::Aeth{0x1f, 3};
  wire.answer(response, Wire::pattern(100));
  auto atomic = Wire::headers(Opcode::fetch_add, 104);
  atomic.atomic = roce::AtomicEth{0x1000, {0x1234}, 1, 0};
  wire.request(atomic);
  auto original = Wire::headers(Opcode::atomic_acknowledge, 104, false);
  original.aeth = roce::Aeth{0x1f, 4};
  original.atomic_ack = 9;
  wire.answer(original);
  wire.request(Wire::headers(Opcode::send_only, 106), 10);
  wire.answer(Opcode::acknowledge, 105, 0x60, 4);
  wire.request(Wire::headers(Opcode::send_only, 105), 10);
  wire.answer(Opcode::acknowledge, 105, 0x21, 4);
  return wire;
}

// A requester with retransmissions: after an RNR NAK, a sequence NAK, a missing answer, and no answer at all.
Wire retries() {
  Wire wire;
  const auto read = [](std::uint32_t psn, std::uint32_t length) {
    auto headers = Wire::headers(Opcode::read_request, psn);
    headers.reth = roce::Reth{0x1000, {0x1234}, length};
    return headers;
  };
  const auto response = [&](Opcode opcode, std::uint32_t psn, std::uint32_t bytes) {
    auto headers = Wire::headers(opcode, psn, false);
    if (roce::info(opcode).has(roce::header::kAeth)) headers.aeth = roce::Aeth{0x1f, 2};
    wire.answer_to_own(headers, Wire::pattern(bytes));
  };
  for (int round = 0; round < 3; ++round) {
    wire.own_request(Wire::headers(Opcode::send_only, 100), 64);
    wire.own_request(Wire::headers(Opcode::send_only, 101), 64);
    wire.answer_to_own(Opcode::acknowledge, 100, 0x21, 0);
    wire.answer_to_own(Opcode::acknowledge, 100, 0x60, 0);
  }
  wire.own_request(Wire::headers(Opcode::send_only, 100), 64);
  wire.answer_to_own(Opcode::acknowledge, 101, 0x60, 1);
  wire.own_request(Wire::headers(Opcode::send_only, 101), 64);
  wire.own_request(read(102, 3000));
  response(Opcode::read_response_first, 102, 1024);
  response(Opcode::read_response_last, 104, 952);
  wire.own_request(read(103, 1976));
  response(Opcode::read_response_middle, 103, 1024);
  response(Opcode::read_response_last, 104, 952);
  for (int round = 0; round < 3; ++round) wire.own_request(Wire::headers(Opcode::send_only, 105), 8);
  return wire;
}

// Packets without answers; some are lost, have another key, or go to a group.
Wire datagrams() {
  Wire wire;
  const auto uc = [&](Opcode opcode, std::uint32_t psn, std::uint32_t bytes) {
    auto headers = Wire::headers(opcode, psn, false);
    if (roce::info(opcode).has(roce::header::kReth)) headers.reth = roce::Reth{0x1000, {0x1234}, 1500};
    psn % 2 == 0 ? wire.request(headers, bytes) : wire.own_request(headers, bytes);
  };
  uc(Opcode::uc_send_first, 10, 1024);
  uc(Opcode::uc_send_only, 11, 8);
  uc(Opcode::uc_send_only, 12, 8);
  uc(Opcode::uc_write_first, 13, 1024);
  wire.datagram(1, 7, 0x11, 20);
  wire.datagram(2, 7, 0x80000022, 30);
  wire.datagram(3, 0xffffff, 0x11, 40);
  auto& group = wire.frames.back();
  constexpr std::size_t kDestinationAt = 14 + 16, kIpAt = 14, kChecksumAt = 10;
  group.bytes[kDestinationAt] = std::byte{239};
  // The IP header's checksum is lowered by the increase of the address.
  auto sum = static_cast<unsigned>(group.bytes[kIpAt + kChecksumAt]) << 8 |
             static_cast<unsigned>(group.bytes[kIpAt + kChecksumAt + 1]);
  constexpr unsigned kRise = (239 - 10) << 8;
  sum = sum >= kRise ? sum - kRise : sum + 0xffff - kRise;
  group.bytes[kIpAt + kChecksumAt] = std::byte(sum >> 8);
  group.bytes[kIpAt + kChecksumAt + 1] = std::byte(sum);
  sim::replay::test::seal(group);
  return wire;
}

// Connections and a service with all their messages; some messages come twice, or name no connection.
Wire management() {
  Wire wire;
  const auto say = [&](bool own, std::uint64_t transaction, const cm::Message& message) {
    wire.management(own, cm::encode({transaction, message}));
  };
  for (const bool own : {false, true}) {
    cm::ConnectRequest request{.local_id = 1, .service_id = 5, .local_qpn = 7, .local_response_timeout = 10};
    request.max_cm_retries = 3;
    request.primary.local_gid = Wire::address(own ? 1 : 2);
    request.primary.remote_gid = Wire::address(own ? 2 : 1);
    say(own, 9, request);
    say(!own, 9, cm::MessageReceiptAck{.local_id = 2, .remote_id = 1, .service_timeout = 20});
    say(own, 9, request);
    say(!own, 9, cm::ConnectReply{.local_id = 2, .remote_id = 1, .local_qpn = 8});
    say(own, 9, cm::ReadyToUse{.local_id = 1, .remote_id = 2});
    say(own, 9, cm::LoadAlternatePath{.local_id = 1, .remote_id = 2});
    say(!own, 9, cm::AlternatePathResponse{.local_id = 2, .remote_id = 1, .status = 2});
    say(own, 9, cm::DisconnectRequest{.local_id = 1, .remote_id = 2, .remote_qpn = 8});
    say(!own, 9, cm::DisconnectReply{.local_id = 2, .remote_id = 1});
    request.local_id = 3;
    say(own, 10, request);
    say(!own, 10, cm::ConnectReject{.remote_id = 3, .reason = cm::RejectReason::invalid_service_id});
    say(own, 11, cm::ServiceIdRequest{.request_id = 4, .service_id = 5});
    say(!own, 11, cm::ServiceIdReply{.request_id = 4, .qpn = 9, .service_id = 5, .qkey = 6});
  }
  return wire;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const auto& wire : {conversation(), retries(), datagrams(), management()}) {
    const auto& frames = wire.frames;
    all.push_back(Script().step(file, pcap_of(frames)));
    all.push_back(Script().step(file, pcapng_of(frames)));
    for (const auto kind : {frame, sealed_frame}) {
      Script script;
      for (const auto& one : frames) script.step(kind, one.bytes);
      all.push_back(script);
      all.push_back(Script(script).step(cut_frame, frames[0].bytes));
    }
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  Input input(data, size);
  std::vector<CapturedFrame> frames;
  for (const auto host : {sim::replay::test::kNic, sim::replay::test::kPeer}) {
    try {
      for (int steps = 0; !input.empty() && steps < 100; ++steps) take(input.take_step(), frames);
      replay(frames, host);
    } catch (const sim::ConfigError& error) {
      require(*error.what() != 0, "a refusal without a message");
    }
  }
  return 0;
}
