// SPDX-License-Identifier: Apache-2.0
// Requests of a process to the kernel's agent, in front of a real NIC: commands, objects, pinning, channels, doorbells.
#include <cerrno>
#include <map>
#include <memory>

#include "model/abi/device.h"
#include "model/host/host_kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/soak/fuzz/device_objects.h"
#include "tests/soak/fuzz/fuzz.h"
#include "verbs/provider/commands.h"

namespace rnicsim::fuzz {
namespace {

using abi::CommandOpcode;

enum Step : std::uint8_t {
  command,
  alloc_pd,
  dealloc_pd,
  alloc_uar,
  free_uar,
  pin,
  unpin,
  open_channel,
  close_channel,
  bind,
  store,
  pass_time,
  detach,
  alloc_dm,
  free_dm,
  open_xrcd,
  close_xrcd,
  open_qp,
  make_present,
  kinds
};

constexpr std::uint64_t kBase = 0x1000'0000;
constexpr std::uint64_t kBytes = 1 << 16;

class FlatMemory : public host::AddressSpace {
 public:
  bool read(std::uint64_t address, std::span<std::byte> bytes) override {
    if (!holds(address, bytes.size())) return false;
    std::copy_n(bytes_.begin() + std::ptrdiff_t(address - kBase), bytes.size(), bytes.begin());
    return true;
  }
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override {
    if (!holds(address, bytes.size())) return false;
    std::ranges::copy(bytes, bytes_.begin() + std::ptrdiff_t(address - kBase));
    return true;
  }
  int admit(std::uint64_t address, std::uint64_t bytes, bool) override { return holds(address, bytes) ? 0 : EFAULT; }
  std::optional<host::SharedPage> shared_page(std::uint64_t) const override { return std::nullopt; }

 private:
  static bool holds(std::uint64_t address, std::uint64_t bytes) {
    return address >= kBase && address - kBase <= kBytes && bytes <= kBytes - (address - kBase);
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
};

void run(double us) { sc_core::sc_start(us, sc_core::SC_US); }

class Process {
 public:
  explicit Process(sim::Adapter& adapter)
      : adapter_(adapter), agent_(adapter.agent()), kernel_(adapter.kernel()), pasid_(kernel_.attach(memory_)) {
    kernel_.pin(pasid_, kBase, kBytes);
  }
  ~Process() { leave(); }

  void take(const Input::Step& step) {
    Input body(step.body);
    const auto flags = body.take<std::uint8_t>();
    std::uint32_t number = 0;
    switch (step.kind % kinds) {
      case command: return void(submit(flags, body.take_span(~std::size_t{0})));
      case alloc_pd:
        if (may_make(pds_) && agent_.alloc_pd(pasid_, number) == 0) pds_.push_back(number);
        return;
      case dealloc_pd: return void(agent_.dealloc_pd(pasid_, one_of(pds_, flags, body.take<std::uint32_t>())));
      case alloc_uar:
        if (may_make(uars_) && agent_.alloc_uar(pasid_, number) == 0) uars_.push_back(number);
        return;
      case free_uar: return void(agent_.free_uar(pasid_, one_of(uars_, flags, body.take<std::uint32_t>())));
      case pin:
      case unpin: {
        auto address = body.take<std::uint64_t>();
        auto bytes = body.take<std::uint64_t>();
        if ((flags & 1) == 0) address = kBase + address % kBytes, bytes %= kBytes;
        const bool writable = (flags & 2) == 0;
        step.kind % kinds == pin ? kernel_.pin(pasid_, address, bytes, writable)
                                 : kernel_.unpin(pasid_, address, bytes, writable);
        return;
      }
      case open_channel:
        if (channels_.size() < kMost)
          channels_.push_back(
              agent_.open_channel(pasid_, [this](const abi::EventRecord&) { return ++events_ % 3 != 0; }));
        return;
      case close_channel:
        return void(agent_.close_channel(pasid_, one_of(channels_, flags, body.take<std::uint32_t>())));
      case bind: {
        const auto channel = one_of(channels_, flags, body.take<std::uint32_t>());
        const auto cqn = one_of(objects_[CommandOpcode::create_cq], flags >> 1, body.take<std::uint32_t>());
        (flags & 4) != 0 ? agent_.bind_events(pasid_, channel) : agent_.bind_completions(pasid_, cqn, channel);
        if ((flags & 8) != 0) agent_.refill_channel(pasid_, channel);
        return;
      }
      case store: {
        auto offset = body.take<std::uint32_t>();
        if ((flags & 1) == 0)
          offset = abi::kUarBase + one_of(uars_, 0, 0) * abi::kUarPageSize + offset % abi::kUarPageSize;
        agent_.mmio_write(pasid_, offset, Payload::copy_of(std::as_bytes(body.take_span(512))));
        require(!agent_.mmio_readable(pasid_, abi::reg::kStatus, 4), "a process may read what is not its own");
        return;
      }
      case pass_time: return run(flags + 1);
      case alloc_dm: {
        const auto bytes = body.take<std::uint64_t>();
        if (may_make(dms_) &&
            agent_.alloc_dm(pasid_, (flags & 1) != 0 ? bytes : bytes % kBytes, flags >> 1, number) == 0)
          dms_.push_back(number);
        return;
      }
      case free_dm: return void(agent_.free_dm(pasid_, one_of(dms_, flags, body.take<std::uint32_t>())));
      case open_xrcd:
        if (may_make(xrcds_) && agent_.open_xrcd(pasid_, std::nullopt, flags, number) == 0) xrcds_.push_back(number);
        return;
      case close_xrcd: return void(agent_.close_xrcd(pasid_, one_of(xrcds_, flags, body.take<std::uint32_t>())));
      case open_qp: {
        const auto xrcd = one_of(xrcds_, flags, body.take<std::uint32_t>());
        const auto qpn = one_of(objects_[CommandOpcode::create_qp], flags >> 1, body.take<std::uint32_t>());
        return void(agent_.open_qp(pasid_, xrcd, qpn, (flags & 4) != 0 ? one_of(channels_, 0, 0) : 0));
      }
      case make_present: {
        const auto region = one_of(objects_[CommandOpcode::create_mpt], flags, body.take<std::uint32_t>());
        const auto address = body.take<std::uint64_t>();
        const auto bytes = body.take<std::uint64_t>();
        const auto done = [this](int) { require(!gone_, "the dead are called back"); };
        return void(agent_.make_present(pasid_, region, (flags & 1) != 0 ? address : kBase + address % kBytes, bytes,
                                        (flags & 2) != 0, done));
      }
      default: return leave();
    }
  }

  // Submits a mailbox. `flags` bit 0: unchanged; otherwise object numbers are replaced with numbers of this process's
  // own objects.
  int submit(std::uint8_t flags, std::span<const std::uint8_t> bytes) {
    const auto raw = std::as_bytes(bytes);
    std::vector<std::byte> input(raw.begin(), raw.end());
    if (gone_) return 0;
    if ((flags & 1) == 0) mend(input, flags >> 1);
    const auto opcode = CommandOpcode(std::uint16_t(provider::decode<abi::CommandHeader>(input).opcode));
    const std::uint32_t events = (flags & 0x40) != 0 ? one_of(channels_, flags, 0) : 0;
    ++asked_;
    agent_.command(pasid_, events, std::move(input), [this, opcode](int error, std::span<const std::byte> output) {
      ++answered_;
      error_ = error;
      if (error != 0) return;
      const auto result = provider::decode<abi::CommandResult>(output);
      error_ = provider::to_errno(result.status);
      output_.assign(output.begin(), output.end());
      if (error_ == 0) objects_[opcode].push_back(result.object);
    });
    if ((flags & 0x80) != 0) return 0;  // several commands are outstanding
    settle();
    return error_;
  }

  void settle() {
    for (int i = 0; i < 10'000 && answered_ != asked_; ++i) run(10);
    require(answered_ == asked_ || gone_, "a command has no answer");
  }

  void leave() {
    if (gone_) return;
    gone_ = true;
    bool forgotten = false;
    kernel_.detach(pasid_, [&] { forgotten = true; });
    for (int i = 0; i < 10'000 && !forgotten; ++i) run(10);
    require(forgotten, "a process that has ended is not forgotten");
    require(has_only_the_kernels(adapter_), "an object of a dead process is left on the device");
    std::byte probe[1];
    require(!adapter_.iommu().read(pasid_, kBase, probe), "the memory of a dead process is still mapped");
  }

  // Requests of a well-behaved process must succeed.
  void live() {
    const auto good = [&](const auto& mailbox) {
      const auto bytes = provider::encode(mailbox);
      require(submit(0, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}) == 0,
              "a good command is refused");
    };
    std::uint32_t pd = 0, uar = 0;
    require(agent_.alloc_pd(pasid_, pd) == 0 && agent_.alloc_uar(pasid_, uar) == 0, "no PD or doorbell page is left");
    pds_ = {pd};
    uars_ = {uar};
    good(provider::header(CommandOpcode::query_device));
    good(provider::create_cq(0, {}));
    good(provider::create_mpt(0, {}));
    good(provider::create_qp(0, {}));
    for (const auto opcode : {CommandOpcode::query_qp, CommandOpcode::query_cq, CommandOpcode::query_mpt,
                              CommandOpcode::destroy_qp, CommandOpcode::destroy_cq, CommandOpcode::destroy_mpt})
      good(provider::header(opcode));
    require(agent_.dealloc_pd(pasid_, pd) == 0 && agent_.free_uar(pasid_, uar) == 0,
            "a PD or page that nothing uses is kept");
    std::uint32_t all = 0;
    require(agent_.alloc_dm(pasid_, nic::DeviceMemoryParams{}.size.bytes, 0, all) == 0,
            "device memory of a dead process is kept");
    require(agent_.free_dm(pasid_, all) == 0, "device memory that nothing uses is kept");
  }

 private:
  static constexpr std::size_t kMost = 64;

  // A process that has ended makes no requests.
  bool may_make(const std::vector<std::uint32_t>& such) const { return !gone_ && such.size() < kMost; }
  static std::uint32_t one_of(const std::vector<std::uint32_t>& numbers, unsigned flags, std::uint32_t number) {
    return (flags & 1) != 0 || numbers.empty() ? number : numbers[number % numbers.size()];
  }
  static CommandOpcode creator_of(CommandOpcode opcode) {
    return CommandOpcode(std::uint16_t(std::uint16_t(opcode) & 0xfff0));
  }

  void mend(std::vector<std::byte>& input, unsigned which) {
    if (input.size() < sizeof(abi::CommandHeader)) return;
    auto header = provider::decode<abi::CommandHeader>(input);
    const auto opcode = CommandOpcode(std::uint16_t(header.opcode));
    header.object = one_of(objects_[creator_of(opcode)], 0, header.object + which);
    std::memcpy(input.data(), &header, sizeof header);
    const auto change = [&]<class Mailbox>(std::type_identity<Mailbox>, auto&& how) {
      if (input.size() < sizeof(Mailbox)) return;
      auto mailbox = provider::decode<Mailbox>(input);
      how(mailbox.context);
      std::memcpy(input.data(), &mailbox, sizeof mailbox);
    };
    const auto uar = static_cast<std::uint16_t>(one_of(uars_, 0, which));
    const auto pd = one_of(pds_, 0, which);
    const auto cqn = one_of(objects_[CommandOpcode::create_cq], 0, which);
    if (opcode == CommandOpcode::create_cq)
      change(std::type_identity<abi::CreateCq>{}, [&](abi::Cqc& c) { c.uar_page = uar; });
    const auto xrcd = one_of(xrcds_, 0, which);
    if (opcode == CommandOpcode::create_mpt || opcode == CommandOpcode::modify_mpt)
      change(std::type_identity<abi::CreateMpt>{}, [&](abi::Mpt& c) {
        c.pd = pd;
        if (c.kind == abi::MptKind::device_memory) c.bus_address = one_of(dms_, 0, which) + c.bus_address % kBytes;
      });
    if (opcode == CommandOpcode::create_srq)
      change(std::type_identity<abi::CreateSrq>{}, [&](abi::Srqc& c) {
        c.pd = pd;
        c.cqn = cqn;
        c.xrcd = xrcd;
      });
    if (opcode == CommandOpcode::create_qp)
      change(std::type_identity<abi::CreateQp>{}, [&](abi::Qpc& c) {
        c.uar_page = uar;
        c.pd = pd;
        c.send_cqn = c.receive_cqn = cqn;
        c.srqn = one_of(objects_[CommandOpcode::create_srq], 0, which);
        c.xrcd = xrcd;
      });
  }

  sim::Adapter& adapter_;
  host::KernelAgent& agent_;
  host::HostKernel& kernel_;
  FlatMemory memory_;
  const Pasid pasid_;
  std::vector<std::uint32_t> pds_, uars_, channels_, dms_, xrcds_;
  std::map<CommandOpcode, std::vector<std::uint32_t>> objects_;
  std::vector<std::byte> output_;
  std::uint64_t asked_ = 0, answered_ = 0, events_ = 0;
  int error_ = 0;
  bool gone_ = false;
};

sim::Adapter& fresh_host() {
  static std::unique_ptr<sim::System> system;
  static int uses = 0;
  if (!system || ++uses % 256 == 0) {
    system.reset();
    sc_core::sc_get_curr_simcontext()->reset();
    // A path to a neighbour that does not answer fails within settle().
    const std::vector<std::string> sets{"host.cm.neighbour_timeout=1ms"};
    system = std::make_unique<sim::System>("system", sim::load_config("cx5-100g", "back-to-back", sets));
    // Subscribers are told of refused commands, too.
    for (std::size_t i = 0; i < 2; ++i)
      system->adapter(i).agent().command_answered.subscribe([](const host::CommandAnswered&) {});
    system->start();
  }
  return system->adapter(0);
}

}  // namespace

std::vector<Bytes> seeds() {
  constexpr std::uint8_t kMended = 0, kRaw = 1, kAtOnce = 0x80;
  const auto bytes_of = [](const auto& mailbox) {
    const auto bytes = provider::encode(mailbox);
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return Bytes(first, first + bytes.size());
  };
  abi::Cqc cq;
  cq.log_entries = 4;
  cq.ring = kBase;
  cq.doorbell_record = kBase + 4096;
  abi::Mpt mpt;
  mpt.access_flags = 0xf;
  mpt.start = mpt.bus_address = kBase;
  mpt.length = kBytes;
  abi::Qpc qp;
  qp.log_send_blocks = qp.log_receive_wqes = 4;
  qp.log_receive_stride = 6;
  qp.flags = abi::Qpc::kHasSend | abi::Qpc::kHasReceive;
  qp.send_ring = qp.receive_ring = qp.doorbell_record = kBase + 8192;
  abi::Qpc attributes;
  attributes.state = abi::QpState::init;
  attributes.port = 1;
  attributes.path_mtu = 3;
  attributes.path.sgid_index = 1;
  attributes.path.remote_gid[10] = attributes.path.remote_gid[11] = 0xff;
  attributes.path.remote_gid[12] = 10, attributes.path.remote_gid[14] = 1, attributes.path.remote_gid[15] = 1;
  using namespace abi::qp_attr;
  const std::uint32_t to_init = kState | kPkeyIndex | kPort | kAccessFlags;
  const std::uint32_t to_rtr = kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer;
  const std::uint32_t to_rts = kState | kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic;
  const auto modified = [&](abi::QpState state, std::uint32_t mask) {
    auto copy = attributes;
    copy.state = state;
    return bytes_of(provider::modify_qp(0, mask, copy));
  };

  std::vector<Bytes> all;
  for (const std::uint8_t flags : {kMended, kAtOnce}) {
    Script life;
    life.step(alloc_pd, flags).step(alloc_uar, flags).step(open_channel, flags);
    life.step(command, flags, bytes_of(provider::create_cq(0, cq)))
        .step(command, flags, bytes_of(provider::create_mpt(0, mpt)));
    life.step(pass_time, std::uint8_t{100}).step(bind, flags, 0u, 0u).step(bind, std::uint8_t{4}, 0u, 0u);
    life.step(command, flags, bytes_of(provider::create_qp(0, qp))).step(pass_time, std::uint8_t{100});
    life.step(command, flags, modified(abi::QpState::init, to_init))
        .step(command, flags, modified(abi::QpState::rtr, to_rtr));
    life.step(command, flags, modified(abi::QpState::rts, to_rts)).step(pass_time, std::uint8_t{100});
    life.step(store, flags, 0u, std::uint64_t{0x0100'0000'4000'0000})
        .step(store, std::uint8_t{1}, abi::kUarBase, std::uint64_t{1});
    all.push_back(life);
    for (const auto opcode :
         {CommandOpcode::query_device, CommandOpcode::query_port, CommandOpcode::query_qp, CommandOpcode::query_cq,
          CommandOpcode::query_mpt, CommandOpcode::destroy_cq, CommandOpcode::destroy_qp, CommandOpcode::destroy_cq,
          CommandOpcode::destroy_mpt, CommandOpcode::teardown, CommandOpcode::map_icm, CommandOpcode::set_gid})
      life.step(command, flags, bytes_of(provider::header(opcode, 1)));
    all.push_back(Script(life).step(close_channel, flags, 0u).step(free_uar, flags, 0u).step(dealloc_pd, flags, 0u));
    all.push_back(
        Script(life).step(detach, flags).step(command, kRaw, bytes_of(provider::header(CommandOpcode::query_device))));
  }
  // Device memory, on-demand pages, and XRC: each created, used, opened again and left.
  auto on_device = mpt;
  on_device.kind = abi::MptKind::device_memory;
  on_device.access_flags = 0xf | abi::access::kZeroBased;
  on_device.start = on_device.bus_address = 0;
  on_device.length = 5000;
  auto on_demand = mpt;
  on_demand.access_flags = 0xf | abi::access::kOnDemand;
  abi::Srqc shared;
  shared.log_entries = 4;
  shared.log_stride = 6;
  shared.ring = shared.doorbell_record = kBase + 16384;
  auto of_domain = shared;
  of_domain.flags = abi::Srqc::kXrc;
  auto takes = qp;
  takes.flags = abi::Qpc::kHasSend | abi::Qpc::kHasSrq;
  auto sends = qp;
  sends.transport = abi::Transport::xrc_send;
  sends.flags = abi::Qpc::kHasSend;
  abi::Qpc receives;
  receives.transport = abi::Transport::xrc_recv;
  for (const std::uint8_t flags : {kMended, kAtOnce}) {
    Script life;
    life.step(alloc_pd, flags).step(alloc_uar, flags).step(open_channel, flags).step(open_xrcd, flags);
    life.step(alloc_dm, kMended, std::uint64_t{5000}).step(alloc_dm, std::uint8_t{16 << 1}, std::uint64_t{1});
    life.step(command, flags, bytes_of(provider::create_cq(0, cq)));
    for (const auto& region : {on_device, on_demand})
      life.step(command, flags, bytes_of(provider::create_mpt(0, region)));
    life.step(pass_time, std::uint8_t{100});
    for (const std::uint8_t how : {0, 1, 2, 3})
      life.step(make_present, how, std::uint32_t{how}, std::uint64_t{how} * 4096, std::uint64_t{8192});
    for (const auto& queue : {shared, of_domain})
      life.step(command, flags, bytes_of(provider::create_srq(0, queue))).step(pass_time, std::uint8_t{100});
    for (const auto& context : {takes, sends, receives})
      life.step(command, flags, bytes_of(provider::create_qp(0, context))).step(pass_time, std::uint8_t{100});
    life.step(command, flags, modified(abi::QpState::init, to_init));
    for (const std::uint32_t qp_index : {0u, 1u, 2u}) life.step(open_qp, std::uint8_t{4}, 0u, qp_index);
    all.push_back(life);
    life.step(free_dm, flags, 0u).step(free_dm, flags, 1u).step(close_xrcd, flags, 0u);
    for (std::uint32_t object = 0; object < 3; ++object)
      for (const auto opcode : {CommandOpcode::query_srq, CommandOpcode::destroy_srq, CommandOpcode::destroy_cq,
                                CommandOpcode::destroy_qp, CommandOpcode::destroy_qp, CommandOpcode::destroy_mpt})
        life.step(command, flags, bytes_of(provider::header(opcode, object)));
    all.push_back(life.step(free_dm, flags, 0u).step(close_xrcd, flags, 0u));
  }
  all.push_back(Script()
                    .step(command, kRaw)
                    .step(command, kRaw, Bytes(15))
                    .step(command, kRaw, Bytes(4096))
                    .step(command, kRaw, Bytes(4097)));
  all.push_back(Script()
                    .step(pin, kMended, std::uint64_t{100}, std::uint64_t{5000})
                    .step(pin, kMended, std::uint64_t{50}, std::uint64_t{100})
                    .step(unpin, kMended, std::uint64_t{80}, std::uint64_t{2000})
                    .step(unpin, kRaw, ~std::uint64_t{0}, std::uint64_t{2})
                    .step(pin, kRaw, kBase, ~std::uint64_t{0}));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  auto& host = fresh_host();
  {
    Process process(host);
    Input input(data, size);
    for (int steps = 0; !input.empty() && steps < 200; ++steps) process.take(input.take_step());
    process.settle();
  }
  Process(host).live();
  return 0;
}
