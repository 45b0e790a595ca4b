// SPDX-License-Identifier: Apache-2.0
// The device's own memory: access times, rights, and the order of a queue pair's writes to it and to host memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "model/nic/contexts/device_memory.h"
#include "model/nic/contexts/payload_memory.h"
#include "tests/timing/dma_bench.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test::device_memory {
namespace {

using abi::CommandStatus;
using abi::CqeSyndrome;
using abi::SendOpcode;

Payload payload(std::uint32_t bytes, std::uint8_t value) {
  Payload data(bytes);
  std::ranges::fill(data.writable(), std::byte{value});
  return data;
}

// --- The port.
class Port : public testing::Test, DmaClient {
 protected:
  ~Port() override {
    memory.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }
  struct Done {
    Duration at;
    AccessResult result;
    std::vector<std::byte> data;
  };
  DmaReply tells(std::uint64_t number) { return {this, 0, number}; }
  void run() { sc_core::sc_start(100, sc_core::SC_US); }
  void dma_done(std::uint32_t, std::uint64_t tag, AccessResult result, Payload&& data) override {
    done[tag] = {now(), result, {data.bytes().begin(), data.bytes().end()}};
  }

  DeviceMemoryParams params{.size = 4_KiB, .latency = 40_ns, .line_interval = 2_ns};
  std::unique_ptr<DeviceMemory> memory = std::make_unique<DeviceMemory>(params, 1 << 20);
  std::map<std::uint64_t, Done> done;
};

TEST_F(Port, TakesALineEachIntervalAndALatency) {
  memory->read(0, 64, tells(0));
  memory->read(0, 65, tells(1));                      // two lines
  memory->write(63, payload(2, 1), tells(2), false);  // two lines, too
  memory->read(0, 0, tells(3));
  run();
  EXPECT_EQ(done[0].at, 42_ns);
  EXPECT_EQ(done[1].at, 46_ns);
  EXPECT_EQ(done[2].at, 50_ns);
  EXPECT_EQ(done[3].at, 50_ns);
  EXPECT_EQ(memory->counters().busy_ps, 10'000u);
  EXPECT_EQ(memory->counters().wait_ps, 2'000u + 6'000u + 10'000u);
}

TEST_F(Port, AReadSeesTheWritesAheadAndNoneBehind) {
  memory->write(8, payload(8, 1), tells(0), false);
  memory->read(8, 8, tells(1));
  memory->write(8, payload(8, 2), tells(2), false);
  memory->write(8, payload(8, 3), tells(3), true);  // discard: timing only, the payload is not stored
  memory->read(8, 8, tells(4));
  run();
  EXPECT_EQ(done[1].data, std::vector(8, std::byte{1}));
  EXPECT_EQ(done[4].data, std::vector(8, std::byte{2}));
}

TEST_F(Port, NothingLiesBehindItsEnd) {
  memory->read(4096 - 8, 8, tells(0));
  memory->read(4096 - 8, 9, tells(1));
  memory->write(4096, payload(1, 1), tells(2), false);
  memory->read(~0ull, 2, tells(3));
  run();
  EXPECT_EQ(done[0].result, AccessResult::ok);
  for (const auto number : {1u, 2u, 3u}) EXPECT_EQ(done[number].result, AccessResult::bus_error) << number;
}

TEST_F(Port, TheCpuReachesWholeWords) {
  const std::vector<std::byte> bytes(512, std::byte{5});
  const auto part = [&](std::size_t count) { return std::span(bytes).first(count); };
  EXPECT_TRUE(memory->store(0, part(4)));
  EXPECT_TRUE(memory->store(4096 - 256, part(256)));
  for (const auto& [offset, count] : {std::pair{2u, 4u}, {0u, 3u}, {0u, 0u}, {4096u, 4u}, {4092u, 8u}})
    EXPECT_FALSE(memory->store(offset, part(count))) << offset << " " << count;
  std::vector<std::byte> found(8);
  EXPECT_TRUE(memory->load(0, found));
  EXPECT_EQ(found[3], std::byte{5});
  EXPECT_EQ(found[4], std::byte{0});
  EXPECT_FALSE(memory->load(1, found));
  EXPECT_FALSE(memory->load(4092, found));
  EXPECT_EQ(memory->counters().cpu_stores, 2u);
  EXPECT_EQ(memory->counters().cpu_loads, 1u);
}

TEST_F(Port, AResetForgetsWhatIsUnderWayAndAllBytes) {
  const std::vector<std::byte> bytes(64, std::byte{5});
  ASSERT_TRUE(memory->store(0, bytes));
  memory->write(64, payload(8, 1), tells(0), false);
  memory->reset();
  run();
  EXPECT_FALSE(done.contains(0));
  std::vector<std::byte> found(128, std::byte{9});
  ASSERT_TRUE(memory->load(0, found));
  EXPECT_EQ(found, std::vector<std::byte>(128));
}

// --- The order of writes to both memories.
class Order : public testing::Test {
 protected:
  static constexpr Dma::Place at_host(std::uint64_t address) { return {DmaBench::kProgram, address, address}; }
  static constexpr Dma::Place on_device(std::uint64_t address) { return {DeviceMemory::kPlace, address, address}; }

  void build(const DmaParams& params = {}) {
    bench = std::make_unique<DmaBench>(params);
    device = std::make_unique<DeviceMemory>(DeviceMemoryParams{}, 1 << 20);
    memory = std::make_unique<PayloadMemory>(bench->dma(), *device);
  }
  ~Order() override {
    memory.reset();
    device.reset();
  }
  void write(PayloadMemory::Order& order, const Dma::Place& place, Dma::Placement placement = {}) {
    const auto number = done.size();
    done.push_back({});
    memory->write(order, place, payload(64, 1), bench->dma().closure([this, number](AccessResult result, Payload) {
      done[number] = result == AccessResult::ok ? now() : Agenda::kNever;
      ended.push_back(number);
    }),
                  placement);
  }
  Duration alone(const Dma::Place& place) {
    build();
    PayloadMemory::Order order;
    bench->at({}, [&] { write(order, place); });
    bench->run();
    const auto took = done.back();
    done.clear();
    ended.clear();
    memory.reset();
    device.reset();
    bench.reset();
    return took;
  }

  std::unique_ptr<DmaBench> bench;
  std::unique_ptr<DeviceMemory> device;
  std::unique_ptr<PayloadMemory> memory;
  std::vector<Duration> done;
  std::vector<std::size_t> ended;
};

TEST_F(Order, TheFasterMemoryDoesNotPassTheSlower) {
  const auto host = alone(at_host(0)), own = alone(on_device(0));
  ASSERT_LT(own, host);
  build();
  PayloadMemory::Order order, other;
  bench->at({}, [&] {
    write(order, at_host(0));
    write(order, on_device(0));
    write(order, on_device(64));
    write(order, at_host(4096));
    write(other, on_device(128));  // another queue pair does not wait
  });
  bench->run();
  EXPECT_EQ(ended, (std::vector<std::size_t>{4, 0, 1, 2, 3}));
  EXPECT_EQ(done[0], host);
  EXPECT_EQ(done[1], host + own);
  EXPECT_EQ(device->counters().turns, 2u);
}

TEST_F(Order, WhatHasLandedHoldsNothing) {
  const auto host = alone(at_host(0)), own = alone(on_device(0));
  for (const auto later : {host, host + 1_ps, host - 1_ps}) {
    build();
    done.clear();
    PayloadMemory::Order order;
    bench->at({}, [&] { write(order, at_host(0)); });
    bench->at(later, [&] { write(order, on_device(0)); });
    bench->run();
    EXPECT_EQ(done[1], std::max(later, host) + own);
    EXPECT_EQ(device->counters().turns, later < host ? 1u : 0u);
    memory.reset();
    device.reset();
    bench.reset();
  }
}

// Their landing times are not known yet.
TEST_F(Order, WritesThatWaitForCreditsAreWaitedFor) {
  DmaParams params;
  params.posted_headers = 1;
  build(params);
  PayloadMemory::Order order;
  bench->at({}, [&] {
    for (std::uint64_t i = 0; i < 4; ++i) write(order, at_host(4096 * i));
    write(order, on_device(0));
    write(order, at_host(65536));
  });
  bench->run();
  EXPECT_EQ(ended, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_GT(done[4], done[3]);
}

TEST_F(Order, AQueuePairThatIsForgottenIsToldOfWhatWaits) {
  build();
  PayloadMemory::Order order;
  bench->at({}, [&] {
    write(order, at_host(0));
    write(order, on_device(0));
    write(order, at_host(64));
    memory->forget(order);
    EXPECT_EQ(ended, (std::vector<std::size_t>{1, 2}));
    EXPECT_EQ(done[1], Agenda::kNever);
    write(order, on_device(8));  // the next QP with the same number: its write must not land before the first one
  });
  bench->run();
  EXPECT_EQ(ended, (std::vector<std::size_t>{1, 2, 0, 3}));
  EXPECT_EQ(device->counters().writes, 1u);
}

// --- Device memory on a NIC.
constexpr std::uint32_t kDeviceKey = 9 << 8 | 0x77;
constexpr std::uint32_t kRights =
    access::kLocalWrite | access::kRemoteWrite | access::kRemoteRead | access::kRemoteAtomic | access::kZeroBased;

class OnDevice : public Pair {
 protected:
  static abi::CreateMpt region(Node& node, std::uint64_t offset, std::uint64_t bytes) {
    auto mpt = node.region(kDeviceKey, 0, bytes, kRights);
    mpt.context.kind = abi::MptKind::device_memory;
    mpt.context.bus_address = offset;
    return mpt;
  }
  static std::uint32_t syndrome(Node& node) { return node.output<abi::CommandResult>().syndrome; }
  static std::uint32_t word(Node& node, std::uint64_t offset) {
    return node.host.mmio_read(abi::kDeviceMemoryBase + offset);
  }
  NicParams params;
};

TEST_F(OnDevice, RegionsLieInside) {
  const auto size = params.device_memory.size.bytes;
  for (const auto& [offset, bytes] :
       {std::pair<std::uint64_t, std::uint64_t>{0, size + 1}, {size, 1}, {1, size}, {~0ull, 1}, {size + 1, 0}})
    EXPECT_EQ(a().command(region(a(), offset, bytes)), CommandStatus::bad_parameter) << offset << " " << bytes;
  auto paged = region(a(), 0, 4096);
  paged.context.log_page = 12;
  EXPECT_EQ(a().command(paged), CommandStatus::bad_parameter);
  auto unknown = region(a(), 0, 4096);
  unknown.context.kind = abi::MptKind(6);
  EXPECT_EQ(a().command(unknown), CommandStatus::bad_parameter);
  EXPECT_EQ(a().command(region(a(), 64, size - 64)), CommandStatus::ok);
  // A region on device memory keeps its kind.
  auto modified = region(a(), 0, 64);
  modified.header.opcode = std::uint16_t(abi::CommandOpcode::modify_mpt);
  EXPECT_EQ(a().command(modified), CommandStatus::bad_parameter);
}

TEST_F(OnDevice, WithoutItThereIsNone) {
  params.device_memory.size = {0};
  build(params);
  EXPECT_EQ(a().command(region(a(), 0, 0)), CommandStatus::not_supported);
  EXPECT_EQ(word(a(), 0), 0u);  // refused
  EXPECT_EQ(a().nic.counters().pcie.mmio_refused, 1u);
  const auto features =
      std::uint64_t{a().host.mmio_read(abi::reg::kFeatures)} << 32 | a().host.mmio_read(abi::reg::kFeatures + 4);
  EXPECT_EQ(features & abi::feature::kDeviceMemory, 0u);
  EXPECT_NE(features & abi::feature::kRelaxedOrdering, 0u);
}

TEST_F(OnDevice, ThePeerWritesThereWithoutPcie) {
  connect();
  ASSERT_EQ(b().command(region(b(), 4096, 8192)), CommandStatus::ok);
  a().fill(3);
  const auto before = b().nic.counters().dma;
  a().post_send({.opcode = SendOpcode::write, .length = 5000, .remote = Remote{100, kDeviceKey}});
  ASSERT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  const auto after = b().nic.counters();
  EXPECT_EQ(after.dma.writes, before.writes);
  EXPECT_EQ(after.dma.reads, before.reads);
  EXPECT_EQ(after.device_memory.write_bytes, 5000u);
  for (std::uint32_t i = 0; i < 5000; i += 4)
    EXPECT_EQ(word(b(), 4096 + 100 + i), abi::load_be<std::uint32_t>(a().host.at(a().buffer + i)));
  a().post_send({.opcode = SendOpcode::write, .length = 4, .remote = Remote{8192 - 3, kDeviceKey}});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::remote_access_error);
}

// The CPU's stores reach the device before the doorbell behind them.
TEST_F(OnDevice, ASendSeesTheStoresBeforeIt) {
  connect();
  ASSERT_EQ(a().command(region(a(), 0, 4096)), CommandStatus::ok);
  std::vector<std::byte> line(256, std::byte{0x3c});
  ASSERT_TRUE(a().host.mmio(abi::kDeviceMemoryBase + 512, line));
  auto send = SendArguments{.opcode = SendOpcode::write, .length = 256, .remote = at_b(), .lkey = kDeviceKey};
  send.address = 512;
  a().post_send(send);
  ASSERT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_TRUE(std::equal(line.begin(), line.end(), b().host.at(b().buffer)));
}

TEST_F(OnDevice, TheBarEndsWithTheMemory) {
  const auto size = params.device_memory.size.bytes;
  const std::vector<std::byte> line(64, std::byte{1});
  EXPECT_TRUE(a().host.mmio(abi::kDeviceMemoryBase + size - 64, line));
  EXPECT_FALSE(a().host.mmio(abi::kDeviceMemoryBase + size - 32, line));
  EXPECT_FALSE(a().host.mmio(abi::kDeviceMemoryBase + size, std::span(line).first(4)));
  EXPECT_FALSE(a().host.mmio(abi::kDeviceMemoryBase - 4, std::span(line).first(8)));
  EXPECT_FALSE(a().host.mmio(abi::kDeviceMemoryBase + 2, std::span(line).first(4)));
}

TEST_F(OnDevice, AFunctionLevelResetClearsIt) {
  const std::vector<std::byte> line(64, std::byte{0x11});
  ASSERT_TRUE(a().host.mmio(abi::kDeviceMemoryBase, line));
  EXPECT_EQ(word(a(), 0), 0x11111111u);
  a().host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
  a().host.config_write(abi::config::kCommand, abi::config::kCommandMemory | abi::config::kCommandBusMaster, 2);
  EXPECT_EQ(word(a(), 0), 0u);
}

// --- Relaxed ordering, selected by the region.
class Relaxed : public Pair {
 protected:
  static constexpr std::uint32_t kRelaxedKey = 8 << 8 | 0x33;

  // 4 KiB to b's strict region, with few credits, then 64 bytes to the relaxed region, over one queue pair.
  struct Found {
    Counter overtakings;
    bool strict_first;  // the strict region's last write landed before the relaxed write
  };
  Found write_both(bool capable) {
    NicParams params;
    params.capabilities.relaxed_ordering = capable;
    params.dma.posted_headers = 7;     // a write takes four
    params.dma.write_latency = 20_us;  // longer than the packets are apart
    build(params);
    connect();
    const auto own = b().host.allocate(4096);
    b().register_memory(kRelaxedKey, own, 4096, 0xf | access::kRelaxedOrdering);
    // Caches the region's context: a fetch would not pass the writes.
    a().post_send({.opcode = SendOpcode::write, .length = 64, .remote = Remote{own + 64, kRelaxedKey}});
    EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
    b().post_receive(b().buffer + 4096, 64);
    b().host.landed.clear();
    for (int i = 0; i < 16; ++i)
      a().post_send({.opcode = SendOpcode::write, .length = 1024, .remote = at_b(), .flags = 0});
    a().post_send({.opcode = SendOpcode::write, .length = 64, .remote = Remote{own, kRelaxedKey}, .flags = 0});
    a().post_send({.opcode = SendOpcode::send, .length = 64});
    EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::success);
    // The completion is strictly ordered: it lands behind all earlier writes.
    const auto of = [&](std::uint64_t from, std::uint64_t bytes) {
      return std::ranges::count_if(
          b().host.landed, [&](const auto& write) { return write.first >= from && write.first < from + bytes; });
    };
    EXPECT_EQ(of(b().buffer, 1024), 16);
    EXPECT_EQ(of(b().buffer + 4096, 64), 1);
    EXPECT_EQ(of(own, 64), 1);
    const auto last = [&](std::uint64_t address) {
      std::size_t found = 0;
      for (std::size_t i = 0; i < b().host.landed.size(); ++i)
        if (b().host.landed[i].first == address) found = i;
      return found;
    };
    return {b().nic.counters().dma.overtakings, last(own) > last(b().buffer)};
  }
};

TEST_F(Relaxed, ItsWritePassesThoseThatWaitForCreditsButNoCompletionDoes) {
  const auto found = write_both(true);
  EXPECT_EQ(found.overtakings, 1u);
  EXPECT_FALSE(found.strict_first);
}

TEST_F(Relaxed, ADeviceWithoutItIgnoresTheAttribute) {
  const auto found = write_both(false);
  EXPECT_EQ(found.overtakings, 0u);
  EXPECT_TRUE(found.strict_first);
}

}  // namespace
}  // namespace rnicsim::nic::test::device_memory
