// SPDX-License-Identifier: Apache-2.0
// Work requests of a hostile program: arbitrary bytes in its rings and doorbell records, arbitrary doorbells.
#include "model/nic/engine/wqe.h"
#include "model/nic/personality/personality.h"
#include "tests/soak/fuzz/raw_qp.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t {
  into_send_ring,
  into_receive_ring,
  send_doorbell,
  blueflame,
  other_doorbell,
  into_record,
  post,
  pass_time,
  page,
  into_shared_ring,  // at b, for both ends
  into_shared_record,
  kinds
};
// Offset of a kind: the step is for the other end, or for the XRC sender.
constexpr std::uint8_t at_b = kinds, by_xrc = 2 * kinds;

constexpr std::uint64_t kSendBytes = std::uint64_t{abi::kSendBlock} << RawQp::kLogBlocks;
constexpr std::uint64_t kReceiveBytes = std::uint64_t{1} << (RawQp::kLogReceives + RawQp::kLogStride);
constexpr std::uint64_t kSharedBytes = std::uint64_t{nic::test::SharedRing::kEntries}
                                       << nic::test::SharedRing::kLogStride;
constexpr std::uint32_t kMostMessage = 1u << 30;

void check_parsed(std::span<const std::uint8_t> raw) {
  const auto bytes = std::as_bytes(raw);
  if (bytes.size() < sizeof(abi::ControlSegment)) return;
  const auto blocks = nic::rnic_personality().send_blocks(bytes);
  require(!blocks || (*blocks >= 1 && *blocks <= abi::kMaxWqeBlocks), "a WQE of an impossible size");
  abi::ControlSegment control;
  std::memcpy(static_cast<void*>(&control), bytes.data(), sizeof control);
  const auto part = bytes.first(std::min<std::size_t>(bytes.size(), abi::kMaxWqeBlocks * abi::kSendBlock));
  nic::SendWqe wqe;
  roce::SendRequest request;
  nic::rnic_personality().decode_send(part, {control.qpn_flags >> 8}, control.wqe_index, {.max_message = kMostMessage},
                                      wqe, request);
  if (!request.refused) {
    require(request.length <= kMostMessage, "a message is too long");
    std::uint64_t total = wqe.inline_data ? wqe.inline_data->size() : 0;
    for (const auto& region : wqe.regions) total += region.length;
    require(total == request.length, "a message is not as long as its segments");
    for (const std::uint64_t offset : {std::uint64_t{0}, total / 2, total}) {
      std::uint64_t sliced = 0;
      for (const auto& region : nic::slice(wqe.regions, offset, 4096)) sliced += region.length;
      require(wqe.inline_data || sliced == std::min<std::uint64_t>(4096, total - offset), "a slice of another length");
    }
  }
  const auto receive = nic::rnic_personality().decode_receive(part, 0);
  std::uint64_t total = 0;
  for (const auto& region : receive.regions) total += region.length;
  require(total == receive.bytes, "a receive is not as long as its segments");
}

// All events of a node's event queue so far.
class Events {
 public:
  explicit Events(Node& node) : node_(node) {}
  // True: an event has reported a CQ error, or a fatal error of the QP.
  bool tell_of_the_end(std::uint32_t qpn) {
    while (const auto eqe = node_.poll_eq(0)) told_.push_back(*eqe);
    return std::ranges::any_of(told_, [qpn](const abi::Eqe& eqe) {
      return eqe.type == abi::EventType::cq_error || (eqe.type == abi::EventType::qp_fatal && eqe.number == qpn);
    });
  }

 private:
  Node& node_;
  std::vector<abi::Eqe> told_;
};

// One end of the victims' connection, or the XRC sender: a program that writes anything to its own memory.
class Program {
 public:
  Program(Stage& stage, Node& node, RawQp& qp, Events& events)
      : stage_(stage), node_(node), qp_(qp), events_(events), receives_(&qp != &stage.xrc_at_a()) {}

  void take(std::uint8_t kind, Input body) {
    switch (kind) {
      case into_send_ring: return write(qp_.send_ring, kSendBytes, body);
      case into_receive_ring: return write(qp_.receive_ring, kReceiveBytes, body);
      case into_shared_ring: return write_at_b(stage_.shared_at_b().ring, kSharedBytes, body);
      case into_shared_record: return write_at_b(stage_.shared_at_b().record, sizeof(abi::QpDoorbellRecord), body);
      case page: return stage_.pages_of(node_).change(body.take<std::uint8_t>());
      case send_doorbell: return qp_.ring(body.take<std::uint32_t>());
      case blueflame: {
        const auto offset = body.take<std::uint16_t>();
        const auto data = body.take_span(512);
        node_.host.mmio(uar() + offset % abi::kUarPageSize, std::as_bytes(data));
        return;
      }
      case other_doorbell: {
        const auto offset = body.take<std::uint8_t>() % 6 * 8u;
        return qp_.write_uar(offset, __builtin_bswap64(body.take<std::uint64_t>()));
      }
      case into_record: return write(qp_.record, sizeof(abi::QpDoorbellRecord), body);
      case post: return append(body);
      default: return sc_core::sc_start((body.take<std::uint16_t>() + 1) * 10.0, sc_core::SC_NS);
    }
  }

  // All posted work is processed: afterwards a valid WQE completes, and receives do, or an event has reported the
  // failure of the QP.
  void finish() {
    drain();
    const auto before = qp_.query();
    if (has_ended()) return;
    require(before.send_consumer == before.send_next, "a send WQE has no end");
    // The producer is set behind all WQEs that the device knows: to the device's consumer.
    qp_.producer = static_cast<std::uint16_t>(before.send_consumer);
    qp_.post_send({.opcode = abi::SendOpcode::nop});
    Stage::settle();
    bool completed = false;
    while (const auto cqe = qp_.poll(0)) completed |= cqe->wqe_counter == std::uint16_t(qp_.producer - 1);
    if (has_ended()) return;
    require(completed, "a good WQE behind bad ones does not complete");
    if (!receives_ || qp_.query().state != abi::QpState::error) return;
    const auto after = qp_.query();
    abi::QpDoorbellRecord record = node_.host.get<abi::QpDoorbellRecord>(qp_.record);
    const auto left = static_cast<std::uint16_t>(record.receive_producer - after.receive_consumer);
    require(left == 0 || left > 1u << RawQp::kLogReceives, "a receive WQE of a QP in the error state is not flushed");
  }
  void drain() {
    while (qp_.poll(0)) {}
    while (qp_.poll(1)) {}
  }

 private:
  std::uint64_t uar() const { return abi::kUarBase + std::uint64_t{qp_.numbers().uar_page} * abi::kUarPageSize; }
  bool has_ended() { return events_.tell_of_the_end(qp_.numbers().qpn); }
  void write(std::uint64_t base, std::uint64_t bytes, Input& body) { write_at(node_, base, bytes, body); }
  void write_at_b(std::uint64_t base, std::uint64_t bytes, Input& body) { write_at(stage_.b(), base, bytes, body); }
  static void write_at(Node& node, std::uint64_t base, std::uint64_t bytes, Input& body) {
    const auto at = body.take<std::uint16_t>() % bytes;
    const auto data = body.take_span(bytes - at);
    std::memcpy(node.host.at(base + at), data.data(), data.size());
    check_parsed(data);
  }
  // Writes a WQE with the right index to the next place; the WQE states its own length.
  void append(Input& body) {
    const auto how = body.take<std::uint8_t>();
    auto data = body.take_span(abi::kMaxWqeBlocks * abi::kSendBlock);
    if (data.size() < sizeof(abi::ControlSegment)) return;
    Bytes bytes(data.begin(), data.end());
    bytes.resize((bytes.size() + abi::kSendBlock - 1) / abi::kSendBlock * abi::kSendBlock);
    if ((how & 1) == 0) {
      const abi::Be16 index = qp_.producer;
      std::memcpy(bytes.data() + offsetof(abi::ControlSegment, wqe_index), &index, sizeof index);
      const abi::Be32 qpn = qp_.numbers().qpn << 8 | bytes[offsetof(abi::ControlSegment, qpn_flags) + 3];
      std::memcpy(bytes.data() + offsetof(abi::ControlSegment, qpn_flags), &qpn, sizeof qpn);
    }
    check_parsed(bytes);
    for (std::size_t at = 0; at < bytes.size(); at += abi::kSendBlock, ++qp_.producer)
      std::memcpy(node_.host.at(qp_.send_ring + abi::kSendBlock * (qp_.producer % (1u << RawQp::kLogBlocks))),
                  bytes.data() + at, abi::kSendBlock);
    qp_.write_record();
    if ((how & 2) != 0 && bytes.size() <= abi::uar::kBlueFlameBytes)
      node_.host.mmio(uar() + abi::uar::kBlueFlame0, std::as_bytes(std::span(bytes)));
    else
      qp_.ring(qp_.producer);
  }

  Stage& stage_;
  Node& node_;
  RawQp& qp_;
  Events& events_;
  const bool receives_;
};

// --- Seeds.

constexpr std::uint64_t kSomewhere = nic::test::kMemoryBase + (1 << 17);

std::uint64_t in_region(std::uint32_t key) { return key == kDeviceKey || key == kPagedKey ? 64 : kSomewhere; }

struct WqeBuilder {
  Bytes bytes = Bytes(sizeof(abi::ControlSegment));
  template <class Segment>
  WqeBuilder& add(const Segment& segment) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(&segment);
    bytes.insert(bytes.end(), from, from + sizeof segment);
    return *this;
  }
  WqeBuilder& remote(std::uint32_t key = kVictim.key) {
    abi::RemoteAddressSegment segment;
    segment.address = in_region(key);
    segment.rkey = key;
    return add(segment);
  }
  WqeBuilder& data(std::uint32_t bytes_of_it, std::uint32_t key = kVictim.key) {
    abi::DataSegment segment;
    segment.byte_count = bytes_of_it;
    segment.lkey = key;
    segment.address = in_region(key);
    return add(segment);
  }
  // The XRC segment; it comes first.
  WqeBuilder& shared_queue(std::uint32_t srqn) {
    abi::XrcSegment segment;
    segment.srqn = srqn;
    return add(segment);
  }
  WqeBuilder& inlined(std::uint32_t count) {
    const abi::Be32 header = abi::InlineHeader::kInline | count;
    add(header);
    bytes.resize(bytes.size() + (count + 4 + 15) / 16 * 16 - 4, 0x5a);
    return *this;
  }
  Bytes as(abi::SendOpcode opcode, std::uint32_t flags = abi::ControlSegment::kSignaled) {
    abi::ControlSegment control;
    control.opcode = opcode;
    control.segments = static_cast<std::uint8_t>(bytes.size() / 16);
    control.qpn_flags = kVictim.qpn << 8 | flags;
    control.immediate = kVictim.key;
    std::memcpy(bytes.data(), &control, sizeof control);
    return bytes;
  }
};

// `begin`: a WQE with the segments that precede all others.
std::vector<Bytes> some_wqes(const WqeBuilder& begin = {}) {
  using enum abi::SendOpcode;
  std::vector<Bytes> all;
  const auto remote = [&](std::uint32_t key = kVictim.key) { return WqeBuilder(begin).remote(key); };
  for (const auto opcode : {nop, local_inv}) all.push_back(WqeBuilder(begin).as(opcode));
  for (const auto opcode : {send, send_with_imm, send_with_inv}) {
    all.push_back(WqeBuilder(begin).data(100).data(3000).as(opcode));
    all.push_back(WqeBuilder(begin).inlined(100).as(opcode, 7));
  }
  for (const auto opcode : {write, write_with_imm, read}) {
    all.push_back(remote().data(5000).data(0).data(1).as(opcode));
    all.push_back(remote().data(64, 1).as(opcode));
  }
  all.push_back(remote().inlined(10).inlined(33).as(write));
  for (const auto opcode : {compare_swap, fetch_add})
    all.push_back(remote().add(abi::AtomicSegment{}).data(8).as(opcode));
  // Device memory and on-demand pages, at either end and together.
  for (const auto key : {kDeviceKey, kPagedKey}) {
    all.push_back(WqeBuilder(begin).data(3000, key).data(100).data(5000, kPagedKey).as(send));
    for (const auto opcode : {write, read}) {
      all.push_back(remote(key).data(5000, key).as(opcode));
      all.push_back(remote(key).data(2000).data(2000, kPagedKey).data(2000, kDeviceKey).as(opcode));
    }
    all.push_back(remote(key).add(abi::AtomicSegment{}).data(8, key).as(fetch_add));
  }
  auto many = remote();
  for (int i = 0; i < 30; ++i) many.data(17);
  all.push_back(many.as(write));
  return all;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto receives = [](Script& script, std::uint8_t side) {
    std::vector<abi::DataSegment> ring;
    for (int i = 0; i < 32; ++i) {
      abi::DataSegment entry[4];
      entry[0].byte_count = entry[1].byte_count = 2000;
      entry[0].lkey = entry[1].lkey = kVictim.key;
      entry[0].address = entry[1].address = kSomewhere + 65536;
      entry[2].lkey = abi::kInvalidLkey;
      ring.insert(ring.end(), std::begin(entry), std::end(entry));
    }
    abi::QpDoorbellRecord record;
    record.receive_producer = 16;
    script.step(std::uint8_t(side + into_receive_ring), std::uint16_t{0}, ring)
        .step(std::uint8_t(side + into_record), std::uint16_t{0}, record);
  };
  Script everything;
  receives(everything, at_b);
  for (std::uint8_t how = 0; how < 4; ++how)
    for (const auto& wqe : some_wqes()) {
      Script script;
      receives(script, at_b);
      script.step(post, how, wqe).step(post, std::uint8_t{0}, some_wqes().back()).step(pass_time, std::uint16_t{200});
      all.push_back(script);
      if (how == 0) everything.step(post, how, wqe);
    }
  all.push_back(everything);
  // XRC: its receives, and links that point to themselves or out of the ring.
  for (const std::uint32_t srqn : {kSrqn, kStrangeSrqn, kOrdinarySrqn, 0x123456u})
    for (const std::uint16_t next : {1, 0, 16, 0xffff}) {
      if (srqn != kSrqn && next != 1) continue;
      abi::SrqNextSegment link;
      link.next = next;
      abi::DataSegment data[3];
      data[0].byte_count = 5000;
      data[0].lkey = kPagedKey;
      data[1].lkey = abi::kInvalidLkey;
      abi::QpDoorbellRecord record;
      record.receive_producer = 8;
      for (const auto& wqe : some_wqes(WqeBuilder().shared_queue(srqn)))
        all.push_back(Script()
                          .step(into_shared_ring, std::uint16_t{0}, link, data)
                          .step(into_shared_record, std::uint16_t{0}, record)
                          .step(std::uint8_t(by_xrc + post), std::uint8_t{0}, wqe)
                          .step(std::uint8_t(at_b + page), std::uint8_t(next))
                          .step(std::uint8_t(by_xrc + post), std::uint8_t{0}, wqe)
                          .step(pass_time, std::uint16_t{200}));
    }
  // Pages that are invalidated, read-only or removed while they are used.
  for (const std::uint8_t becomes : {0x00, 0x10, 0x20})
    for (const std::uint8_t side : {std::uint8_t{0}, at_b}) {
      Script script;
      receives(script, at_b);
      for (const auto& wqe : some_wqes())
        script.step(post, std::uint8_t{0}, wqe)
            .step(pass_time, std::uint16_t{30})
            .step(std::uint8_t(side + page), becomes)
            .step(std::uint8_t(side + page), std::uint8_t(becomes + 1));
      all.push_back(script);
    }
  // The same during DMA: all pages are present, and change at various times.
  for (const auto opcode : {abi::SendOpcode::write, abi::SendOpcode::read})
    for (std::uint16_t moment = 10; moment < 200; moment += 10) {
      const Bytes wqe = WqeBuilder().remote(kPagedKey).data(12'000, kPagedKey).as(opcode);
      Script script;
      script.step(post, std::uint8_t{0}, wqe).step(pass_time, std::uint16_t{6000});
      script.step(post, std::uint8_t{0}, wqe).step(pass_time, moment);
      for (std::uint8_t i = 0; i < 4; ++i) script.step(page, i).step(std::uint8_t(at_b + page), i);
      all.push_back(script);
    }
  Bytes ring;
  for (const auto& wqe : some_wqes()) {
    ring.insert(ring.end(), wqe.begin(), wqe.end());
    ring.resize((ring.size() + abi::kSendBlock - 1) / abi::kSendBlock * abi::kSendBlock);
  }
  for (const std::uint32_t producer : {1u, 17u, 64u, 65u, 0xffffu})
    all.push_back(Script()
                      .step(into_send_ring, std::uint16_t{0}, ring)
                      .step(send_doorbell, producer)
                      .step(pass_time, std::uint16_t{100}));
  for (std::uint8_t offset = 0; offset < 6; ++offset)
    all.push_back(
        Script().step(other_doorbell, offset, std::uint64_t{0x0200'0000'0100'0000}).step(pass_time, std::uint16_t{10}));
  all.push_back(Script().step(blueflame, std::uint16_t{abi::uar::kBlueFlame1}, some_wqes()[0], Bytes(48)));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  auto& stage = Stage::fresh();
  Events of_a(stage.a()), of_b(stage.b());
  Program programs[] = {{stage, stage.a(), stage.victim_a(), of_a},
                        {stage, stage.b(), stage.victim_b(), of_b},
                        {stage, stage.a(), stage.xrc_at_a(), of_a}};
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 200; ++steps) {
    const auto step = input.take_step();
    programs[step.kind / kinds % std::size(programs)].take(step.kind % kinds, Input(step.body));
  }
  Stage::settle();
  for (auto& program : programs) program.finish();
  stage.check();
  return 0;
}
