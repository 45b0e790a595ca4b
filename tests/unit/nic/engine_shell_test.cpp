// SPDX-License-Identifier: Apache-2.0
// The engine shell at the seam: answers whose payload cannot be read, in every order of the results.
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

// A QP whose peer READs three packets.
class EngineShellTest : public ::testing::Test {
 protected:
  EngineShellTest() {
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
    out.packet.bind([this](const PacketOut& packet) { sent_.push_back(packet.packet->headers); });
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
  void read() {
    const auto packet = Packet::make();
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

  std::unique_ptr<QpEngine> engine_ = make_model_engine({});
  Tag check_ = 0;
  std::deque<std::uint32_t> busy_;
  std::vector<Tag> gathers_;
  std::vector<roce::Headers> sent_;
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

}  // namespace
}  // namespace rnicsim::nic
