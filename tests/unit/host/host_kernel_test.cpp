// SPDX-License-Identifier: Apache-2.0
// The kernel brings a device up, keeps processes apart, and cleans up after processes that end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "model/host/gids.h"
#include "model/host/root_complex.h"
#include "model/host/software_process.h"
#include "tests/support/fake_device.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

using abi::CommandOpcode;
using rnicsim::testing::FakeDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

abi::NetworkInterface identity() {
  abi::NetworkInterface host{.name = "h0"};
  host.mac[0] = 2, host.mac[5] = 1;
  host.ipv4[0] = 10, host.ipv4[3] = 1;
  host.ipv6[0] = 0xfd, host.ipv6[15] = 1;
  return host;
}

struct Machine : sc_core::sc_module {
  Machine()
      : sc_module(sc_core::sc_module_name("machine")),
        root_complex("root_complex", params, iommu),
        kernel(params, iommu, Neighbours({identity()})),
        agent("kernel", params, kernel, root_complex, identity()) {
    root_complex.bar.bind(device.bar);
    root_complex.config.bind(device.config);
    device.dma.bind(root_complex.upstream);
  }
  HostParams params;
  Iommu iommu{"h0"};
  RootComplex root_complex;
  FakeDevice device{"device"};
  HostKernel kernel;
  KernelAgent agent;
};

class KernelAgentTest : public ::testing::Test {
 protected:
  // Each body is a separate process; processes start in this order.
  void run(std::vector<std::function<void()>> bodies) {
    std::vector<std::unique_ptr<SoftwareProcess>> processes;
    for (auto& body : bodies)
      processes.push_back(std::make_unique<SoftwareProcess>(sc_core::sc_gen_unique_name("process"), machine_.params,
                                                            machine_.agent, body));
    sc_core::sc_start(1, sc_core::SC_SEC);
    for (const auto& process : processes) EXPECT_TRUE(process->finished());
  }

  static CpuPort& port() { return static_cast<CpuPort&>(*process_port()); }

  template <class Input>
  static int command(Input input, std::uint32_t* object = nullptr, std::uint32_t events = 0) {
    abi::CommandResult result;
    const int error = port().command(events, provider::encode(input), std::as_writable_bytes(std::span(&result, 1)));
    if (object) *object = result.object;
    return error != 0 ? error : provider::to_errno(result.status);
  }
  static std::uint32_t make_cq(std::uint32_t uar, std::uint32_t vector = 0) {
    abi::Cqc context;
    context.uar_page = static_cast<std::uint16_t>(uar);
    context.eqn = vector;
    std::uint32_t cqn = 0;
    EXPECT_EQ(command(provider::create_cq(0, context), &cqn), 0);
    return cqn;
  }
  static std::uint32_t make_qp(std::uint32_t pd, std::uint32_t uar, std::uint32_t cqn, std::uint32_t events = 0,
                               abi::Transport transport = abi::Transport::rc) {
    abi::Qpc context;
    context.transport = transport;
    context.pd = pd;
    context.uar_page = static_cast<std::uint16_t>(uar);
    context.send_cqn = cqn;
    context.receive_cqn = cqn;
    std::uint32_t qpn = 0;
    EXPECT_EQ(command(provider::create_qp(0, context), &qpn, events), 0);
    return qpn;
  }

  Machine machine_;
};

TEST_F(KernelAgentTest, BringsTheDeviceUp) {
  run({});
  ASSERT_TRUE(machine_.kernel.ready());
  EXPECT_THAT(machine_.device.opcodes(),
              ElementsAre(CommandOpcode::query_device, CommandOpcode::map_icm, CommandOpcode::initialize,
                          CommandOpcode::create_eq, CommandOpcode::create_eq, CommandOpcode::create_eq,
                          CommandOpcode::create_eq, CommandOpcode::create_eq, CommandOpcode::query_port,
                          CommandOpcode::set_gid, CommandOpcode::set_gid, CommandOpcode::set_gid));
  abi::GidEntry entry;
  EXPECT_EQ(machine_.agent.gid_entry(1, 1, entry), 0);
  EXPECT_EQ(std::to_array(entry.gid), gids_of(identity())[1]);
  EXPECT_EQ(entry.type, 2u);
  EXPECT_EQ(machine_.agent.gid_entry(1, 3, entry), ENODATA);
  EXPECT_EQ(machine_.agent.gid_entry(1, 16, entry), EINVAL);
  EXPECT_EQ(machine_.agent.gid_entry(2, 0, entry), EINVAL);
}

TEST_F(KernelAgentTest, RefusesAnotherDevice) {
  machine_.device.identity = 0x10178086;
  run({});
  EXPECT_FALSE(machine_.kernel.ready());
  EXPECT_THAT(machine_.kernel.failure(), HasSubstr("8086:1017"));
}

TEST_F(KernelAgentTest, RefusesAnotherAbi) {
  machine_.device.abi_version = 9u << 16 | 3;
  run({});
  EXPECT_FALSE(machine_.kernel.ready());
  EXPECT_THAT(machine_.kernel.failure(), HasSubstr("9.3"));
}

TEST_F(KernelAgentTest, SaysWhichCommandFailed) {
  machine_.device.refused[CommandOpcode::create_eq] = abi::CommandStatus::exceeds_limit;
  run({});
  EXPECT_FALSE(machine_.kernel.ready());
  EXPECT_THAT(machine_.kernel.failure(), HasSubstr("create_eq failed with status 0x6"));
}

TEST_F(KernelAgentTest, MmioOnlyToOnesOwnPages) {
  std::uint32_t mine = 0;
  run({[&] {
    ASSERT_EQ(port().alloc_uar(mine), 0);
    const std::array<std::byte, 8> data{};
    const std::uint32_t base = abi::kUarBase + mine * abi::kUarPageSize;
    port().mmio_write(base, data);
    for (const std::uint32_t offset : {0u, abi::kMsixTable, abi::kUarBase, base + abi::kUarPageSize,
                                       base + abi::kUarPageSize - 4, abi::kBarSize, ~0u})
      port().mmio_write(offset, data);
    port().mmio_write(base, std::span(data).first(3));
    EXPECT_EQ(port().mmio_read(abi::reg::kMagic, 4), ~0ull);
    EXPECT_EQ(port().mmio_read(abi::reg::kClock, 8), 0u);
    EXPECT_EQ(port().free_uar(mine), 0);
    port().mmio_write(base, data);
  }});
  // Arming the five event queues are stores, too, to the kernel's page.
  ASSERT_EQ(machine_.device.uar_stores.size(), 6u);
  EXPECT_EQ(machine_.device.uar_stores.back().offset, abi::kUarBase + mine * abi::kUarPageSize);
  EXPECT_EQ(machine_.agent.counters().mmio_refused, 9u);
}

TEST_F(KernelAgentTest, PostedWritesArriveLateAndInOrder) {
  Duration sent;
  run({[&] {
    std::uint32_t page = 0;
    ASSERT_EQ(port().alloc_uar(page), 0);
    port().settle();
    sent = now();
    for (std::uint8_t i = 0; i < 6; ++i) {
      const std::array<std::byte, 4> data{std::byte(i)};
      port().mmio_write(abi::kUarBase + page * abi::kUarPageSize, data);
      if (i < 3) port().charge(abi::CpuCost::mmio_write, 1);
    }
  }});
  const auto& stores = machine_.device.uar_stores;
  ASSERT_EQ(stores.size(), 11u);
  const auto& params = machine_.params;
  for (std::uint8_t i = 0; i < 6; ++i) {
    EXPECT_EQ(stores[5 + i].data[0], std::byte(i));
    // As fast as the CPU stores, or as fast as the bus carries.
    const Duration after =
        i < 3 ? i * params.cpu.mmio_write : 3 * params.cpu.mmio_write + (i - 3) * params.mmio_line_interval;
    EXPECT_EQ(stores[5 + i].at, sent + after + params.mmio_write_latency);
  }
}

TEST_F(KernelAgentTest, EventsReachTheirOwner) {
  int fds[2][2];
  ASSERT_EQ(pipe2(fds[0], O_NONBLOCK), 0);
  ASSERT_EQ(pipe2(fds[1], O_NONBLOCK), 0);
  std::uint32_t cqn = 0, qpn = 0;
  bool armed = false;
  const auto listener = [&] {
    std::uint32_t pd, uar, completions, events;
    ASSERT_EQ(port().alloc_pd(pd), 0);
    ASSERT_EQ(port().alloc_uar(uar), 0);
    ASSERT_EQ(port().open_channel(fds[0][1], completions), 0);
    ASSERT_EQ(port().open_channel(fds[0][1], events), 0);
    cqn = make_cq(uar, 2);
    qpn = make_qp(pd, uar, cqn, events);
    EXPECT_EQ(command(provider::create_cq(0, {}), nullptr, 99), ENOENT);
    EXPECT_EQ(port().bind_completions(cqn, completions), 0);
    EXPECT_EQ(port().bind_completions(cqn + 1, completions), ENOENT);
    EXPECT_EQ(port().bind_events(events), 0);
    EXPECT_EQ(port().bind_events(99), ENOENT);
    armed = true;
    for (const abi::EventRecord expected :
         {abi::EventRecord{0x00, cqn}, abi::EventRecord{0x11, qpn}, abi::EventRecord{0x20, 1}}) {
      ASSERT_TRUE(port().wait_for_event(0, fds[0][0], false));
      abi::EventRecord record;
      ASSERT_EQ(read(fds[0][0], &record, sizeof record), ssize_t(sizeof record));
      EXPECT_EQ(record.type, expected.type);
      EXPECT_EQ(record.number, expected.number);
    }
  };
  const auto stranger = [&] {
    std::uint32_t events;
    ASSERT_EQ(port().open_channel(fds[1][1], events), 0);
    EXPECT_EQ(port().bind_events(events), 0);
    while (!armed) sleep_until(now() + 1_us);
    EXPECT_EQ(port().bind_completions(cqn, events), ENOENT);
    machine_.device.raise_event(3, abi::EventType::completion, cqn);
    machine_.device.raise_event(0, abi::EventType::qp_fatal, qpn);
    machine_.device.raise_event(0, abi::EventType::qp_fatal, 0xbad);
    machine_.device.raise_event(0, abi::EventType::port_active, 1);
    abi::EventRecord record;
    ASSERT_EQ(read(fds[1][0], &record, sizeof record), ssize_t(sizeof record));
    EXPECT_EQ(record.type, 0x20u);
    EXPECT_EQ(read(fds[1][0], &record, sizeof record), -1);
  };
  run({listener, stranger});
}

TEST_F(KernelAgentTest, DeathCleansUpInOrder) {
  std::uint32_t survivor_cq = 0;
  run({[&] {
         std::uint32_t pd, uar;
         ASSERT_EQ(port().alloc_pd(pd), 0);
         ASSERT_EQ(port().alloc_uar(uar), 0);
         const std::uint32_t cqn = make_cq(uar);
         abi::Mpt mr;
         mr.pd = pd;
         ASSERT_EQ(command(provider::create_mpt(0, mr)), 0);
         make_qp(pd, uar, cqn);
         EXPECT_EQ(port().dealloc_pd(pd), EBUSY);
       },
       [&] {
         std::uint32_t uar;
         ASSERT_EQ(port().alloc_uar(uar), 0);
         survivor_cq = make_cq(uar);
         sleep_until(now() + 1_ms);
       }});
  const auto opcodes = machine_.device.opcodes();
  std::vector<CommandOpcode> destroyed;
  for (const auto opcode : opcodes)
    if (opcode == CommandOpcode::destroy_qp || opcode == CommandOpcode::destroy_cq ||
        opcode == CommandOpcode::destroy_mpt)
      destroyed.push_back(opcode);
  EXPECT_THAT(destroyed, ElementsAre(CommandOpcode::destroy_qp, CommandOpcode::destroy_cq, CommandOpcode::destroy_mpt,
                                     CommandOpcode::destroy_cq));
  EXPECT_EQ(machine_.device.commands.back().object, survivor_cq);
}

TEST_F(KernelAgentTest, FlowsDieBeforeWhatTheyLeadTo) {
  std::uint64_t counted = ~0ull;
  run({[&] {
    std::uint32_t pd, uar, rss = 0, counter = 0;
    ASSERT_EQ(port().alloc_pd(pd), 0);
    ASSERT_EQ(port().alloc_uar(uar), 0);
    const std::array qpns{make_qp(pd, uar, make_cq(uar), 0, abi::Transport::raw)};
    ASSERT_EQ(command(provider::create_rss(0, std::array<std::uint8_t, 40>{}, qpns), &rss), 0);
    ASSERT_EQ(command(provider::header(CommandOpcode::create_counter), &counter), 0);
    abi::CreateFlow flow{.header = provider::header(CommandOpcode::create_flow), .qpn = rss};
    flow.flags = abi::CreateFlow::kCount;
    flow.counter = counter;
    ASSERT_EQ(command(flow), 0);
    EXPECT_EQ(command(provider::header(CommandOpcode::destroy_qp, qpns[0])), EBUSY);
    EXPECT_EQ(command(provider::header(CommandOpcode::destroy_rss, rss)), EBUSY);
    EXPECT_EQ(command(provider::header(CommandOpcode::destroy_counter, counter)), EBUSY);
    // The complete answer is returned.
    abi::QueryCounter answer;
    answer.packets = 5u;
    ASSERT_EQ(port().command(0, provider::encode(provider::header(CommandOpcode::query_counter, counter)),
                             std::as_writable_bytes(std::span(&answer, 1))),
              0);
    counted = answer.packets;
  }});
  EXPECT_EQ(counted, 0u);
  using enum CommandOpcode;
  std::vector<CommandOpcode> destroyed = machine_.device.opcodes();
  destroyed.erase(destroyed.begin(), std::ranges::find(destroyed, query_counter) + 1);
  EXPECT_THAT(destroyed, ElementsAre(destroy_flow, destroy_rss, destroy_counter, destroy_qp, destroy_cq));
}

TEST_F(KernelAgentTest, GroupsAreForOnesOwnQps) {
  const Gid group{0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  std::uint32_t qpn = 0;
  run({[&] {
         std::uint32_t pd, uar;
         EXPECT_EQ(port().alloc_pd(pd), 0);
         EXPECT_EQ(port().alloc_uar(uar), 0);
         qpn = make_qp(pd, uar, make_cq(uar));
         EXPECT_EQ(command(provider::attach_multicast(qpn, group)), 0);
         EXPECT_EQ(command(provider::attach_multicast(qpn, gids_of(identity())[1])), EINVAL);  // a host's address
         EXPECT_EQ(command(provider::attach_multicast(qpn + 1, group)), ENOENT);
         EXPECT_EQ(command(provider::detach_multicast(qpn, group)), 0);
         EXPECT_EQ(command(provider::attach_multicast(qpn, group)), 0);
         sleep_until(now() + 500_us);
       },
       [&] {
         sleep_until(now() + 200_us);
         EXPECT_EQ(command(provider::attach_multicast(qpn, group)), ENOENT);  // another process's QP
         EXPECT_EQ(command(provider::detach_multicast(qpn, group)), ENOENT);
       }});
  // The device would refuse to destroy an attached QP.
  auto opcodes = machine_.device.opcodes();
  const auto last = [&](CommandOpcode opcode) {
    return std::ranges::find(opcodes.rbegin(), opcodes.rend(), opcode) - opcodes.rbegin();
  };
  EXPECT_GT(last(CommandOpcode::detach_multicast), last(CommandOpcode::destroy_qp));
  EXPECT_EQ(std::ranges::count(opcodes, CommandOpcode::detach_multicast), 2);
}

TEST_F(KernelAgentTest, ResolvesPathsToHostsAndGroups) {
  run({[] {
    abi::AddressVector path;
    const auto to = [&](const Gid& gid, std::uint16_t index = 1) {
      std::ranges::copy(gid, path.remote_gid);
      path.sgid_index = index;
      return port().resolve_path(path);
    };
    EXPECT_EQ(to(gids_of(identity())[1]), 0);
    EXPECT_EQ(std::to_array(path.remote_mac), mac_of(identity()));
    EXPECT_EQ(to({0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 8, 7, 6}), 0);
    EXPECT_EQ(std::to_array(path.remote_mac), (Mac{0x33, 0x33, 9, 8, 7, 6}));
    EXPECT_EQ(to({0xfd, 9}), EHOSTUNREACH);
    EXPECT_EQ(to(gids_of(identity())[1], 3), EINVAL);
  }});
}

TEST_F(KernelAgentTest, PagesStandInTheMttBeforeTheRegion) {
  constexpr std::uint64_t kStart = 0x7000'0000'1234, kPages = 8195;  // a chunk of entries, and three entries
  machine_.device.max_mtt = 10'000;
  Duration taken_alone, taken;
  run({[&] {
    std::uint32_t pd;
    ASSERT_EQ(port().alloc_pd(pd), 0);
    const auto make = [&](std::uint64_t bytes) {
      abi::Mpt mr;
      mr.pd = pd;
      mr.start = mr.bus_address = kStart;
      mr.length = bytes;
      port().settle();
      const Duration before = now();
      EXPECT_EQ(command(provider::create_mpt(0, mr)), 0);
      port().settle();
      return now() - before;
    };
    make(1);
    make(kPages * 4096 - 7);
    taken_alone = make(0);
    taken = make(1000 * 4096);
  }});
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint64_t>> lent;
  std::vector<abi::Mpt> regions;
  for (const auto& command : machine_.device.commands) {
    if (command.opcode == CommandOpcode::create_mpt)
      regions.push_back(provider::decode<abi::CreateMpt>(command.input).context);
    if (command.opcode != CommandOpcode::map_icm) continue;
    const auto map = provider::decode<abi::MapIcm>(command.input);
    if (map.table == std::uint32_t(abi::IcmTable::mtt)) lent[map.first_index] = {map.count, map.memory};
  }
  ASSERT_EQ(regions.size(), 4u);
  ASSERT_EQ(lent.size(), 2u);
  EXPECT_EQ(lent[8192].first, 10'000u - 8192);
  EXPECT_EQ(regions[1].first_page, 1u);
  EXPECT_EQ(regions[1].log_page, 12);
  for (std::uint32_t page = 0; page < kPages; ++page) {
    const auto index = regions[1].first_page + page;
    std::array<std::byte, sizeof(abi::Mtt)> entry;
    ASSERT_TRUE(machine_.device.transfer(tlm::TLM_READ_COMMAND, kKernelPasid,
                                         lent[index / 8192 * 8192].second + index % 8192 * entry.size(), entry));
    ASSERT_EQ(abi::load_be<std::uint64_t>(entry.data()), kStart + page * 4096) << page;
  }
  EXPECT_EQ(taken, taken_alone + machine_.params.cpu.register_page * 1000);
  EXPECT_EQ(machine_.agent.counters().pages_registered, 1 + kPages + 1000);
}

TEST_F(KernelAgentTest, TheDeadGiveTheirPagesBack) {
  machine_.device.max_mtt = 16;
  const auto registered = [&](std::uint64_t pages) {
    std::uint32_t pd;
    EXPECT_EQ(port().alloc_pd(pd), 0);
    abi::Mpt mr;
    mr.pd = pd;
    mr.length = pages * 4096;
    return command(provider::create_mpt(0, mr));
  };
  run({[&] {
         EXPECT_EQ(registered(10), 0);
         EXPECT_EQ(registered(6), 0);
       },
       [&] {
         sleep_until(now() + 500_us);
         EXPECT_EQ(registered(17), ENOMEM);
         EXPECT_EQ(registered(16), 0);
         EXPECT_EQ(registered(1), ENOMEM);
       }});
}

TEST_F(KernelAgentTest, TheDeadAreNotCalledBack) {
  std::array<char, 4096> memory{};
  int called = 0;
  const auto make_present = [&] {
    std::uint32_t pd, region;
    EXPECT_EQ(port().alloc_pd(pd), 0);
    abi::Mpt mr;
    mr.pd = pd;
    mr.access_flags = abi::access::kOnDemand;
    mr.start = mr.bus_address = reinterpret_cast<std::uintptr_t>(memory.data());
    mr.length = memory.size();
    EXPECT_EQ(command(provider::create_mpt(0, mr), &region), 0);
    const auto done = [&](int) { ++called; };
    EXPECT_EQ(machine_.agent.make_present(port().pasid(), region, mr.start, mr.length, true, done), 0);
  };
  run({make_present, [&] {
         make_present();
         sleep_until(now() + 1_ms);
       }});
  EXPECT_EQ(called, 1);
}

TEST_F(KernelAgentTest, ARegionThatTheDeviceRefusesHasNoPages) {
  machine_.device.max_mtt = 16;
  machine_.device.refused[CommandOpcode::create_mpt] = abi::CommandStatus::bad_parameter;
  run({[&] {
    std::uint32_t pd;
    EXPECT_EQ(port().alloc_pd(pd), 0);
    abi::Mpt mr;
    mr.pd = pd;
    mr.length = 9 * 4096;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(command(provider::create_mpt(0, mr)), EINVAL);
    machine_.device.refused.clear();
    EXPECT_EQ(command(provider::create_mpt(0, mr)), 0);
    EXPECT_EQ(command(provider::create_mpt(0, mr)), ENOMEM);
  }});
}

TEST_F(KernelAgentTest, TheDeviceMayAskForAPhysicalAddress) {
  run({[&] {
    alignas(4096) static std::array<std::byte, 8192> memory;
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    std::uint64_t bus_address = 0;
    ASSERT_EQ(port().pin(memory.data(), memory.size(), true, bus_address), 0);
    const auto ask = [&](std::uint64_t at, bool translation) -> std::optional<std::uint64_t> {
      tlm::tlm_generic_payload request;
      PasidExtension pasid;
      TranslationExtension answer;
      pasid.pasid = port().pasid();
      request.set_extension(&pasid);
      if (translation) request.set_extension(&answer);
      request.set_command(tlm::TLM_IGNORE_COMMAND);
      request.set_address(at);
      request.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
      auto delay = sc_core::SC_ZERO_TIME;
      machine_.device.dma->b_transport(request, delay);
      request.clear_extension(&pasid);
      request.clear_extension(&answer);
      return request.is_response_ok() ? std::optional(answer.physical) : std::nullopt;
    };
    const auto first = ask(address + 24, true);
    ASSERT_TRUE(first);
    EXPECT_EQ(*first % 4096, 24u);
    EXPECT_EQ(ask(address, true), *first - 24);
    EXPECT_NE(ask(address + 4096, true), *first - 24);
    EXPECT_EQ(ask(address + 8192, true), std::nullopt);
    EXPECT_EQ(ask(address, false), std::nullopt);
  }});
}

TEST_F(KernelAgentTest, MemoryUnmappedSinceAbortsAndNothingElse) {
  run({[&] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::uint64_t bus_address = 0;
    ASSERT_EQ(port().pin(page, 4096, true, bus_address), 0);
    std::array<std::byte, 8> data{std::byte(0x5a)};
    auto& device = machine_.device;
    const auto address = reinterpret_cast<std::uint64_t>(page);
    EXPECT_TRUE(device.transfer(tlm::TLM_WRITE_COMMAND, port().pasid(), address, data));
    EXPECT_EQ(*static_cast<std::byte*>(page), std::byte(0x5a));
    EXPECT_FALSE(device.transfer(tlm::TLM_WRITE_COMMAND, port().pasid(), address + 4092, data));
    munmap(page, 4096);
    EXPECT_FALSE(device.transfer(tlm::TLM_READ_COMMAND, port().pasid(), address, data));
    EXPECT_EQ(port().pin(page, 4096, true, bus_address), EFAULT);
  }});
  EXPECT_EQ(machine_.iommu.counters().faults, 2u);
}

TEST_F(KernelAgentTest, OnlyTheFunctionItselfInterrupts) {
  run({[&] {
    const auto before = machine_.root_complex.counters().interrupts;
    std::array<std::byte, 4> data{};
    EXPECT_FALSE(machine_.device.transfer(tlm::TLM_WRITE_COMMAND, port().pasid(), abi::kMsiWindow, data));
    EXPECT_EQ(machine_.root_complex.counters().interrupts, before);
    EXPECT_TRUE(machine_.device.transfer(tlm::TLM_WRITE_COMMAND, kKernelPasid, abi::kMsiWindow + 16 * 63, data));
    EXPECT_EQ(machine_.root_complex.counters().interrupts, before + 1);
  }});
}

TEST_F(KernelAgentTest, AWaitingPollerSeesTheDevicesWrite) {
  constexpr Duration kWritten{100'000'000};
  Duration idle, woken;
  std::byte* memory = nullptr;
  Pasid poller = 0;
  run({[&] {
         poller = port().pasid();
         memory = port().allocate(64, 64);
         const auto start = now();
         port().wait_visible();
         port().settle();
         idle = now() - start;
         while (*memory == std::byte(0)) port().wait_visible();
         port().settle();
         woken = now();
       },
       [&] {
         sleep_until(kWritten);
         std::array<std::byte, 4> data{std::byte(1)};
         machine_.device.transfer(tlm::TLM_WRITE_COMMAND, poller, reinterpret_cast<std::uint64_t>(memory), data);
       }});
  const auto& params = machine_.params;
  EXPECT_EQ(idle, params.poll_interval + params.cpu.detect);
  EXPECT_EQ(woken, kWritten + params.cpu.detect);
}

// --- Two devices.

struct TwoDevices : sc_core::sc_module {
  TwoDevices() : sc_module(sc_core::sc_module_name("two_devices")) {
    for (std::uint16_t i = 0; i < 2; ++i) {
      auto& made = parts.emplace_back(std::make_unique<Part>(*this, i));
      made->root_complex.bar.bind(made->device.bar);
      made->root_complex.config.bind(made->device.config);
      made->device.dma.bind(made->root_complex.upstream);
    }
  }
  static abi::NetworkInterface interface(std::uint16_t device) {
    auto made = identity();
    made.device = made.mac[4] = made.ipv4[1] = std::uint8_t(device);
    return made;
  }
  struct Part {
    Part(TwoDevices& machine, std::uint16_t number)
        : root_complex(sc_core::sc_gen_unique_name("root_complex"), machine.params, machine.iommu, number),
          device(sc_core::sc_gen_unique_name("device")),
          agent(sc_core::sc_gen_unique_name("agent"), machine.params, machine.kernel, root_complex, interface(number)) {
    }
    RootComplex root_complex;
    FakeDevice device;
    KernelAgent agent;
  };
  HostParams params;
  Iommu iommu{"h0"};
  HostKernel kernel{params, iommu, Neighbours({interface(0), interface(1)})};
  std::vector<std::unique_ptr<Part>> parts;
};

TEST(TwoDevicesTest, AProcessIsForgottenByEach) {
  TwoDevices machine;
  SoftwareProcess process("process", machine.params, machine.parts[1]->agent, [&] {
    const Pasid pasid = static_cast<CpuPort&>(*process_port()).pasid();
    std::uint32_t pd = 0;
    EXPECT_EQ(machine.parts[0]->agent.alloc_pd(pasid, pd), 0);
    EXPECT_EQ(process_port()->alloc_pd(pd), 0);
    abi::Mpt region;
    region.pd = pd;
    region.pasid = pasid;
    abi::CommandResult result;
    EXPECT_EQ(process_port()->command(0, provider::encode(provider::create_mpt(0, region)),
                                      std::as_writable_bytes(std::span(&result, 1))),
              0);
  });
  sc_core::sc_start(1, sc_core::SC_SEC);
  EXPECT_TRUE(process.finished());
  EXPECT_EQ(machine.kernel.processes(), 0u);
  const auto destroyed = [&](std::size_t device) {
    return std::ranges::count(machine.parts[device]->device.opcodes(), CommandOpcode::destroy_mpt);
  };
  EXPECT_EQ(destroyed(0), 0);
  EXPECT_EQ(destroyed(1), 1);
  for (const auto& part : machine.parts) EXPECT_EQ(part->agent.dealloc_pd(kKernelPasid + 1, 1), ENOENT);
}

TEST(TwoDevicesTest, TheKernelIsReadyWhenBothAre) {
  TwoDevices machine;
  machine.parts[1]->device.refused[CommandOpcode::create_eq] = abi::CommandStatus::exceeds_limit;
  sc_core::sc_start(1, sc_core::SC_SEC);
  EXPECT_TRUE(machine.parts[0]->agent.ready());
  EXPECT_FALSE(machine.kernel.ready());
  EXPECT_THAT(machine.kernel.failure(), HasSubstr("create_eq"));
}

}  // namespace
}  // namespace rnicsim::host
