// SPDX-License-Identifier: Apache-2.0
// The engine shell at the seam: answers whose payload cannot be read, in every order of the results; and the credit
// class of packets whose GID gets a VLAN.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/qp_state.h"

namespace rnicsim::nic {
namespace {

constexpr Qpn kQpn{64};
constexpr std::uint32_t kMtu = 256;
constexpr std::uint8_t kMtuCode = 1;
constexpr std::uint8_t kServiceLevel = 5;

// A QP whose peer READs three packets.
class EngineShellTest : public ::testing::Test {
 protected:
  explicit EngineShellTest(const QpLimits& limits = {}) : engine_(make_model_engine(limits)) {
    auto& out = engine_->outputs();
    out.transmit.bind([this](const TransmitWork& work) { busy_.push_back(work.unit); });
    out.transmit_wanted.bind([](std::uint32_t) {});
    out.context_write_back.bind([](const ContextWriteBack&) {});
    out.command_done.bind([](const QpCommandDone& done) { EXPECT_EQ(done.status, CommandStatus::ok); });
    out.timer.bind([](const TimerArm&) {});
    out.event.bind([](const EventOut&) {});
    out.wqe_fetch.bind([](const WqeFetch&) {});
    out.access_check.bind([this](const AccessCheck& check) { check_ = check.tag; });
    out.gather.bind([this](const Gather& gather) { gathers_.push_back(gather.tag); });
    out.packet.bind([this](const PacketOut& packet) {
      sent_.push_back(packet.packet->headers);
      classes_.push_back(packet.credit_class);
    });
    engine_->credit(0, 16);
    connect();
    read();
  }

  void connect() {
    using namespace roce::attr;
    QpContext context;
    context.transport = roce::Transport::rc;
    context.port = 1;
    context.path_mtu = kMtuCode;
    context.access_flags = access::kRemoteRead;
    context.max_dest_rd_atomic = 1;
    context.path.service_level = kServiceLevel;
    command(QpCommand::Kind::create, context, roce::QpState::reset, 0);
    command(QpCommand::Kind::modify, context, roce::QpState::init, kState | kPkeyIndex | kPort | kAccess);
    command(QpCommand::Kind::modify, context, roce::QpState::rtr,
            kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer);
  }
  void command(QpCommand::Kind kind, QpContext context, roce::QpState to, std::uint32_t attributes) {
    context.state = to;
    engine_->command(
        {.tag = 0, .kind = kind, .qpn = kQpn, .context = context, .attributes = attributes, .current = {}});
  }
  void read(std::uint32_t psn = 0) {
    const auto packet = Packet::make();
    packet->headers.bth.psn = roce::Psn(psn);
    packet->headers.bth.opcode = roce::Opcode::read_request;
    packet->headers.reth = roce::Reth{0, {1}, 3 * kMtu};
    engine_->packet({packet, kQpn});
    engine_->checked({check_, AccessResult::ok});
    serve();
  }
  // Every transmit unit becomes free at once.
  void serve() {
    for (; !busy_.empty(); busy_.pop_front()) engine_->transmit_free(busy_.front());
  }
  void gathered(std::size_t packet, AccessResult result) {
    engine_->gathered({gathers_[packet], result, result == AccessResult::ok ? Payload(kMtu) : Payload()});
    serve();
  }

  std::unique_ptr<QpEngine> engine_;
  Tag check_ = 0;
  std::deque<std::uint32_t> busy_;
  std::vector<Tag> gathers_;
  std::vector<roce::Headers> sent_;
  std::vector<std::uint8_t> classes_;  // of the packets in sent_
};

TEST_F(EngineShellTest, ANakTakesThePlaceOfThePacket) {
  ASSERT_EQ(gathers_.size(), 3u);
  gathered(0, AccessResult::ok);
  gathered(1, AccessResult::denied);
  gathered(2, AccessResult::ok);
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_EQ(sent_[0].bth.opcode, roce::Opcode::read_response_first);
  EXPECT_EQ(sent_[1].bth.psn, roce::Psn(1));
  EXPECT_EQ(sent_[1].aeth->syndrome, roce::Aeth::kRemoteAccessError);
}

// The NAK has had its turn, and waits behind the first packet.
TEST_F(EngineShellTest, ItIsForTheFirstThatIsMissing) {
  gathered(1, AccessResult::denied);
  EXPECT_TRUE(sent_.empty());
  gathered(0, AccessResult::bus_error);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].bth.opcode, roce::Opcode::acknowledge);
  EXPECT_EQ(sent_[0].bth.psn, roce::Psn(0));
  EXPECT_EQ(sent_[0].aeth->syndrome, roce::Aeth::kRemoteAccessError);
  gathered(2, AccessResult::denied);
  EXPECT_EQ(sent_.size(), 1u);
}

QpLimits limits_that_trust_the_pcp() {
  QpLimits limits;
  limits.priorities = *PriorityMap::parse({}, {}, PriorityMap::Trust::pcp);
  return limits;
}

class TrustedPcp : public EngineShellTest {
 protected:
  TrustedPcp() : EngineShellTest(limits_that_trust_the_pcp()) {}
};

// The queue pair exists before its GID gets a VLAN, and after the VLAN is removed.
TEST_F(TrustedPcp, PacketsTakeTheRoomOfTheirTagsPriority) {
  engine_->credit(kServiceLevel, 16);
  const auto answer = [this](std::size_t first) {
    for (auto i = first; i < first + 3; ++i) gathered(i, AccessResult::ok);
  };
  answer(0);
  engine_->gid_tagged(0, true);
  read(3);
  answer(3);
  engine_->gid_tagged(0, false);
  read(6);
  answer(6);
  const auto tagged = kServiceLevel;
  EXPECT_EQ(classes_, (std::vector<std::uint8_t>{0, 0, 0, tagged, tagged, tagged, 0, 0, 0}));
}

}  // namespace
}  // namespace rnicsim::nic
