// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of the kernel's command gate: the gate, its state, and commands as a process sends them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>

#include "model/host/command_gate.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {

using abi::CommandStatus;
using namespace rnicsim::literals;

class CommandGateTest : public ::testing::Test {
 protected:
  static constexpr Pasid kMine = 7;
  static constexpr Pasid kOther = 8;
  static constexpr std::uint32_t kPage = DeviceRange::kPage;

  CommandGateTest() {
    abi::DeviceCapabilities device;
    device.max_pd = 8;
    device.max_cq = 4;
    device.max_mr = 8;
    device.max_mr_size = 1 << 20;
    device.max_mtt = 32;
    device.max_qp = 0x43;
    device.max_flows = 2;
    device.max_flow_counters = 2;
    device.max_srq = 4;
    device.device_memory = 3 * kPage;
    objects_.set_limits(device);
    for (const Pasid pasid : {kMine, kOther}) {
      EXPECT_EQ(objects_.alloc_pd(pasid, pd_[pasid]), 0);
      EXPECT_EQ(objects_.alloc_uar(pasid, uar_[pasid]), 0);
    }
  }

  template <class Mailbox>
  int admit(Pasid process, Mailbox& mailbox) {
    std::vector<std::byte> input(provider::encode(mailbox).begin(), provider::encode(mailbox).end());
    const int error = gate_.admit(process, input);
    mailbox = provider::decode<Mailbox>(input);
    return error;
  }
  template <class Mailbox>
  int run(Pasid process, Mailbox& mailbox, CommandStatus status = CommandStatus::ok) {
    const int error = admit(process, mailbox);
    if (error == 0) gate_.settle(provider::encode(mailbox), status);
    return error;
  }

  abi::CreateCq cq_mailbox(Pasid owner, std::uint32_t vector = 0) {
    abi::Cqc context;
    context.uar_page = static_cast<std::uint16_t>(uar_[owner]);
    context.eqn = vector;
    context.pasid = 0x999;
    return provider::create_cq(0, context);
  }
  std::uint32_t make_cq(Pasid owner) {
    auto mailbox = cq_mailbox(owner);
    EXPECT_EQ(run(owner, mailbox), 0);
    return mailbox.header.object;
  }
  abi::CreateQp qp_mailbox(Pasid owner, std::uint32_t cqn) {
    abi::Qpc context;
    context.uar_page = static_cast<std::uint16_t>(uar_[owner]);
    context.pd = pd_[owner];
    context.send_cqn = cqn;
    context.receive_cqn = cqn;
    return provider::create_qp(0, context);
  }
  std::uint32_t make_qp(Pasid owner, std::uint32_t cqn, abi::Transport transport = abi::Transport::raw) {
    auto mailbox = qp_mailbox(owner, cqn);
    mailbox.context.transport = transport;
    EXPECT_EQ(run(owner, mailbox), 0);
    return mailbox.header.object;
  }
  abi::CreateRss rss_mailbox(std::initializer_list<std::uint32_t> qpns) {
    abi::CreateRss mailbox{.header = provider::header(abi::CommandOpcode::create_rss)};
    mailbox.log_queues = static_cast<std::uint8_t>(std::bit_width(qpns.size()) - 1);
    std::ranges::copy(qpns, mailbox.queues);
    return mailbox;
  }
  abi::CreateFlow flow_mailbox(std::uint32_t qpn, std::optional<std::uint32_t> counter = {}) {
    abi::CreateFlow mailbox{.header = provider::header(abi::CommandOpcode::create_flow), .qpn = qpn};
    if (counter) mailbox.flags = abi::CreateFlow::kCount;
    mailbox.counter = counter.value_or(0);
    return mailbox;
  }
  int destroy(Pasid process, abi::CommandOpcode opcode, std::uint32_t number) {
    auto mailbox = provider::header(opcode, number);
    return run(process, mailbox);
  }

  std::map<Pasid, std::uint32_t> pd_, uar_;
  Objects objects_;
  Gid gid_{0xfd, 1};
  CommandGate gate_{objects_, {gid_}, Neighbours({}), {.first_completion_eqn = 1, .count = 2}, 4_KiB, true};
};

}  // namespace rnicsim::host
