// SPDX-License-Identifier: Apache-2.0
// A process can use only its own objects, and the kernel fills in fields that only the kernel knows.
#include "tests/unit/host/command_gate.h"

namespace rnicsim::host {
namespace {

TEST(NumberPool, AReturnedNumberIsTheLastToComeBack) {
  NumberPool pool(10, 13);
  EXPECT_EQ(pool.take(), 10u);
  EXPECT_EQ(pool.take(), 11u);
  pool.give_back(10);
  EXPECT_EQ(pool.take(), 12u);
  EXPECT_EQ(pool.take(), 10u);
  EXPECT_EQ(pool.take(), std::nullopt);
  EXPECT_EQ(NumberPool(5, 5).take(), std::nullopt);
  EXPECT_EQ(NumberPool(5, 2).take(), std::nullopt);
}

TEST(Gids, OfAHost) {
  abi::NetworkInterface host;
  host.mac[0] = 2, host.mac[4] = 3, host.mac[5] = 1;
  host.ipv4[0] = 10, host.ipv4[3] = 1;
  host.ipv6[0] = 0xfd, host.ipv6[15] = 1;
  const auto gids = gids_of(host);
  ASSERT_EQ(gids.size(), 3u);
  EXPECT_EQ(gids[0], (Gid{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 3, 1}));
  EXPECT_EQ(gids[1], (Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}));
  EXPECT_EQ(gids[2], (Gid{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  const Neighbours neighbours({host});
  for (const auto& gid : gids) EXPECT_EQ(neighbours.resolve(gid), mac_of(host));
  EXPECT_EQ(neighbours.resolve(Gid{}), std::nullopt);
}
TEST_F(CommandGateTest, CompletesACq) {
  auto mailbox = cq_mailbox(kMine, 1);
  ASSERT_EQ(run(kMine, mailbox), 0);
  EXPECT_EQ(mailbox.header.object, 1u);
  EXPECT_EQ(mailbox.context.pasid, kMine);
  EXPECT_EQ(mailbox.context.eqn, 2u);
  auto no_vector = cq_mailbox(kMine, 2);
  EXPECT_EQ(run(kMine, no_vector), EINVAL);
  auto others_page = cq_mailbox(kOther);
  EXPECT_EQ(run(kMine, others_page), EINVAL);
}

TEST_F(CommandGateTest, KeysKeepTheProcesssTag) {
  abi::Mpt context;
  context.pd = pd_[kMine];
  context.key = 0xdeadbe42;
  auto mailbox = provider::create_mpt(0, context);
  ASSERT_EQ(run(kMine, mailbox), 0);
  EXPECT_EQ(mailbox.context.key, mailbox.header.object << 8 | 0x42);
  EXPECT_GE(mailbox.header.object, 2u);
  EXPECT_EQ(mailbox.context.pasid, kMine);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), EBUSY);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, mailbox.header.object), ENOENT);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, mailbox.header.object), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, mailbox.header.object), ENOENT);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), 0);
}

TEST_F(CommandGateTest, WindowsAreObjectsOfTheirOwn) {
  const auto make = [&](abi::MptKind kind) {
    abi::Mpt context;
    context.pd = pd_[kMine];
    context.kind = kind;
    context.length = 64;
    auto mailbox = provider::create_mpt(0, context);
    EXPECT_EQ(run(kMine, mailbox), 0);
    EXPECT_EQ(mailbox.context.pasid, kMine);
    EXPECT_EQ(gate_.pages_of(provider::encode(mailbox)).has_value(), kind == abi::MptKind::null);
    return mailbox.header.object;
  };
  for (const auto kind : {abi::MptKind::window1, abi::MptKind::window2, abi::MptKind::null}) {
    const auto number = make(kind);
    EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), EBUSY);
    for (const auto opcode : {abi::CommandOpcode::query_mpt, abi::CommandOpcode::destroy_mpt})
      EXPECT_EQ(destroy(kOther, opcode, number), ENOENT);
    EXPECT_EQ(destroy(kMine, abi::CommandOpcode::query_mpt, number), 0);
    EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, number), 0);
  }
  // A failed creation of an unknown kind leaves nothing.
  for (int i = 0; i < 20; ++i) {
    abi::Mpt context;
    context.pd = pd_[kMine];
    context.kind = abi::MptKind(9);
    auto mailbox = provider::create_mpt(0, context);
    EXPECT_EQ(run(kMine, mailbox), EINVAL);
  }
  make(abi::MptKind::window1);
}

TEST_F(CommandGateTest, RegionsMove) {
  std::uint32_t other = 0;
  ASSERT_EQ(objects_.alloc_pd(kMine, other), 0);
  const auto region = [&](std::uint32_t pd, std::uint64_t address, std::uint64_t bytes) {
    abi::Mpt context;
    context.pd = pd;
    context.key = 0x12;
    context.bus_address = address;
    context.length = bytes;
    return context;
  };
  auto made = provider::create_mpt(0, region(pd_[kMine], 0x10000, 16 * 4096));
  ASSERT_EQ(run(kMine, made), 0);
  const std::uint32_t number = made.header.object;
  const auto modify = [&](const abi::Mpt& context, Pasid process = kMine, CommandStatus status = CommandStatus::ok) {
    auto mailbox = provider::modify_mpt(number, context);
    const int error = admit(process, mailbox);
    if (error != 0) return std::pair(error, ~0u);
    EXPECT_EQ(mailbox.context.key, number << 8 | 0x12);
    const auto pages = gate_.pages_of(provider::encode(mailbox));
    gate_.settle(provider::encode(mailbox), status);
    return std::pair(0, pages ? pages->count : 0);
  };
  EXPECT_EQ(modify(region(pd_[kOther], 0x10000, 16 * 4096)), (std::pair{ENOENT, ~0u}));
  EXPECT_EQ(modify(region(pd_[kOther], 0x10000, 16 * 4096), kOther), (std::pair{ENOENT, ~0u}));
  EXPECT_EQ(modify(region(pd_[kMine], 0x10000, 1 << 21)), (std::pair{EINVAL, ~0u}));
  EXPECT_EQ(modify(region(pd_[kMine], 0x10000, 30 * 4096)), (std::pair{ENOMEM, ~0u}));
  // A region that stays in place needs no pages.
  EXPECT_EQ(modify(region(other, 0x10000, 16 * 4096)), (std::pair{0, 0u}));
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, other), EBUSY);
  // 32 pages hold two places of 16, however often the region moves and is refused.
  for (int i = 0; i < 10; ++i) {
    const auto next = region(other, 0x100000 + std::uint64_t(i) * 0x100000, 16 * 4096);
    EXPECT_EQ(modify(next, kMine, CommandStatus::resource_busy), (std::pair{0, 16u}));
    EXPECT_EQ(modify(next), (std::pair{0, 16u}));
  }
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, number), 0);
  EXPECT_EQ(objects_.pages.take(32), 0u);
  EXPECT_EQ(objects_.dealloc_pd(kMine, other), 0);
}

// Number of MTT pages of a region on that memory.
class BackingTest : public CommandGateTest {
 protected:
  std::uint32_t pages(std::uint64_t address, std::uint64_t bytes, Pasid process = kMine) {
    abi::Mpt context;
    context.pd = pd_[process];
    context.bus_address = address;
    context.length = bytes;
    auto mailbox = provider::create_mpt(0, context);
    EXPECT_EQ(run(process, mailbox), 0);
    const auto pages = gate_.pages_of(provider::encode(mailbox));
    EXPECT_EQ(destroy(process, abi::CommandOpcode::destroy_mpt, mailbox.header.object), 0);
    return pages ? pages->count : 0;
  }
};

TEST_F(BackingTest, HugePagesAreOneProcesss) {
  gate_.back(kMine, 0x100000, 0x40000, 64_KiB);
  EXPECT_EQ(pages(0x100000, 0x20000), 2u);
  EXPECT_EQ(pages(0x100000, 0x20000, kOther), 32u);
  EXPECT_EQ(pages(0x138000, 0x10000), 16u);  // the backing does not reach the end
  EXPECT_EQ(pages(0xff000, 0x10000), 16u);
  gate_.forget(kMine);
  EXPECT_EQ(pages(0x100000, 0x20000), 32u);
}

TEST_F(BackingTest, WhatIsSaidLaterCounts) {
  gate_.back(kMine, 0x100000, 0x40000, 64_KiB);
  gate_.back(kMine, 0x110000, 0x10000, 4_KiB);  // small pages were mapped there
  EXPECT_EQ(pages(0x100000, 0x10000), 1u);
  EXPECT_EQ(pages(0x110000, 0x10000), 16u);
  EXPECT_EQ(pages(0x120000, 0x20000), 2u);
  EXPECT_EQ(pages(0x100000, 0x20000), 32u);
  gate_.back(kMine, 0x100000, 0x40000, 128_KiB);
  EXPECT_EQ(pages(0x100000, 0x40000), 2u);
  gate_.back(kMine, 0, 0x1000000, 4_KiB);
  EXPECT_EQ(pages(0x100000, 0x20000), 32u);
}

TEST_F(BackingTest, NeighboursAreOne) {
  gate_.back(kMine, 0x120000, 0x20000, 128_KiB);
  gate_.back(kMine, 0x100000, 0x20000, 64_KiB);
  EXPECT_EQ(pages(0x100000, 0x40000), 4u);
  EXPECT_EQ(pages(0x120000, 0x20000), 1u);
  gate_.back(kMine, 0x150000, 0x10000, 64_KiB);  // behind a gap
  EXPECT_EQ(pages(0x130000, 0x20000), 32u);
}

TEST_F(CommandGateTest, PagesAreTheKernels) {
  const auto region = [&](std::uint64_t bytes) {
    abi::Mpt context;
    context.pd = pd_[kMine];
    context.length = bytes;
    context.log_page = 30;
    context.first_page = 7777;
    return provider::create_mpt(0, context);
  };
  auto first = region(5 * 4096 + 1), second = region(1), none = region(0), rest = region(25 * 4096);
  for (auto* mailbox : {&first, &second, &none, &rest}) {
    ASSERT_EQ(run(kMine, *mailbox), 0);
    EXPECT_EQ(mailbox->context.log_page, 12);
  }
  EXPECT_EQ(first.context.first_page, 0u);
  EXPECT_EQ(second.context.first_page, 6u);
  EXPECT_EQ(rest.context.first_page, 7u);
  // All 32 entries are in use: a region cannot be created until others are destroyed.
  auto late = region(4096);
  EXPECT_EQ(run(kMine, late), ENOMEM);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, second.header.object), 0);
  EXPECT_EQ(run(kMine, late, CommandStatus::bad_parameter), 0);
  EXPECT_EQ(run(kMine, late), 0);
  EXPECT_EQ(late.context.first_page, 6u);
  auto too_long = region((1 << 20) + 1);
  EXPECT_EQ(run(kMine, too_long), EINVAL);
  auto not_mine = region(4096);
  not_mine.context.pd = pd_[kOther];
  EXPECT_EQ(run(kMine, not_mine), ENOENT);
}

TEST_F(CommandGateTest, WithoutANumberNoPagesAreTaken) {
  abi::Mpt context;
  context.pd = pd_[kMine];
  context.length = 4096;
  std::vector<std::uint32_t> made;
  for (auto mailbox = provider::create_mpt(0, context); run(kMine, mailbox) == 0;
       mailbox = provider::create_mpt(0, context))
    made.push_back(mailbox.header.object);
  EXPECT_EQ(made.size(), 6u);
  for (const auto index : made) EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, index), 0);
  EXPECT_EQ(objects_.pages.take(32), 0u);
}

TEST_F(CommandGateTest, AQpUsesOnlyItsOwnersObjects) {
  const auto mine = make_cq(kMine);
  const auto others = make_cq(kOther);
  auto good = qp_mailbox(kMine, mine);
  ASSERT_EQ(run(kMine, good), 0);
  EXPECT_EQ(good.context.pasid, kMine);
  auto others_cq = qp_mailbox(kMine, others);
  EXPECT_EQ(run(kMine, others_cq), ENOENT);
  auto others_pd = qp_mailbox(kMine, mine);
  others_pd.context.pd = pd_[kOther];
  EXPECT_EQ(run(kMine, others_pd), ENOENT);
  auto others_page = qp_mailbox(kMine, mine);
  others_page.context.uar_page = static_cast<std::uint16_t>(uar_[kOther]);
  EXPECT_EQ(run(kMine, others_page), EINVAL);

  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_cq, mine), EBUSY);
  EXPECT_EQ(objects_.free_uar(kMine, uar_[kMine]), EBUSY);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::query_qp, good.header.object), ENOENT);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_qp, good.header.object), ENOENT);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_qp, good.header.object), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_cq, mine), 0);
  EXPECT_EQ(objects_.free_uar(kMine, uar_[kMine]), 0);
  EXPECT_EQ(objects_.free_uar(kMine, uar_[kOther]), ENOENT);
}

TEST_F(CommandGateTest, ACqIsResizedByItsOwner) {
  const auto cqn = make_cq(kMine);
  auto mailbox = provider::resize_cq(cqn, 4096, 5);
  EXPECT_EQ(run(kMine, mailbox), 0);
  EXPECT_EQ(mailbox.header.object, cqn);
  EXPECT_EQ(run(kOther, mailbox), ENOENT);
  std::vector<std::byte> cut(sizeof mailbox - 1);
  std::memcpy(cut.data(), &mailbox, cut.size());
  EXPECT_EQ(gate_.admit(kMine, cut), EINVAL);
}

TEST_F(CommandGateTest, ASharedReceiveQueueIsItsOwners) {
  abi::Srqc context;
  context.pd = pd_[kOther];
  auto others_pd = provider::create_srq(0, context);
  EXPECT_EQ(run(kMine, others_pd), ENOENT);
  context.pd = pd_[kMine];
  context.pasid = 0x999;
  auto refused = provider::create_srq(0, context);
  EXPECT_EQ(run(kMine, refused, CommandStatus::bad_parameter), 0);
  EXPECT_TRUE(objects_.srqs.empty());
  auto mailbox = provider::create_srq(0, context);
  ASSERT_EQ(run(kMine, mailbox), 0);
  const std::uint32_t srqn = mailbox.header.object;
  EXPECT_EQ(mailbox.context.pasid, kMine);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), EBUSY);
  for (const auto opcode : {abi::CommandOpcode::query_srq, abi::CommandOpcode::destroy_srq})
    EXPECT_EQ(destroy(kOther, opcode, srqn), ENOENT);
  abi::ModifySrq modify{.header = provider::header(abi::CommandOpcode::modify_srq, srqn)};
  EXPECT_EQ(run(kOther, modify), ENOENT);
  EXPECT_EQ(run(kMine, modify), 0);
  auto too_short = provider::header(abi::CommandOpcode::modify_srq, srqn);
  EXPECT_EQ(run(kMine, too_short), EINVAL);

  const auto uses = [&](Pasid process) {
    auto qp = qp_mailbox(process, make_cq(process));
    qp.context.flags = abi::Qpc::kHasSrq;
    qp.context.srqn = srqn;
    const int error = run(process, qp);
    return std::pair(error, std::uint32_t(qp.header.object));
  };
  EXPECT_EQ(uses(kOther).first, ENOENT);
  const auto [error, qpn] = uses(kMine);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_srq, srqn), EBUSY);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_qp, qpn), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_srq, srqn), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), 0);
}

TEST_F(CommandGateTest, WhatTheDeviceRefusesIsNobodys) {
  const auto cqn = make_cq(kMine);
  auto mailbox = qp_mailbox(kMine, cqn);
  ASSERT_EQ(run(kMine, mailbox, CommandStatus::bad_parameter), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_qp, mailbox.header.object), ENOENT);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_cq, cqn), 0);
}

TEST_F(CommandGateTest, NothingGoesWhileItIsBeingUsed) {
  const auto cqn = make_cq(kMine);
  auto mailbox = qp_mailbox(kMine, cqn);
  ASSERT_EQ(admit(kMine, mailbox), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), EBUSY);
  EXPECT_EQ(objects_.free_uar(kMine, uar_[kMine]), EBUSY);
  gate_.settle(provider::encode(mailbox), CommandStatus::internal_error);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), 0);
}

TEST_F(CommandGateTest, WhatReceivesFlowsStays) {
  using enum abi::CommandOpcode;
  const auto cqn = make_cq(kMine);
  const auto qpn = make_qp(kMine, cqn);
  auto rss = rss_mailbox({qpn, qpn});
  ASSERT_EQ(run(kMine, rss), 0);
  const std::uint32_t context = rss.header.object;
  EXPECT_NE(context, qpn);
  EXPECT_EQ(destroy(kMine, destroy_qp, qpn), EBUSY);

  auto counter = provider::header(create_counter);
  ASSERT_EQ(run(kMine, counter), 0);
  auto flow = flow_mailbox(context, counter.object);
  ASSERT_EQ(run(kMine, flow), 0);
  EXPECT_EQ(destroy(kMine, destroy_rss, context), EBUSY);
  EXPECT_EQ(destroy(kMine, destroy_counter, counter.object), EBUSY);
  for (const auto opcode : {destroy_flow, destroy_rss, destroy_counter, query_counter})
    EXPECT_EQ(destroy(kOther, opcode, opcode == destroy_rss ? context : 0), ENOENT);
  EXPECT_EQ(destroy(kMine, query_counter, counter.object), 0);
  EXPECT_EQ(destroy(kMine, destroy_flow, flow.header.object), 0);
  EXPECT_EQ(destroy(kMine, destroy_flow, flow.header.object), ENOENT);
  EXPECT_EQ(destroy(kMine, destroy_counter, counter.object), 0);
  EXPECT_EQ(destroy(kMine, destroy_counter, counter.object), ENOENT);

  auto direct = flow_mailbox(qpn);
  ASSERT_EQ(run(kMine, direct), 0);
  EXPECT_EQ(destroy(kMine, destroy_rss, context), 0);
  EXPECT_EQ(destroy(kMine, destroy_qp, qpn), EBUSY) << "the flow's";
  EXPECT_EQ(destroy(kMine, destroy_flow, direct.header.object), 0);
  EXPECT_EQ(destroy(kMine, destroy_qp, qpn), 0);
}

TEST_F(CommandGateTest, FlowsLeadToOnesOwnRawPacketsOnly) {
  const auto cqn = make_cq(kMine);
  const auto raw = make_qp(kMine, cqn);
  const auto datagrams = make_qp(kMine, cqn, abi::Transport::ud);
  for (const auto qpn : {datagrams, 0x77u}) {
    auto rss = rss_mailbox({raw, qpn});
    EXPECT_EQ(run(kMine, rss), ENOENT);
    auto flow = flow_mailbox(qpn);
    EXPECT_EQ(run(kMine, flow), ENOENT);
  }
  auto rss = rss_mailbox({raw});
  EXPECT_EQ(run(kOther, rss), ENOENT);
  auto flow = flow_mailbox(raw);
  EXPECT_EQ(run(kOther, flow), ENOENT);
  auto without_counter = flow_mailbox(raw, 1);
  EXPECT_EQ(run(kMine, without_counter), ENOENT);
  auto huge = rss_mailbox({raw});
  huge.log_queues = abi::CreateRss::kMostLogQueues + 1;
  EXPECT_EQ(run(kMine, huge), EINVAL);
  for (const auto opcode : {abi::CommandOpcode::create_rss, abi::CommandOpcode::create_flow}) {
    auto truncated = provider::header(opcode);
    EXPECT_EQ(admit(kMine, truncated), EINVAL);
  }
}

// Flows that the device refuses are released: as many as before can be created.
TEST_F(CommandGateTest, RefusedFlowsLeaveNothing) {
  const auto qpn = make_qp(kMine, make_cq(kMine));
  auto counter = provider::header(abi::CommandOpcode::create_counter);
  ASSERT_EQ(run(kMine, counter), 0);
  for (int i = 0; i < 4; ++i) {
    auto refused = flow_mailbox(qpn, counter.object);
    EXPECT_EQ(run(kMine, refused, CommandStatus::exceeds_limit), 0);
    auto rss = rss_mailbox({qpn});
    EXPECT_EQ(run(kMine, rss, CommandStatus::bad_parameter), 0);
    auto other = provider::header(abi::CommandOpcode::create_counter);
    EXPECT_EQ(run(kMine, other, CommandStatus::exceeds_limit), 0);
  }
  for (const int expected : {0, 0, ENOMEM}) {
    auto flow = flow_mailbox(qpn);
    EXPECT_EQ(run(kMine, flow), expected);
  }
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_counter, counter.object), 0);
}

TEST_F(CommandGateTest, RawPacketsMayBeForbidden) {
  CommandGate gate(objects_, {gid_}, Neighbours({}), {.first_completion_eqn = 1, .count = 2}, 4_KiB, false);
  const auto cqn = make_cq(kMine);
  const auto asked = [&](const auto& mailbox) {
    std::vector<std::byte> input(provider::encode(mailbox).begin(), provider::encode(mailbox).end());
    return gate.admit(kMine, input);
  };
  auto qp = qp_mailbox(kMine, cqn);
  qp.context.transport = abi::Transport::raw;
  EXPECT_EQ(asked(qp), EPERM);
  EXPECT_EQ(asked(flow_mailbox(make_qp(kMine, cqn))), EPERM);
  EXPECT_EQ(asked(qp_mailbox(kMine, cqn)), 0) << "of another transport";
}

TEST_F(CommandGateTest, Exhaustion) {
  for (int i = 0; i < 3; ++i) make_cq(kMine);
  auto one_more = cq_mailbox(kMine);
  EXPECT_EQ(run(kMine, one_more), ENOMEM);
}

TEST_F(CommandGateTest, PathsAreResolved) {
  abi::NetworkInterface peer;
  peer.mac[0] = 2, peer.mac[5] = 9;
  peer.ipv4[0] = 10;
  CommandGate gate(objects_, {gid_}, Neighbours({peer}), {.first_completion_eqn = 1, .count = 2}, 4_KiB, true);
  const auto cqn = make_cq(kMine);
  auto qp = qp_mailbox(kMine, cqn);
  ASSERT_EQ(run(kMine, qp), 0);
  const auto modify = [&](const Gid& remote, std::uint16_t sgid_index, Pasid process, abi::ModifyQp& mailbox) {
    mailbox = provider::modify_qp(qp.header.object, abi::qp_attr::kPath, {});
    std::ranges::copy(remote, mailbox.context.path.remote_gid);
    mailbox.context.path.sgid_index = sgid_index;
    std::vector<std::byte> input(provider::encode(mailbox).begin(), provider::encode(mailbox).end());
    const int error = gate.admit(process, input);
    mailbox = provider::decode<abi::ModifyQp>(input);
    return error;
  };
  abi::ModifyQp mailbox;
  EXPECT_EQ(modify(gids_of(peer)[1], 0, kMine, mailbox), 0);
  EXPECT_EQ(mailbox.context.path.remote_mac[5], 9);
  EXPECT_EQ(modify(gids_of(peer)[1], 1, kMine, mailbox), EINVAL);
  EXPECT_EQ(modify(Gid{0xfd, 2}, 0, kMine, mailbox), EHOSTUNREACH);
  EXPECT_EQ(modify(gids_of(peer)[1], 0, kOther, mailbox), ENOENT);
}

TEST_F(CommandGateTest, PrivilegedAndMalformedCommands) {
  using abi::CommandOpcode;
  for (const auto opcode : {CommandOpcode::initialize, CommandOpcode::teardown, CommandOpcode::map_icm,
                            CommandOpcode::unmap_icm, CommandOpcode::set_gid, CommandOpcode::create_eq,
                            CommandOpcode::destroy_eq, CommandOpcode(0), CommandOpcode(0xffff)}) {
    auto mailbox = provider::header(opcode, 1);
    EXPECT_EQ(admit(kMine, mailbox), EPERM);
  }
  for (const auto opcode :
       {CommandOpcode::create_cq, CommandOpcode::create_mpt, CommandOpcode::create_qp, CommandOpcode::modify_qp}) {
    auto truncated = provider::header(opcode, 1);
    EXPECT_EQ(admit(kMine, truncated), EINVAL);
  }
  std::vector<std::byte> nothing, huge(abi::kMailboxBytes + 1);
  EXPECT_EQ(gate_.admit(kMine, nothing), EINVAL);
  EXPECT_EQ(gate_.admit(kMine, huge), EINVAL);
}

}  // namespace
}  // namespace rnicsim::host
