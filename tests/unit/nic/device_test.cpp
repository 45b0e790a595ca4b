// SPDX-License-Identifier: Apache-2.0
// The NIC as a module of another platform: answers, delays, memory that waits, frames.
#include "model/device/device.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/device/cable.h"
#include "tests/library/platform/bare_host.h"

namespace rnicsim::device {
namespace {

using bare::BareHost;
using sc_core::SC_NS;
using sc_core::SC_US;

struct Machine {
  Machine(const std::string& name, std::uint8_t number)
      : device((name + "_nic").c_str()), host((name + "_host").c_str(), number) {
    host.config.bind(device.config);
    host.bar.bind(device.bar);
    device.dma.bind(host.memory);
  }
  Device device;
  BareHost host;
};

class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() { sc_core::sc_report_handler::set_actions(sc_core::SC_ERROR, sc_core::SC_THROW); }
  ~DeviceTest() override {
    a.reset();
    b.reset();
    cable.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  void make_pair() {
    cable = std::make_unique<Cable>("cable");
    cable->connect(a->device, b->device);
  }
  // Runs `thread` as a thread of the platform, and the simulation to its end.
  void run(std::function<void()> thread) {
    bool ended = false;
    sc_core::sc_spawn([&, thread = std::move(thread)] {
      thread();
      ended = true;
    });
    sc_core::sc_start(10, sc_core::SC_MS);
    EXPECT_TRUE(ended);
  }
  void fill_and_write() {
    for (auto* machine : {a.get(), b.get()}) machine->host.bring_up();
    a->host.connect(b->host);
    b->host.connect(a->host);
    for (std::size_t i = 0; i < BareHost::kBufferBytes; ++i) a->host.bytes[BareHost::kBuffer + i] = i * 7 >> 2 & 0xff;
    const auto cqe = a->host.write_buffer();
    EXPECT_EQ(cqe.opcode_owner, 0);  // the first lap of the ring, a requester's CQE
    EXPECT_EQ(cqe.syndrome, abi::CqeSyndrome::success);
    EXPECT_EQ(a->host.interrupts, 1u);
    EXPECT_TRUE(std::equal(&a->host.bytes[BareHost::kBuffer],
                           &a->host.bytes[BareHost::kBuffer + BareHost::kBufferBytes],
                           &b->host.bytes[BareHost::kBuffer]));
  }

  struct Request : tlm::tlm_generic_payload {
    Request(tlm::tlm_command command, std::uint64_t address, unsigned size) {
      set_command(command);
      set_address(address);
      set_data_ptr(data.data());
      set_data_length(size);
      set_streaming_width(size);
    }
    std::array<unsigned char, 16> data{};
  };
  template <class Socket>
  tlm::tlm_response_status send(Socket& socket, Request& request, sc_core::sc_time delay = sc_core::SC_ZERO_TIME) {
    socket->b_transport(request, delay);
    EXPECT_EQ(delay, sc_core::SC_ZERO_TIME);
    return request.get_response_status();
  }

  std::unique_ptr<Machine> a = std::make_unique<Machine>("a", std::uint8_t{1});
  std::unique_ptr<Machine> b = std::make_unique<Machine>("b", std::uint8_t{2});
  std::unique_ptr<Cable> cable;
};

TEST_F(DeviceTest, WritesOverACable) {
  make_pair();
  run([this] { fill_and_write(); });
  EXPECT_EQ(a->device.counters().rx.packets, b->device.counters().tx.packets);
}

// Both CPUs continue while the model waits for memory: their doorbells must find no block in the middle of an
// operation.
TEST_F(DeviceTest, MemoryMayWait) {
  make_pair();
  a->host.memory_time = {700, SC_NS};
  b->host.memory_time = {300, SC_NS};
  bool done = false;
  unsigned reads = 0;
  sc_core::sc_spawn([&] {
    sc_core::wait(100, SC_NS);
    while (!done) {
      Request request(tlm::TLM_READ_COMMAND, 0, 4);
      send(a->host.config, request, {37, SC_NS});
      EXPECT_EQ(request.data[0], 0x0d);
      EXPECT_FALSE(a->host.memory_busy || b->host.memory_busy);
      ++reads;
    }
  });
  run([&] {
    fill_and_write();
    done = true;
  });
  EXPECT_GT(reads, 100u);
}

TEST_F(DeviceTest, WhatItDoesHasTheTimeOfItsCause) {
  make_pair();
  run([this] {
    Request request(tlm::TLM_READ_COMMAND, 0, 2);
    EXPECT_EQ(send(a->host.config, request, {250, SC_NS}), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(sc_core::sc_time_stamp(), sc_core::sc_time(250, SC_NS));
  });
}

TEST_F(DeviceTest, DelaysComeFromThreads) {
  make_pair();
  Request request(tlm::TLM_READ_COMMAND, 0, 2);
  sc_core::sc_time delay(1, SC_NS);
  EXPECT_EQ(send(a->host.config, request), tlm::TLM_OK_RESPONSE);
  EXPECT_THROW(a->host.config->b_transport(request, delay), sc_core::sc_report);
}

TEST_F(DeviceTest, RefusesWhatItDoesNotTake) {
  make_pair();
  auto& bar = a->host.bar;
  auto& config = a->host.config;
  Request magic(tlm::TLM_READ_COMMAND, abi::reg::kMagic, 4);
  EXPECT_EQ(send(bar, magic), tlm::TLM_ADDRESS_ERROR_RESPONSE);  // memory space is not enabled
  Request command(tlm::TLM_WRITE_COMMAND, abi::config::kCommand, 2);
  command.data[0] = abi::config::kCommandMemory;
  EXPECT_EQ(send(config, command), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(send(bar, magic), tlm::TLM_OK_RESPONSE);
  Request nowhere(tlm::TLM_READ_COMMAND, abi::kBarSize, 4);
  EXPECT_EQ(send(bar, nowhere), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  using Access = std::pair<std::uint64_t, unsigned>;
  for (const auto& [offset, bytes] : {Access{abi::reg::kMagic, 4}, Access{abi::reg::kFeatures, 8},
                                      Access{abi::reg::kFeatures + 4, 4}, Access{abi::kMsixTable, 16}}) {
    Request read(tlm::TLM_READ_COMMAND, offset, bytes);
    EXPECT_EQ(send(bar, read), tlm::TLM_OK_RESPONSE) << offset << ' ' << bytes;
  }
  for (const auto& [offset, bytes] :
       {Access{abi::reg::kMagic, 2}, Access{abi::reg::kMagic, 8}, Access{abi::reg::kFeatures + 2, 4},
        Access{abi::reg::kHealthCounter + 4, 4}, Access{abi::reg::kCommandDoorbell, 4}, Access{abi::kUarBase, 8}}) {
    Request read(tlm::TLM_READ_COMMAND, offset, bytes);
    EXPECT_EQ(send(bar, read), tlm::TLM_ADDRESS_ERROR_RESPONSE) << offset << ' ' << bytes;
  }
  Request beyond(tlm::TLM_READ_COMMAND, abi::config::kSize, 4);
  EXPECT_EQ(send(config, beyond), tlm::TLM_ADDRESS_ERROR_RESPONSE);
  unsigned char enable = 0xff;
  Request enabled(tlm::TLM_READ_COMMAND, 0, 4);
  enabled.set_byte_enable_ptr(&enable);
  EXPECT_EQ(send(bar, enabled), tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  Request streams(tlm::TLM_READ_COMMAND, 0, 8);
  streams.set_streaming_width(4);
  EXPECT_EQ(send(config, streams), tlm::TLM_BURST_ERROR_RESPONSE);
  Request nothing(tlm::TLM_IGNORE_COMMAND, 0, 4);
  EXPECT_EQ(send(bar, nothing), tlm::TLM_COMMAND_ERROR_RESPONSE);
}

TEST_F(DeviceTest, FramesOfStrangersAreCounted) {
  make_pair();
  const std::vector<std::byte> frame(60);
  a->device.frame_in->receive(frame, {1, SC_US});
  sc_core::sc_start(1, SC_US);
  EXPECT_EQ(a->device.counters().steering.not_roce, 0u);
  sc_core::sc_start(1, SC_US);
  EXPECT_EQ(a->device.counters().port.rx_bytes, 60u);
  EXPECT_EQ(a->device.counters().steering.not_roce, 1u);
}

TEST_F(DeviceTest, RequestsHaveData) {
  make_pair();
  for (auto command : {tlm::TLM_READ_COMMAND, tlm::TLM_WRITE_COMMAND}) {
    Request request(command, 0, 4);
    request.set_data_ptr(nullptr);
    EXPECT_EQ(send(a->host.config, request), tlm::TLM_GENERIC_ERROR_RESPONSE);
    EXPECT_EQ(send(a->host.bar, request), tlm::TLM_GENERIC_ERROR_RESPONSE);
  }
}

TEST_F(DeviceTest, FramesDoNotOvertake) {
  make_pair();
  const std::vector<std::byte> frame(64);
  auto& in = a->device.frame_in;
  in->receive(frame, {100, SC_NS});
  EXPECT_THROW(in->receive(frame, {99, SC_NS}), sc_core::sc_report);
  EXPECT_THROW(in->receive(frame, sc_core::sc_max_time()), sc_core::sc_report);
  EXPECT_THROW(in->receive({}, {100, SC_NS}), sc_core::sc_report);
  in->receive(frame, {100, SC_NS});
  sc_core::sc_start(1, SC_US);
  EXPECT_EQ(a->device.counters().steering.not_roce, 2u);
  in->receive(frame, sc_core::SC_ZERO_TIME);
  sc_core::sc_start(1, SC_US);
  EXPECT_EQ(a->device.counters().steering.not_roce, 3u);
}

TEST_F(DeviceTest, NamesItsCounters) {
  make_pair();
  const std::vector<std::byte> frame(60);
  a->device.frame_in->receive(frame, sc_core::SC_ZERO_TIME);
  std::uint64_t frames = 0;
  a->device.each_counter([&](const std::string& path, std::uint64_t value, const char* unit, const char*) {
    if (path == "nic.port.rx_frames" && unit == std::string("frames")) frames = value;
  });
  EXPECT_EQ(frames, 1u);
}

TEST(DeviceTime, WantsPicoseconds) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_ERROR, sc_core::SC_THROW);
  sc_core::sc_get_curr_simcontext()->reset();
  sc_core::sc_set_time_resolution(1, SC_NS);
  EXPECT_THROW(Device("device"), sc_core::sc_report);
  sc_core::sc_get_curr_simcontext()->reset();
}

}  // namespace
}  // namespace rnicsim::device
