// SPDX-License-Identifier: Apache-2.0
// Fast registration: work requests give a region its pages and its key, and invalidate the key.
#include <algorithm>
#include <functional>

#include "model/nic/nic.h"
#include "model/nic/queues/command_unit.h"
#include "tests/unit/nic/objects/paged_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CqeSyndrome;
using abi::MptKind;
using abi::SendOpcode;

constexpr std::uint32_t kRights = abi::access::kLocalWrite | abi::access::kRemoteWrite | abi::access::kRemoteRead;
constexpr std::uint32_t kInPage = 0x789;  // offset of kIova in its page

class FastRegistration : public Pages {
 protected:
  void SetUp() override { begin({}); }
  void begin(const NicParams& params) {
    build(params);
    connect(5);
    lend(b());
    first_ = b().host.allocate(kPages * kPage);
    second_ = b().host.allocate(kPages * kPage);
  }
  CommandStatus make_free(const std::function<void(abi::Mpt&)>& change = [](abi::Mpt&) {}) {
    auto mailbox = b().region(kPagedKey, 0, kPages * kPage, kRights);
    mailbox.context.kind = MptKind::fast_register;
    mailbox.context.log_page = 12;
    mailbox.context.first_page = kFirst;
    change(mailbox.context);
    return b().command(mailbox);
  }
  abi::Mpt query() {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(abi::CommandOpcode::query_mpt);
    header.object = kPagedKey >> 8;
    EXPECT_EQ(b().command(header), CommandStatus::ok);
    return b().output<abi::QueryMpt>().context;
  }
  static abi::RegisterSegment pages(std::uint32_t key) {
    abi::RegisterSegment segment;
    segment.key = key;
    segment.access_flags = kRights;
    segment.start = kIova;
    segment.length = kPages * kPage - kInPage;
    segment.first_byte = kInPage;
    segment.log_page = 12;
    return segment;
  }
  CqeSyndrome give(const abi::RegisterSegment& segment) {
    b().post_send({.opcode = SendOpcode::fast_register, .registration = segment});
    return b().wait_status(kSendCqn);
  }
  CqeSyndrome invalidate(std::uint32_t key) {
    b().post_send({.opcode = SendOpcode::local_inv, .immediate = key});
    return b().wait_status(kSendCqn);
  }
  CqeSyndrome write(std::uint32_t key, std::uint32_t length = 8, std::uint64_t offset = 0) {
    a().post_send({.opcode = SendOpcode::write, .length = length, .remote = Remote{kIova + offset, key}});
    return a().wait_status(kSendCqn, 10_ms);
  }
  void restart() {
    for (auto* node : {&a(), &b()}) {
      node->modify(abi::QpState::reset, 0);
      node->restart();
    }
    connect(5);
  }

  std::uint64_t first_ = 0, second_ = 0;
};

TEST_F(FastRegistration, ARegionIsFreeUntilItGetsPages) {
  ASSERT_EQ(make_free([](abi::Mpt& mpt) { mpt.valid = 1u; }), CommandStatus::ok);
  EXPECT_EQ(query().valid, 0u);
  EXPECT_EQ(query().kind, MptKind::fast_register);
  EXPECT_EQ(write(kPagedKey), CqeSyndrome::remote_access_error);
}

TEST_F(FastRegistration, PagesMayLieBackwardsAndBeginInTheMiddle) {
  for (const std::uint32_t l1 : {0u, 4096u}) {
    begin(with_caches(l1 == 0 ? 0 : 128, l1));
    ASSERT_EQ(make_free(), CommandStatus::ok);
    write_entries(b(), first_, backwards);
    EXPECT_EQ(give(pages(kPagedKey + 3)), CqeSyndrome::success);
    EXPECT_EQ(query().valid, 1u);
    EXPECT_EQ(query().key, kPagedKey + 3);
    const std::uint32_t length = kPages * kPage - kInPage;
    a().fill(1);
    EXPECT_EQ(write(kPagedKey + 3, length), CqeSyndrome::success);
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto in_pages = kInPage + i;
      const auto at = first_ + backwards(in_pages / kPage) * kPage + in_pages % kPage;
      ASSERT_EQ(*b().host.at(at), *a().host.at(a().buffer + i)) << i;
    }
    // The next byte is beyond the region, and the former key is invalid.
    EXPECT_EQ(write(kPagedKey + 3, 1, length), CqeSyndrome::remote_access_error);
    restart();
    EXPECT_EQ(write(kPagedKey), CqeSyndrome::remote_access_error);
    EXPECT_EQ(b().nic.counters().windows.registered, 1u);
  }
}

// The driver writes other pages when the invalidation is complete; a WRITE with the old key may be at any step.
TEST_F(FastRegistration, WhatIsUnderWayFindsNoOtherPages) {
  for (const std::uint32_t l1 : {0u, 4096u}) {
    for (int delay = 0; delay < 30; ++delay) {
      SCOPED_TRACE(testing::Message() << "l1 " << l1 << " delay " << delay);
      begin(with_caches(l1 == 0 ? 0 : 128, l1));
      ASSERT_EQ(make_free(), CommandStatus::ok);
      write_entries(b(), first_, backwards);
      auto whole = pages(kPagedKey);
      whole.first_byte = 0u;
      whole.length = kPages * kPage;
      ASSERT_EQ(give(whole), CqeSyndrome::success);
      a().fill(1);
      a().post_send({.opcode = SendOpcode::write, .length = kPages * kPage, .remote = Remote{kIova, kPagedKey}});
      run(0.2 * delay);
      // The refused WRITE may fail the queue pair before the invalidation has completed.
      const auto invalidated = invalidate(kPagedKey);
      EXPECT_TRUE(invalidated == CqeSyndrome::success || invalidated == CqeSyndrome::flushed_error) << int(invalidated);
      EXPECT_EQ(query().valid, 0u);
      write_entries(b(), second_, forwards);
      const auto status = a().wait_status(kSendCqn, 10_ms);
      EXPECT_TRUE(status == CqeSyndrome::success || status == CqeSyndrome::remote_access_error) << int(status);
      EXPECT_TRUE(std::all_of(b().host.at(second_), b().host.at(second_) + kPages * kPage,
                              [](std::byte byte) { return byte == std::byte{0}; }));
      // A refused WRITE has moved both queue pairs to ERR.
      restart();
      whole.key = kPagedKey + 1;
      ASSERT_EQ(give(whole), CqeSyndrome::success);
      EXPECT_EQ(write(kPagedKey + 1, kPages * kPage), CqeSyndrome::success);
      EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(second_), kPages * kPage), 0);
    }
  }
}

TEST_F(FastRegistration, APeerInvalidatesIt) {
  ASSERT_EQ(make_free(), CommandStatus::ok);
  write_entries(b(), first_, forwards);
  ASSERT_EQ(give(pages(kPagedKey)), CqeSyndrome::success);
  b().post_receive(b().buffer, 64);
  a().post_send({.opcode = SendOpcode::send_with_inv, .length = 8, .immediate = kPagedKey});
  EXPECT_EQ(a().wait_status(kSendCqn), CqeSyndrome::success);
  EXPECT_EQ(b().wait_status(kReceiveCqn), CqeSyndrome::success);
  EXPECT_EQ(query().valid, 0u);
  EXPECT_EQ(b().nic.counters().windows.freed, 1u);
  EXPECT_EQ(give(pages(kPagedKey + 1)), CqeSyndrome::success);
  EXPECT_EQ(write(kPagedKey + 1), CqeSyndrome::success);
}

TEST_F(FastRegistration, AnInvalidationNamesTheWholeKey) {
  ASSERT_EQ(make_free(), CommandStatus::ok);
  write_entries(b(), first_, forwards);
  ASSERT_EQ(give(pages(kPagedKey)), CqeSyndrome::success);
  EXPECT_EQ(invalidate(kPagedKey + 1), CqeSyndrome::memory_window_bind_error);
  EXPECT_EQ(query().valid, 1u);
}

TEST_F(FastRegistration, WhatIsWrongChangesNothing) {
  using Change = std::function<void(abi::RegisterSegment&)>;
  const std::pair<const char*, Change> changes[] = {
      {"an index without a region", [](auto& segment) { segment.key = kPagedKey + 0x100; }},
      {"a region that is no such", [](auto& segment) { segment.key = kKey; }},
      {"a peer's write without a local one", [](auto& segment) { segment.access_flags = abi::access::kRemoteWrite; }},
      {"windows", [](auto& segment) { segment.access_flags = kRights | abi::access::kWindowBind; }},
      {"on demand", [](auto& segment) { segment.access_flags = kRights | abi::access::kOnDemand; }},
      {"pages too small", [](auto& segment) { segment.log_page = 11; }},
      {"pages too large", [](auto& segment) { segment.log_page = 31; }},
      {"a byte behind the first page", [](auto& segment) { segment.first_byte = kPage; }},
      {"no length", [](auto& segment) { segment.length = 0u; }},
      {"a byte more than its pages", [](auto& segment) { segment.length = kPages * kPage - kInPage + 1; }},
      {"more than any pages", [](auto& segment) { segment.length = ~0ull; }},
      {"addresses that wrap around", [](auto& segment) { segment.start = ~0ull - 1; }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    begin({});
    ASSERT_EQ(make_free(), CommandStatus::ok);
    auto segment = pages(kPagedKey + 1);
    change(segment);
    EXPECT_EQ(give(segment), CqeSyndrome::memory_window_bind_error);
    EXPECT_EQ(query().valid, 0u);
    EXPECT_EQ(query().key, kPagedKey);
    EXPECT_EQ(b().nic.counters().windows.refused, 1u);
  }
}

TEST_F(FastRegistration, ARegionWithPagesIsInvalidatedFirst) {
  ASSERT_EQ(make_free(), CommandStatus::ok);
  ASSERT_EQ(give(pages(kPagedKey)), CqeSyndrome::success);
  EXPECT_EQ(give(pages(kPagedKey + 1)), CqeSyndrome::memory_window_bind_error);
  EXPECT_EQ(query().key, kPagedKey);
}

TEST_F(FastRegistration, AnotherProtectionDomainsRegion) {
  ASSERT_EQ(make_free([](abi::Mpt& mpt) { mpt.pd = kPd + 1; }), CommandStatus::ok);
  EXPECT_EQ(give(pages(kPagedKey)), CqeSyndrome::memory_window_bind_error);
  EXPECT_EQ(query().valid, 0u);
}

TEST_F(FastRegistration, AWorkRequestWithoutItsSegment) {
  b().post_send({.opcode = SendOpcode::fast_register});
  EXPECT_EQ(b().wait_status(kSendCqn), CqeSyndrome::local_qp_operation_error);
}

TEST_F(FastRegistration, ARegionHasPages) {
  for (const auto& change : {std::function<void(abi::Mpt&)>([](abi::Mpt& mpt) { mpt.log_page = 0; }),
                             std::function<void(abi::Mpt&)>([](abi::Mpt& mpt) { mpt.length = 0u; }),
                             std::function<void(abi::Mpt&)>([](abi::Mpt& mpt) { mpt.first_page = 63u; })}) {
    EXPECT_EQ(make_free(change), CommandStatus::bad_parameter);
    EXPECT_EQ(b().output<abi::CommandResult>().syndrome, std::uint32_t(CommandSyndrome::bad_pages));
  }
}

TEST_F(FastRegistration, ADeviceWithoutIt) {
  NicParams params;
  params.capabilities.fast_register = false;
  begin(params);
  EXPECT_EQ(make_free(), CommandStatus::not_supported);
  EXPECT_EQ(give(pages(kPagedKey)), CqeSyndrome::local_qp_operation_error);
}

// Every paged region has an offset of its first byte in the first page.
TEST_F(FastRegistration, SoMayAnyRegionBeginInTheMiddleOfAPage) {
  auto mailbox = b().region(kPagedKey, kInPage, kPages * kPage - kInPage, kRights);
  mailbox.context.start = kIova;
  mailbox.context.log_page = 12;
  mailbox.context.first_page = kFirst;
  write_entries(b(), first_, forwards);
  ASSERT_EQ(b().command(mailbox), CommandStatus::ok);
  a().fill(1);
  EXPECT_EQ(write(kPagedKey, kPages * kPage - kInPage), CqeSyndrome::success);
  EXPECT_EQ(std::memcmp(a().host.at(a().buffer), b().host.at(first_ + kInPage), kPages * kPage - kInPage), 0);
  EXPECT_EQ(*b().host.at(first_ + kInPage - 1), std::byte{0});
  mailbox.header.object = mailbox.header.object + 1;
  mailbox.context.key = kPagedKey + 0x100;
  mailbox.context.bus_address = kPage;
  EXPECT_EQ(b().command(mailbox), CommandStatus::bad_parameter);
}

}  // namespace
}  // namespace rnicsim::nic::test
