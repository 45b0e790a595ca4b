// SPDX-License-Identifier: Apache-2.0
// A faulty driver: arbitrary command queue entries and mailboxes, MMIO and configuration writes.
#include "model/nic/capability_params.h"
#include "tests/soak/fuzz/raw_qp.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { mailbox, entry, doorbell, mmio_write, mmio_read, config_write, pass_time, kinds };

constexpr std::uint32_t kSlots = 1u << abi::kCommandLogEntries;

class Driver {
 public:
  explicit Driver(Node& node)
      : node_(node),
        queue_(node.host.allocate(4096)),
        input_(node.host.allocate(4096)),
        output_(node.host.allocate(4096)) {
    recover();
  }

  void take(const Input::Step& step) {
    Input body(step.body);
    switch (step.kind % kinds) {
      case mailbox: return execute_mailbox(body);
      case entry: {
        const auto slot = body.take<std::uint8_t>() % kSlots;
        return node_.host.put(queue_ + slot * sizeof(abi::CommandEntry), entry_of(body));
      }
      case doorbell: return node_.write_be(abi::reg::kCommandDoorbell, body.take<std::uint32_t>());
      case mmio_write: {
        const auto offset = body.take<std::uint32_t>() % (abi::kBarSize + 4096);
        node_.host.mmio(offset, std::as_bytes(body.take_span(512)));
        return;
      }
      case mmio_read: return void(node_.host.mmio_read(body.take<std::uint32_t>() % (abi::kBarSize + 4096)));
      case config_write: {
        const auto offset = body.take<std::uint16_t>() % (abi::config::kSize + 16);
        const auto value = body.take<std::uint32_t>();
        node_.host.config_write(offset, value, 1u << body.take<std::uint8_t>() % 3);
        return;
      }
      default: return sc_core::sc_start((body.take<std::uint16_t>() + 1) * 10.0, sc_core::SC_NS);
    }
  }

  // The command unit must still work, whatever input it got.
  void finish() {
    sc_core::sc_start(10, sc_core::SC_MS);
    recover();
    abi::CommandHeader query;
    query.opcode = std::uint16_t(abi::CommandOpcode::query_device);
    node_.host.put(input_, query);
    require(answer(whole_entry(sizeof query)) == abi::CommandStatus::ok, "a good command is refused");
    require(node_.host.get<abi::DeviceCapabilities>(output_).max_qp == nic::CapabilityParams{}.max_qp,
            "a good command's answer is wrong");
  }

 private:
  // A driver's recovery of the command queue.
  void recover() {
    node_.host.config_write(abi::config::kCommand, abi::config::kCommandMemory | abi::config::kCommandBusMaster, 2);
    node_.write_be(abi::reg::kCommandQueueBase, queue_);
  }
  abi::CommandEntry whole_entry(std::size_t bytes) const {
    abi::CommandEntry whole;
    whole.owner = 1;
    whole.input_bytes = static_cast<std::uint32_t>(bytes);
    whole.input = input_;
    whole.output = output_;
    whole.output_bytes = abi::kMailboxBytes;
    return whole;
  }
  // Partly arbitrary; addresses mostly point to mapped memory.
  abi::CommandEntry entry_of(Input& body) const {
    const auto wild = body.take<std::uint8_t>();
    auto some = body.take<abi::CommandEntry>();
    if ((wild & 1) == 0) some.input = input_ + some.input % 8192;
    if ((wild & 2) == 0) some.output = output_ + some.output % 8192;
    return some;
  }
  // Every command that the device can read is completed.
  void execute_mailbox(Input& body) {
    recover();
    const auto bytes = body.take_span(abi::kMailboxBytes);
    std::memcpy(node_.host.at(input_), bytes.data(), bytes.size());
    answer(whole_entry(bytes.size()));
  }
  abi::CommandStatus answer(const abi::CommandEntry& what) {
    node_.host.put(queue_, what);
    node_.write_be(abi::reg::kCommandDoorbell, 1u);
    for (int i = 0; i < 1000 && node_.host.get<abi::CommandEntry>(queue_).owner != 0; ++i)
      sc_core::sc_start(1, sc_core::SC_US);
    const auto done = node_.host.get<abi::CommandEntry>(queue_);
    require(done.owner == 0, "a command has no answer");
    return done.status;
  }

  Node& node_;
  std::uint64_t queue_, input_, output_;
};

template <class Mailbox>
Mailbox named(abi::CommandOpcode opcode, std::uint32_t object) {
  Mailbox mailbox;
  auto& header = reinterpret_cast<abi::CommandHeader&>(mailbox);
  header.opcode = std::uint16_t(opcode);
  header.object = object;
  return mailbox;
}

}  // namespace

std::vector<Bytes> seeds() {
  using enum abi::CommandOpcode;
  constexpr std::uint64_t kSomewhere = nic::test::kMemoryBase + (1 << 17);
  const auto header = [](abi::CommandOpcode opcode, std::uint32_t object = 0) {
    return named<abi::CommandHeader>(opcode, object);
  };
  auto map = named<abi::MapIcm>(map_icm, 0);
  map.first_index = 1000;
  map.count = 8;
  map.memory = kSomewhere;
  auto eq = named<abi::CreateEq>(create_eq, 5);
  eq.context.log_entries = 4;
  eq.context.ring = kSomewhere;
  auto cq = named<abi::CreateCq>(create_cq, 9);
  cq.context.log_entries = 4;
  cq.context.uar_page = 1;
  cq.context.ring = cq.context.doorbell_record = kSomewhere;
  cq.context.pasid = 9;
  auto mpt = named<abi::CreateMpt>(create_mpt, 11);
  mpt.context.key = 11 << 8;
  mpt.context.length = 4096;
  auto qp = named<abi::CreateQp>(create_qp, 12);
  qp.context.send_cqn = qp.context.receive_cqn = 9;
  qp.context.log_send_blocks = qp.context.log_receive_wqes = qp.context.log_receive_stride = 4;
  qp.context.flags = 3;
  qp.context.send_ring = qp.context.receive_ring = qp.context.doorbell_record = kSomewhere;
  qp.context.uar_page = 1;
  qp.context.pasid = 9;
  const auto modify = [](abi::QpState to, std::uint32_t mask) {
    auto mailbox = named<abi::ModifyQp>(modify_qp, 12);
    mailbox.attributes = mask | abi::qp_attr::kState;
    mailbox.context.state = to;
    mailbox.context.port = 1;
    mailbox.context.path_mtu = 3;
    mailbox.context.timeout = 8;
    return mailbox;
  };
  using namespace abi::qp_attr;
  const auto to_init = modify(abi::QpState::init, kPkeyIndex | kPort | kAccessFlags);
  const auto to_rtr =
      modify(abi::QpState::rtr, kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer);
  const auto to_rts = modify(abi::QpState::rts, kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic);
  auto gid = named<abi::SetGid>(set_gid, 1);
  gid.index = 2;
  gid.valid = 1;

  std::vector<Bytes> all;
  Script life;
  life.step(mailbox, eq).step(mailbox, cq).step(mailbox, mpt).step(mailbox, qp).step(mailbox, gid);
  for (const auto& change : {to_init, to_rtr, to_rts, modify(abi::QpState::sqd, 0), modify(abi::QpState::rts, 0),
                             modify(abi::QpState::error, 0), modify(abi::QpState::reset, 0)}) {
    life.step(mailbox, change).step(mailbox, header(query_qp, 12));
    all.push_back(Script(life).step(mailbox, header(destroy_qp, 12)));
  }
  life.step(mailbox, header(query_cq, 9)).step(mailbox, header(query_mpt, 11)).step(mailbox, header(query_port, 1));
  for (const auto& [opcode, object] :
       {std::pair{destroy_cq, 9u}, {destroy_qp, 12u}, {destroy_cq, 9u}, {destroy_mpt, 11u}, {destroy_eq, 5u}})
    life.step(mailbox, header(opcode, object));
  all.push_back(life);
  for (std::uint32_t table = 0; table < std::size(abi::kIcmEntryBytes); ++table) {
    map.table = table;
    auto unmap = map;
    unmap.header.opcode = std::uint16_t(unmap_icm);
    all.push_back(Script().step(mailbox, map).step(mailbox, unmap).step(mailbox, unmap));
  }
  // Regions of each kind, windows on them, and their changes.
  for (const auto kind : {abi::MptKind::region, abi::MptKind::window1, abi::MptKind::window2, abi::MptKind::null,
                          abi::MptKind::device_memory}) {
    auto entry_of = mpt;
    entry_of.context.kind = kind;
    entry_of.context.pasid = 9;
    for (const std::uint32_t rights : {0xfu, 0xf | abi::access::kZeroBased, 0xf | abi::access::kOnDemand,
                                       0x1f | abi::access::kOnDemand | abi::access::kRelaxedOrdering}) {
      entry_of.context.access_flags = rights;
      auto other = entry_of;
      other.header.opcode = std::uint16_t(modify_mpt);
      other.context.access_flags = rights ^ abi::access::kOnDemand;
      other.context.bus_address = other.context.start = 4096;
      Script regions;
      regions.step(mailbox, entry_of).step(mailbox, header(query_mpt, 11)).step(mailbox, other);
      all.push_back(regions.step(mailbox, header(query_mpt, 11)).step(mailbox, header(destroy_mpt, 11)));
    }
  }
  // Device memory: first and last bytes, through regions and by the CPU.
  auto on_device = mpt;
  on_device.context.kind = abi::MptKind::device_memory;
  on_device.context.access_flags = 0x2f;
  for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, 256 << 10},
                                      {(256 << 10) - 1, 1},
                                      {256 << 10, 0},
                                      {(256 << 10) - 1, 2},
                                      {~0ull, 2}}) {
    on_device.context.bus_address = offset;
    on_device.context.length = bytes;
    const auto at = abi::kDeviceMemoryBase + std::uint32_t(offset);
    all.push_back(Script()
                      .step(mailbox, on_device)
                      .step(mmio_write, at, std::uint64_t{0x0102030405060708})
                      .step(mmio_write, at - 64, Bytes(64))
                      .step(mmio_write, at, Bytes(256))
                      .step(mmio_read, at)
                      .step(mailbox, header(destroy_mpt, 11)));
  }
  // Shared receive queues, with and without a domain, and the queue pairs that use them.
  map.table = std::uint32_t(abi::IcmTable::srqc);
  map.first_index = 0;
  auto srq = named<abi::CreateSrq>(create_srq, 3);
  srq.context.log_entries = 4;
  srq.context.log_stride = 6;
  srq.context.pasid = 9;
  srq.context.ring = srq.context.doorbell_record = kSomewhere;
  srq.context.cqn = 9;
  auto change = named<abi::ModifySrq>(modify_srq, 3);
  change.attributes = abi::ModifySrq::kLimit | abi::ModifySrq::kRing;
  change.limit = 5;
  change.ring = kSomewhere + 4096;
  change.log_entries = 5;
  for (const auto transport : {abi::Transport::rc, abi::Transport::uc, abi::Transport::ud, abi::Transport::raw,
                               abi::Transport::xrc_send, abi::Transport::xrc_recv}) {
    const bool of_domain = transport == abi::Transport::xrc_recv, sends = transport == abi::Transport::xrc_send;
    srq.context.flags = of_domain ? abi::Srqc::kXrc : 0;
    srq.context.xrcd = 0x8001;
    auto taker = qp;
    taker.context.transport = transport;
    taker.context.flags = std::uint8_t(abi::Qpc::kHasSend | (sends ? 0 : abi::Qpc::kHasReceive));
    if (transport == abi::Transport::rc || transport == abi::Transport::ud) {
      taker.context.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq;
      taker.context.srqn = 3;
    }
    if (of_domain) {
      taker.context = {};
      taker.context.transport = transport;
      taker.context.xrcd = 0x8001;
    }
    Script domain;
    domain.step(mailbox, map).step(mailbox, cq).step(mailbox, srq).step(mailbox, taker);
    for (const auto& next : {to_init, to_rtr, to_rts}) domain.step(mailbox, next).step(mailbox, header(query_qp, 12));
    domain.step(mailbox, change).step(mailbox, header(query_srq, 3));
    for (const auto& [opcode, object] : {std::pair{destroy_srq, 3u},
                                         {destroy_cq, 9u},
                                         {destroy_qp, 12u},
                                         {destroy_srq, 3u},
                                         {query_srq, 3u},
                                         {destroy_cq, 9u}})
      domain.step(mailbox, header(opcode, object));
    all.push_back(domain);
  }
  all.push_back(Script()
                    .step(mailbox, header(teardown))
                    .step(mailbox, header(initialize))
                    .step(mailbox, header(query_device))
                    .step(mailbox, qp));
  Script burst;
  for (std::uint8_t slot = 0; slot < kSlots; ++slot) {
    abi::CommandEntry one;
    one.owner = 1;
    one.input_bytes = 64;
    one.output_bytes = 4096;
    burst.step(entry, slot, std::uint8_t(slot % 4), one);
  }
  all.push_back(burst.step(doorbell, ~0u).step(pass_time, std::uint16_t{50}).step(doorbell, ~0u));
  all.push_back(Script(burst).step(config_write, abi::config::kDeviceControl,
                                   std::uint32_t{abi::config::kFunctionLevelReset}, std::uint8_t{1}));
  all.push_back(
      Script(burst).step(config_write, abi::config::kCommand, 0u, std::uint8_t{1}).step(pass_time, std::uint16_t{50}));
  for (const std::uint32_t offset : {abi::reg::kCommandQueueBase, abi::reg::kStatus, abi::kMsixTable, abi::kMsixPba,
                                     abi::kUarBase, abi::kUarBase + abi::uar::kEqDoorbell, abi::kBarSize - 8})
    all.push_back(Script()
                      .step(mmio_write, offset, std::uint64_t{0x0102030405060708})
                      .step(mmio_read, offset)
                      .step(pass_time, std::uint16_t{10}));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  auto& stage = Stage::fresh();
  Driver driver(stage.a());
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 100; ++steps) driver.take(input.take_step());
  driver.finish();
  // After a reset and a new bring-up the device works, and has no old state.
  stage.restart();
  stage.check();
  return 0;
}
