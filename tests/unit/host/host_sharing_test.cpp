// SPDX-License-Identifier: Apache-2.0
// Objects that processes share, within their rights: device memory, contexts with their PDs and regions, XRC domains.
#include "tests/unit/host/command_gate.h"

namespace rnicsim::host {
namespace {

// --- Device memory.
class DeviceRanges : public CommandGateTest {
 protected:
  std::uint32_t alloc(Pasid process, std::uint64_t bytes) {
    std::uint32_t offset = ~0u;
    EXPECT_EQ(objects_.alloc_dm(process, bytes, 0, offset), 0);
    return offset;
  }
  abi::CreateMpt mailbox(Pasid process, std::uint64_t offset, std::uint64_t bytes) {
    abi::Mpt context;
    context.pd = pd_[process];
    context.kind = abi::MptKind::device_memory;
    context.bus_address = offset;
    context.length = bytes;
    context.log_page = 12;
    context.first_page = 3;
    return provider::create_mpt(0, context);
  }
  std::uint32_t make_region(Pasid process, std::uint64_t offset, std::uint64_t bytes) {
    auto created = mailbox(process, offset, bytes);
    EXPECT_EQ(run(process, created), 0);
    EXPECT_EQ(created.context.log_page, 0);
    EXPECT_EQ(created.context.first_page, 0u);
    return created.header.object;
  }
  std::uint32_t offset_ = 0, bytes_ = 0;
};

TEST_F(DeviceRanges, AreOfWholePages) {
  EXPECT_EQ(objects_.alloc_dm(kMine, 0, 0, offset_), EINVAL);
  EXPECT_EQ(objects_.alloc_dm(kMine, 1, 64, offset_), EINVAL);
  for (const std::uint64_t bytes : {std::uint64_t{3 * kPage + 1}, std::uint64_t{1} << 32, ~std::uint64_t{0}})
    EXPECT_EQ(objects_.alloc_dm(kMine, bytes, 0, offset_), ENOMEM);
  EXPECT_EQ(alloc(kMine, kPage + 1), 0u);
  EXPECT_EQ(alloc(kOther, 1), 2 * kPage);
  EXPECT_EQ(objects_.alloc_dm(kMine, 1, 0, offset_), ENOMEM);
  EXPECT_EQ(objects_.free_dm(kOther, 0), ENOENT);
  EXPECT_EQ(objects_.free_dm(kMine, kPage), ENOENT);
  EXPECT_EQ(objects_.free_dm(kMine, 0), 0);
  EXPECT_EQ(objects_.free_dm(kMine, 0), ENOENT);
  EXPECT_EQ(alloc(kMine, 2 * kPage), 0u);
}

TEST_F(DeviceRanges, AreReachedByTheirOwnerAlone) {
  alloc(kMine, kPage + 1);
  alloc(kOther, 1);
  const auto may = [&](Pasid process, std::uint64_t offset, std::uint64_t bytes) {
    return objects_.may_access_device_memory(process, offset, bytes);
  };
  EXPECT_TRUE(may(kMine, 0, 4));
  EXPECT_TRUE(may(kMine, 2 * kPage - 8, 8));
  EXPECT_FALSE(may(kMine, 2 * kPage - 4, 8));
  EXPECT_FALSE(may(kMine, 2 * kPage, 4));
  EXPECT_TRUE(may(kOther, 2 * kPage, 64));
  EXPECT_FALSE(may(kOther, 2 * kPage - 4, 4));
  EXPECT_FALSE(may(kOther, 3 * kPage, 4));
  EXPECT_FALSE(may(kOther, ~0ull, 4));
  EXPECT_FALSE(may(kOther, 2 * kPage, ~0ull));
}

TEST_F(DeviceRanges, HoldRegionsWithinWhatWasAskedFor) {
  alloc(kMine, kPage + 1);
  alloc(kOther, kPage);
  for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, kPage + 2},
                                      {kPage + 2, 0},
                                      {kPage, 2},
                                      {2 * kPage, 4},
                                      {~0ull, 2},
                                      {0, ~0ull}}) {
    auto refused = mailbox(kMine, offset, bytes);
    EXPECT_EQ(run(kMine, refused), EINVAL) << offset << " " << bytes;
  }
  auto others = mailbox(kOther, 0, 4);
  EXPECT_EQ(run(kOther, others), EINVAL);
  const auto first = make_region(kMine, 0, kPage + 1);
  const auto second = make_region(kMine, kPage + 1, 0);
  EXPECT_EQ(objects_.free_dm(kMine, 0), EBUSY);
  // A region on device memory has no pages to move.
  auto modified = mailbox(kMine, 0, 4);
  modified.header = provider::header(abi::CommandOpcode::modify_mpt, first);
  EXPECT_EQ(run(kMine, modified), EINVAL);
  modified.context.kind = abi::MptKind::region;
  EXPECT_EQ(run(kMine, modified), EINVAL);
  // A region that the device refused uses nothing.
  auto failed = mailbox(kMine, 0, 4);
  EXPECT_EQ(run(kMine, failed, CommandStatus::bad_parameter), 0);
  for (const auto number : {first, second}) {
    EXPECT_EQ(objects_.free_dm(kMine, 0), EBUSY);
    EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, number), 0);
  }
  EXPECT_EQ(objects_.free_dm(kMine, 0), 0);
}

TEST_F(DeviceRanges, GoWithTheirOwner) {
  alloc(kMine, kPage);
  alloc(kOther, kPage);
  objects_.remove_software_objects(kMine);
  EXPECT_EQ(objects_.device_ranges.size(), 1u);
  EXPECT_EQ(alloc(kOther, kPage), 0u);
}

// A process that imported the context may use the ranges, and its regions keep the ranges in use.
TEST_F(DeviceRanges, AreImportedWithTheirContext) {
  std::uint32_t opened = 0, imported = 0;
  const ContextFile file{1, 77};
  ASSERT_EQ(objects_.open_context(kMine, file, opened), 0);
  const auto offset = alloc(kMine, 100);
  EXPECT_EQ(objects_.import_dm(kOther, opened, offset, bytes_), ENOENT);
  ASSERT_EQ(objects_.import_context(kOther, file, imported), 0);
  EXPECT_EQ(objects_.import_dm(kOther, imported, offset, bytes_), 0);
  EXPECT_EQ(bytes_, 100u);
  EXPECT_EQ(objects_.import_dm(kOther, imported, offset + 4, bytes_), ENOENT);
  // the importer's own range, which belongs to no context
  EXPECT_EQ(objects_.import_dm(kOther, imported, alloc(kOther, 1), bytes_), ENOENT);
  EXPECT_TRUE(objects_.may_access_device_memory(kOther, offset, 4));
  const auto region = make_region(kOther, offset, 100);
  objects_.remove_software_objects(kMine);
  EXPECT_TRUE(objects_.may_access_device_memory(kOther, offset, 4));
  ASSERT_EQ(objects_.close_context(kOther, imported), 0);
  EXPECT_FALSE(objects_.may_access_device_memory(kOther, offset, 4));
  EXPECT_EQ(objects_.device_ranges.size(), 2u);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, region), 0);
  EXPECT_EQ(objects_.device_ranges.size(), 1u);
}

// Operations of a process on another's objects, with and without the right to its context.
class ImportTest : public CommandGateTest {
 protected:
  static constexpr ContextFile kFile{1, 77};

  ImportTest() {
    EXPECT_EQ(objects_.open_context(kMine, kFile, opened_), 0);
    region_ = make_region(kMine);
  }
  std::uint32_t make_region(Pasid owner) {
    abi::Mpt context;
    context.pd = pd_[kMine];
    context.length = 4096;
    auto mailbox = provider::create_mpt(0, context);
    EXPECT_EQ(run(owner, mailbox), 0);
    EXPECT_EQ(mailbox.context.pasid, owner);
    return mailbox.header.object;
  }
  void import() { ASSERT_EQ(objects_.import_context(kOther, kFile, imported_), 0); }
  // Errors of the other process for every command that names this process's PD or region.
  std::vector<int> attempts() {
    abi::Mpt entry;
    entry.pd = pd_[kMine];
    auto region = provider::create_mpt(0, entry);
    abi::Srqc queue;
    queue.pd = pd_[kMine];
    auto srq = provider::create_srq(0, queue);
    auto qp = qp_mailbox(kOther, make_cq(kOther));
    qp.context.pd = pd_[kMine];
    std::vector<int> errors{admit(kOther, region), admit(kOther, srq), admit(kOther, qp)};
    if (errors[0] == 0) gate_.settle(provider::encode(region), CommandStatus::bad_resource);
    if (errors[1] == 0) gate_.settle(provider::encode(srq), CommandStatus::bad_resource);
    if (errors[2] == 0) gate_.settle(provider::encode(qp), CommandStatus::bad_resource);
    errors.push_back(destroy(kOther, abi::CommandOpcode::query_mpt, region_));
    return errors;
  }

  std::uint32_t opened_ = 0, imported_ = 0, region_ = 0;
};

TEST_F(ImportTest, NothingWithoutTheDescriptor) {
  EXPECT_THAT(attempts(), ::testing::Each(ENOENT));
  std::uint32_t number = 0;
  for (const ContextFile& wrong : {ContextFile{1, 78}, ContextFile{2, 77}, ContextFile{}})
    EXPECT_EQ(objects_.import_context(kOther, wrong, number), EINVAL);
  EXPECT_EQ(objects_.import_pd(kOther, opened_, pd_[kMine]), ENOENT);
  EXPECT_EQ(objects_.close_context(kOther, opened_), ENOENT);
  EXPECT_EQ(objects_.open_context(kOther, kFile, number), EEXIST);
  EXPECT_EQ(objects_.dealloc_pd(kOther, pd_[kMine]), ENOENT);
}

TEST_F(ImportTest, TheDescriptorGivesPdsAndRegions) {
  import();
  EXPECT_EQ(objects_.import_pd(kOther, imported_, pd_[kMine]), 0);
  EXPECT_EQ(objects_.import_pd(kOther, imported_, pd_[kOther]), ENOENT);
  EXPECT_EQ(objects_.import_pd(kOther, imported_, 99), ENOENT);
  EXPECT_EQ(objects_.import_pd(kMine, imported_, pd_[kMine]), ENOENT);
  EXPECT_THAT(attempts(), ::testing::Each(0));
  // The import gives no right in the other direction, and no queues.
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kOther]), ENOENT);
  const auto cqn = make_cq(kMine);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::query_cq, cqn), ENOENT);
  auto moved = provider::modify_mpt(region_, {});
  EXPECT_EQ(run(kOther, moved), ENOENT);
  // Either process may destroy the objects, once.
  EXPECT_EQ(objects_.dealloc_pd(kOther, pd_[kMine]), EBUSY);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, region_), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, region_), ENOENT);
  EXPECT_EQ(objects_.dealloc_pd(kOther, pd_[kMine]), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), ENOENT);
}

TEST_F(ImportTest, ARightEndsWithItsContext) {
  import();
  EXPECT_EQ(objects_.close_context(kMine, opened_), 0);
  EXPECT_THAT(attempts(), ::testing::Each(0));  // the other process still has the context
  EXPECT_EQ(objects_.close_context(kOther, imported_), 0);
  EXPECT_THAT(attempts(), ::testing::Each(ENOENT));
  std::uint32_t number = 0;
  EXPECT_EQ(objects_.import_context(kOther, kFile, number), EINVAL);
}

TEST_F(ImportTest, APdOutlivesItsOwnerWhileItIsWanted) {
  import();
  const auto theirs = make_region(kOther);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, region_), 0);
  objects_.remove_software_objects(kMine);
  EXPECT_EQ(objects_.import_pd(kOther, imported_, pd_[kMine]), 0);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, theirs), 0);
  EXPECT_TRUE(objects_.pds.contains(pd_[kMine]));
  EXPECT_EQ(objects_.close_context(kOther, imported_), 0);
  EXPECT_FALSE(objects_.pds.contains(pd_[kMine]));
}

TEST_F(ImportTest, AnObjectAloneKeepsAPd) {
  import();
  const auto theirs = make_region(kOther);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, region_), 0);
  objects_.remove_software_objects(kMine);
  EXPECT_EQ(objects_.close_context(kOther, imported_), 0);
  EXPECT_TRUE(objects_.pds.contains(pd_[kMine]));
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, theirs), 0);
  EXPECT_FALSE(objects_.pds.contains(pd_[kMine]));
}

TEST_F(ImportTest, TheDeadHaveNoRights) {
  import();
  objects_.remove_software_objects(kOther);
  EXPECT_EQ(objects_.import_pd(kOther, imported_, pd_[kMine]), ENOENT);
  EXPECT_TRUE(objects_.pds.contains(pd_[kMine]));
}

// --- XRC domains.
class XrcGateTest : public CommandGateTest {
 protected:
  static constexpr ContextFile kFile{1, 77};

  std::uint32_t open(Pasid process, const std::optional<ContextFile>& file = kFile) {
    std::uint32_t number = 0;
    EXPECT_EQ(objects_.domains.open(process, file, true, false, number), 0);
    return number;
  }
  static abi::CreateQp receiver(std::uint32_t xrcd) {
    abi::Qpc context;
    std::memset(static_cast<void*>(&context), 0xff, sizeof context);
    context.transport = abi::Transport::xrc_recv;
    context.xrcd = xrcd;
    return provider::create_qp(0, context);
  }
  std::uint32_t make_receiver(Pasid process, std::uint32_t xrcd) {
    auto mailbox = receiver(xrcd);
    EXPECT_EQ(run(process, mailbox), 0);
    return mailbox.header.object;
  }
  abi::CreateSrq srq(Pasid owner, std::uint32_t xrcd, std::uint32_t cqn) {
    abi::Srqc context;
    context.flags = abi::Srqc::kXrc;
    context.pd = pd_[owner];
    context.xrcd = xrcd;
    context.cqn = cqn;
    return provider::create_srq(0, context);
  }
  // True: the kernel handled the command without the device.
  bool closes(Pasid process, std::uint32_t qpn) {
    const auto mailbox = provider::header(abi::CommandOpcode::destroy_qp, qpn);
    auto copy = mailbox;
    EXPECT_EQ(admit(process, copy), 0);
    if (gate_.closes_handle(process, 0, provider::encode(mailbox))) return true;
    gate_.settle(provider::encode(mailbox), CommandStatus::ok);
    return false;
  }
};

TEST_F(XrcGateTest, DomainsAreOfFiles) {
  auto& domains = objects_.domains;
  std::uint32_t number = 0, other = 0, alone = 0;
  EXPECT_EQ(domains.open(kMine, kFile, false, false, number), EAGAIN);
  EXPECT_EQ(domains.open(kMine, kFile, true, true, number), 0);
  EXPECT_EQ(domains.open(kOther, kFile, true, true, other), EINVAL);
  EXPECT_EQ(domains.open(kOther, kFile, false, false, other), 0);
  EXPECT_EQ(other, number);
  EXPECT_EQ(domains.open(kOther, ContextFile{1, 78}, true, false, other), 0);
  EXPECT_NE(other, number);
  EXPECT_EQ(domains.open(kMine, std::nullopt, false, true, alone), 0);
  EXPECT_NE(open(kOther, std::nullopt), alone) << "those without a file are nobody else's";
  EXPECT_FALSE(domains.has(kOther, alone));
  EXPECT_EQ(domains.close(kOther, alone), ENOENT);
  EXPECT_EQ(domains.close(kMine, number), 0);
  EXPECT_EQ(domains.close(kMine, number), ENOENT);
  EXPECT_EQ(domains.open(kMine, kFile, false, false, number), 0) << "the other has it";
  domains.close_all(kOther);
  domains.close_all(kMine);
  EXPECT_EQ(domains.open(kMine, kFile, false, false, number), EAGAIN) << "nobody has";
}

TEST_F(XrcGateTest, AReceiverIsTheKernels) {
  const auto xrcd = open(kMine);
  auto mailbox = receiver(xrcd);
  EXPECT_EQ(admit(kOther, mailbox), EINVAL);
  EXPECT_EQ(run(kMine, mailbox), 0);
  abi::Qpc wanted;
  wanted.transport = abi::Transport::xrc_recv;
  wanted.xrcd = xrcd;
  EXPECT_EQ(std::memcmp(&mailbox.context, &wanted, sizeof wanted), 0) << "all that the process put there is gone";
  EXPECT_EQ(objects_.domains.close(kMine, xrcd), EBUSY);
  const auto qpn = mailbox.header.object;
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::query_qp, qpn), ENOENT);
  EXPECT_EQ(objects_.open_qp(kOther, xrcd, qpn, std::nullopt), EINVAL) << "it has not opened the domain";
  open(kOther);
  EXPECT_EQ(objects_.open_qp(kOther, open(kOther, std::nullopt), qpn, std::nullopt), EINVAL);
  EXPECT_EQ(objects_.open_qp(kOther, xrcd, qpn + 1, std::nullopt), EINVAL);
  EXPECT_EQ(objects_.open_qp(kOther, xrcd, qpn, std::nullopt), 0);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::query_qp, qpn), 0);
  EXPECT_TRUE(closes(kMine, qpn));
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::query_qp, qpn), ENOENT);
  EXPECT_EQ(objects_.domains.close(kMine, xrcd), 0);
  EXPECT_EQ(objects_.domains.close(kOther, xrcd), EBUSY);
  EXPECT_FALSE(closes(kOther, qpn)) << "the device hears of the last";
  EXPECT_EQ(objects_.domains.close(kOther, xrcd), 0);
}

TEST_F(XrcGateTest, WhatIsGoingIsNotOpened) {
  const auto xrcd = open(kMine);
  open(kOther);
  const auto qpn = make_receiver(kMine, xrcd);
  auto destroying = provider::header(abi::CommandOpcode::destroy_qp, qpn);
  ASSERT_EQ(admit(kMine, destroying), 0);
  EXPECT_EQ(objects_.open_qp(kOther, xrcd, qpn, std::nullopt), EINVAL);
  gate_.settle(provider::encode(destroying), CommandStatus::resource_busy);
  EXPECT_EQ(objects_.open_qp(kOther, xrcd, qpn, std::nullopt), 0) << "the device has kept it";
}

TEST_F(XrcGateTest, AttributesOfTheOtherEndAreLeftOut) {
  using namespace abi::qp_attr;
  const auto xrcd = open(kMine);
  auto modify = provider::modify_qp(make_receiver(kMine, xrcd), kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic, {});
  EXPECT_EQ(admit(kMine, modify), 0);
  EXPECT_EQ(modify.attributes, kTimeout);
  const auto cqn = make_cq(kMine);
  auto create = qp_mailbox(kMine, cqn);
  create.context.transport = abi::Transport::xrc_send;
  create.context.receive_cqn = 99;
  ASSERT_EQ(run(kMine, create), 0);
  EXPECT_EQ(create.context.receive_cqn, cqn);
  modify = provider::modify_qp(create.header.object, kPath | kMaxDestRdAtomic | kMinRnrTimer, {});
  modify.attributes = kPathMtu | kMaxDestRdAtomic | kMinRnrTimer;
  EXPECT_EQ(admit(kMine, modify), 0);
  EXPECT_EQ(modify.attributes, kPathMtu);
}

TEST_F(XrcGateTest, QueuesOfADomain) {
  const auto xrcd = open(kMine);
  const auto cqn = make_cq(kMine);
  auto mailbox = srq(kOther, xrcd, make_cq(kOther));
  EXPECT_EQ(admit(kOther, mailbox), EINVAL) << "a domain that it has not opened";
  mailbox = srq(kMine, xrcd, make_cq(kOther));
  EXPECT_EQ(admit(kMine, mailbox), ENOENT) << "another's CQ";
  mailbox = srq(kMine, xrcd, cqn);
  EXPECT_EQ(run(kMine, mailbox), 0);
  EXPECT_EQ(mailbox.context.pasid, kMine);
  EXPECT_EQ(objects_.domains.close(kMine, xrcd), EBUSY);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_cq, cqn), EBUSY);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_srq, mailbox.header.object), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_cq, cqn), 0);
  EXPECT_EQ(objects_.domains.close(kMine, xrcd), 0);
}

}  // namespace
}  // namespace rnicsim::host
