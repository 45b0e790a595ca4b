// SPDX-License-Identifier: Apache-2.0
// Raw frames of a hostile peer, and headers of a hostile program: first given directly to the functions that read and
// rewrite them, then sent through two NICs with flows of each kind. Afterwards a valid frame must still arrive.
#include <memory>

#include "model/nic/packets/frame_checksums.h"
#include "model/nic/packets/frame_headers.h"
#include "model/nic/packets/receive/receive_scaling.h"
#include "model/nic/packets/segmentation.h"
#include "tests/soak/fuzz/fuzz.h"
#include "tests/unit/nic/frames/raw_frames.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::fuzz {
namespace {

using nic::test::FrameBytes;
using nic::test::Node;
using namespace rnicsim::literals;

enum Step : std::uint8_t { frame_to_b, receive_at_b, segments_from_a, pass_time, kinds };

constexpr std::uint32_t kRss = 0x21, kReceiveAt = 65536, kLeastReceive = 128;
constexpr int kReceives = 30;  // receives in the ring of 32
constexpr std::uint16_t kGoodPort = 0x4242;

FrameBytes good_frame() {
  return nic::test::ethernet(0x0800, nic::test::ipv4(17, 1, 2, nic::test::udp(7, kGoodPort, FrameBytes(64))));
}

void alone(std::span<const std::uint8_t> given) {
  FrameBytes frame(given.size());
  std::ranges::transform(given, frame.begin(), [](std::uint8_t byte) { return std::byte(byte); });
  const nic::FrameHeaders headers(frame);
  for (const bool inner : {false, true})
    for (unsigned i = 0; i < nic::kFlowHeaders; ++i) headers.find(nic::FlowHeader(i), inner);
  nic::rss_hash({.fields = nic::rss_field::kAll, .key = {}, .queues = {}}, headers);
  nic::checksums_right(frame);
  nic::adapt_headers(frame, 70000, 3, false);
  nic::fill_checksums(frame);
  auto again = frame;
  nic::fill_checksums(again);
  require(again == frame, "checksums are not what they are");
}

class Stage {
 public:
  Stage() : cable_(nic::NicParams{}) {
    for (auto* node : {&cable_.a, &cable_.b}) make_raw(*node);
    rss();
    // Flow rules: for the valid frame, a default, a sniffer, and one for headers within a tunnel.
    flow(1, abi::FlowKind::normal, nic::test::kQpn, abi::FlowHeader::udp, 0);
    flow(2, abi::FlowKind::all_default, kRss, abi::FlowHeader::ethernet, 0);
    flow(3, abi::FlowKind::sniffer, nic::test::kQpn, abi::FlowHeader::ethernet, 0);
    flow(4, abi::FlowKind::normal, kRss, abi::FlowHeader::tcp, 1);
  }

  void take(const Input::Step& step) {
    Input body(step.body);
    switch (step.kind % kinds) {
      case frame_to_b:
        alone(step.body);
        return cable_.b.nic.receive(Frame::of(Payload::copy_of(std::as_bytes(step.body))));
      case receive_at_b: return post_receive(body.take<std::uint16_t>());
      case segments_from_a: return send_segments(body);
      case pass_time: return pass(1 + body.take<std::uint8_t>());
    }
  }

  void check() {
    // Frames without receive are dropped one after the other, each after one more fetch of the ring.
    pass(3000);
    cable_.b.post_receive(cable_.b.buffer + kReceiveAt, kLeastReceive);
    pass(5);
    while (cable_.b.poll(nic::test::kReceiveCqn)) {
      // completions of earlier frames
    }
    const auto frame = good_frame();
    cable_.b.nic.receive(Frame::of(Payload::copy_of(frame)));
    const auto cqe = cable_.b.wait(nic::test::kReceiveCqn);
    require(cqe.has_value() && cqe->byte_count >= frame.size(), "a good frame does not arrive any more");
  }

 private:
  static void must(Node& node, const auto& mailbox) {
    require(node.command(mailbox) == abi::CommandStatus::ok, "a command is refused");
  }

  static void make_raw(Node& node) {
    require(node.destroy_qp() == abi::CommandStatus::ok, "no QP to destroy");
    const auto raw = [](abi::Qpc& c) {
      c.transport = abi::Transport::raw;
      c.flags |= abi::Qpc::kStripVlan | abi::Qpc::kScatterFcs;
    };
    require(node.create_qp_anew(raw) == abi::CommandStatus::ok, "no raw QP");
    abi::Qpc port;
    port.port = 1;
    node.modify(abi::QpState::init, abi::qp_attr::kPort, port);
    node.modify(abi::QpState::rtr, 0);
    node.modify(abi::QpState::rts, 0);
  }

  void rss() {
    abi::CreateRss rss;
    rss.header.opcode = std::uint16_t(abi::CommandOpcode::create_rss);
    rss.header.object = kRss;
    rss.fields = nic::rss_field::kAll;
    rss.log_queues = 1;
    rss.queues[0] = rss.queues[1] = nic::test::kQpn;
    must(cable_.b, rss);
  }

  void flow(std::uint32_t number, abi::FlowKind kind, std::uint32_t to, abi::FlowHeader header, std::uint8_t inner) {
    abi::CreateFlow flow;
    flow.header.opcode = std::uint16_t(abi::CommandOpcode::create_flow);
    flow.header.object = number;
    flow.kind = kind;
    flow.qpn = to;
    if (kind == abi::FlowKind::normal) {
      flow.conditions_count = 1;
      flow.conditions[0].header = header;
      flow.conditions[0].inner = inner;
      flow.conditions[0].value[0] = flow.conditions[0].value[1] = kGoodPort & 0xff;
      flow.conditions[0].mask[0] = flow.conditions[0].mask[1] = 0xff;
    }
    must(cable_.b, flow);
  }

  // Receives complete in order, so no receive may be too short for the valid frame.
  void post_receive(std::uint32_t bytes) {
    if (posted_receives_++ < kReceives)
      cable_.b.post_receive(cable_.b.buffer + kReceiveAt, kLeastReceive + bytes % 2048);
  }

  void send_segments(Input& body) {
    abi::TsoSegment tso;
    // An MSS of 0 is refused; very small values would only take long.
    const auto mss = body.take<std::uint16_t>();
    tso.mss = mss == 0 ? mss : std::max(mss, std::uint16_t{64});
    const auto length = body.take<std::uint16_t>();
    const auto headers = body.take_span(256);
    tso.header_bytes = static_cast<std::uint16_t>(headers.size());
    abi::DataSegment data;
    data.byte_count = length;
    data.lkey = nic::test::kKey;
    data.address = cable_.a.buffer;
    std::vector<std::byte> wqe(sizeof(abi::ControlSegment));
    const auto put = [&wqe](const void* from, std::size_t bytes) {
      const auto at = wqe.size();
      wqe.resize(at + (bytes + 15) / 16 * 16);
      if (bytes != 0) std::memcpy(wqe.data() + at, from, bytes);
    };
    put(&tso, sizeof tso);
    put(headers.data(), headers.size());
    put(&data, sizeof data);
    abi::ControlSegment control;
    control.opcode = abi::SendOpcode::tso;
    control.wqe_index = posted_;
    control.segments = static_cast<std::uint8_t>(wqe.size() / 16);
    control.qpn_flags = nic::test::kQpn << 8 | abi::ControlSegment::kChecksums;
    std::memcpy(wqe.data(), &control, sizeof control);
    wqe.resize((wqe.size() + 63) / 64 * 64);
    posted_ = static_cast<std::uint16_t>(posted_ + wqe.size() / 64);
    cable_.a.post_raw(wqe, false);
    pass(50);
  }

  static void pass(double us) { sc_core::sc_start(us, sc_core::SC_US); }

  nic::test::Cable cable_;
  std::uint16_t posted_ = 0;
  int posted_receives_ = 0;
};

std::vector<FrameBytes> frames() {
  using namespace nic::test;
  constexpr Ipv6Address kNear{0x20, 1}, kFar{0x20, 2};
  const auto inner = ethernet(0x0800, ipv4(6, 7, 8, tcp(9, kGoodPort)));
  return {good_frame(),
          ethernet(0x8100, vlan(5, 0x88a8, vlan(6, 0x86dd, ipv6(17, kNear, kFar, udp(1, 2))))),
          ethernet(0x86dd,
                   ipv6(0, kNear, kFar, bytes({44, 0}) + FrameBytes(6) + bytes({6, 0}) + FrameBytes(6) + tcp(1, 2))),
          ethernet(0x0800, ipv4(17, 1, 2, udp(3, 4789, FrameBytes(8) + inner))),
          ethernet(0x0800, ipv4(47, 1, 2, word(0xb000) + word(0x6558) + FrameBytes(12) + inner)),
          ethernet(0x8847, word32(0x1040) + word32(0x1140) + ipv4(50, 1, 2, FrameBytes(16))),
          ethernet(0x0806, FrameBytes(46))};
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto as_bytes = [](const FrameBytes& frame) {
    Bytes bytes;
    for (const auto byte : frame) bytes.push_back(std::to_integer<std::uint8_t>(byte));
    return bytes;
  };
  for (const auto& frame : frames()) {
    Script script;
    script.step(receive_at_b, std::uint16_t{2000}).step(receive_at_b, std::uint16_t{60});
    script.step(frame_to_b, as_bytes(frame)).step(pass_time, std::uint8_t{5});
    script.step(segments_from_a, std::uint16_t{0x6400}, std::uint16_t{1000}, as_bytes(frame));
    all.push_back(script);
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  sc_core::sc_get_curr_simcontext()->reset();
  Stage stage;
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 50; ++steps) stage.take(input.take_step());
  stage.check();
  return 0;
}
