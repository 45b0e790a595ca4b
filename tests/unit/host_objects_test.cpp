// Is a process held to what it owns, and does the kernel fill in what only it knows?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "model/host/command_gate.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

using abi::CommandStatus;
using namespace rnicsim::literals;

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

class CommandGateTest : public testing::Test {
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
  // Nothing of a kind that does not exist is left behind.
  for (int i = 0; i < 20; ++i) {
    abi::Mpt context;
    context.pd = pd_[kMine];
    context.kind = abi::MptKind(9);
    auto mailbox = provider::create_mpt(0, context);
    EXPECT_EQ(run(kMine, mailbox), EINVAL);
  }
  make(abi::MptKind::window1);
}

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
  for (const auto& [offset, bytes] : {std::pair<std::uint64_t, std::uint64_t>{0, kPage + 2}, {kPage + 2, 0},
                                      {kPage, 2}, {2 * kPage, 4}, {~0ull, 2}, {0, ~0ull}}) {
    auto refused = mailbox(kMine, offset, bytes);
    EXPECT_EQ(run(kMine, refused), EINVAL) << offset << " " << bytes;
  }
  auto others = mailbox(kOther, 0, 4);
  EXPECT_EQ(run(kOther, others), EINVAL);
  const auto first = make_region(kMine, 0, kPage + 1);
  const auto second = make_region(kMine, kPage + 1, 0);
  EXPECT_EQ(objects_.free_dm(kMine, 0), EBUSY);
  // It has no pages that could be moved.
  auto modified = mailbox(kMine, 0, 4);
  modified.header = provider::header(abi::CommandOpcode::modify_mpt, first);
  EXPECT_EQ(run(kMine, modified), EINVAL);
  modified.context.kind = abi::MptKind::region;
  EXPECT_EQ(run(kMine, modified), EINVAL);
  // One that the device refused uses nothing.
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

// Who imported the context may use them, and what lies there keeps them from going.
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
  EXPECT_EQ(objects_.import_dm(kOther, imported, alloc(kOther, 1), bytes_), ENOENT);  // its own, of no context
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
  // In its place it needs no pages.
  EXPECT_EQ(modify(region(other, 0x10000, 16 * 4096)), (std::pair{0, 0u}));
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, other), EBUSY);
  // Of 32 pages there is room for two places of 16, however often it moves and is refused.
  for (int i = 0; i < 10; ++i) {
    const auto next = region(other, 0x100000 + std::uint64_t(i) * 0x100000, 16 * 4096);
    EXPECT_EQ(modify(next, kMine, CommandStatus::resource_busy), (std::pair{0, 16u}));
    EXPECT_EQ(modify(next), (std::pair{0, 16u}));
  }
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, number), 0);
  EXPECT_EQ(objects_.pages.take(32), 0u);
  EXPECT_EQ(objects_.dealloc_pd(kMine, other), 0);
}

// What a process may do with another's objects, with and without the right to its context.
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
  // The errors that the other process gets for everything that names this one's PD or region.
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
  EXPECT_THAT(attempts(), testing::Each(ENOENT));
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
  EXPECT_THAT(attempts(), testing::Each(0));
  // It gives nothing in the other direction, and no queues.
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kOther]), ENOENT);
  const auto cqn = make_cq(kMine);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::query_cq, cqn), ENOENT);
  auto moved = provider::modify_mpt(region_, {});
  EXPECT_EQ(run(kOther, moved), ENOENT);
  // Either destroys, once.
  EXPECT_EQ(objects_.dealloc_pd(kOther, pd_[kMine]), EBUSY);
  EXPECT_EQ(destroy(kOther, abi::CommandOpcode::destroy_mpt, region_), 0);
  EXPECT_EQ(destroy(kMine, abi::CommandOpcode::destroy_mpt, region_), ENOENT);
  EXPECT_EQ(objects_.dealloc_pd(kOther, pd_[kMine]), 0);
  EXPECT_EQ(objects_.dealloc_pd(kMine, pd_[kMine]), ENOENT);
}

TEST_F(ImportTest, ARightEndsWithItsContext) {
  import();
  EXPECT_EQ(objects_.close_context(kMine, opened_), 0);
  EXPECT_THAT(attempts(), testing::Each(0));  // the other has it still
  EXPECT_EQ(objects_.close_context(kOther, imported_), 0);
  EXPECT_THAT(attempts(), testing::Each(ENOENT));
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

// How many pages a region of that memory takes.
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
  EXPECT_EQ(pages(0x138000, 0x10000), 16u);  // not to the end
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
  gate_.back(kMine, 0x150000, 0x10000, 64_KiB);  // beyond a gap
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
  // All 32 are used: a region waits for others to go.
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

// What the device refuses is given back, so that there is room for as many as before.
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
  // True: the kernel alone did it.
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
