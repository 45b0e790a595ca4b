// SPDX-License-Identifier: Apache-2.0
// Notification point: CNPs as answers to marks and losses. Reaction point: CNPs slow a queue pair down.
#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/base/kernel.h"
#include "model/nic/nic_counters.h"
#include "model/nic/packets/packet.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/packet.h"
#include "tests/unit/nic/congested_pair.h"

namespace rnicsim::nic::test {
namespace {

constexpr std::size_t kTransportAt = roce::kEthernetBytes + roce::kIpv4Bytes + roce::kUdpBytes;

// Layout of the CNP from the BTH on as in annex A17.9.3, and the addresses of the reverse path.
TEST_F(NicCongestion, AMarkedPacketIsAnsweredByACnp) {
  start();
  write(1);
  ASSERT_EQ(cnps_.size(), 1u);
  const auto& cnp = cnps_.front();
  std::vector<std::byte> wanted{std::byte{0x81}, std::byte{0x00}, std::byte{0xff}, std::byte{0xff},
                                std::byte{0x40}, std::byte{0x00}, std::byte{0x00}, std::byte{kQpn}};
  wanted.resize(12 + 16);
  ASSERT_EQ(cnp.bytes.size(), kTransportAt + wanted.size() + 4);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), cnp.bytes.begin() + kTransportAt));
  EXPECT_EQ(cnp.bytes.size(), 74u);
  EXPECT_EQ(cnp.addresses.traffic_class, 48 << 2);
  EXPECT_EQ(cnp.addresses.destination, others_.front().addresses.source);
  EXPECT_EQ(notified().np_ecn_marked_roce_packets, 1u);
  EXPECT_EQ(notified().np_cnp_sent, 1u);
  EXPECT_EQ(heard().rp_cnp_handled, 1u);
  EXPECT_EQ(heard().rp_cnp_ignored, 0u);
}

TEST_F(NicCongestion, RequestsAreEctAndAnswersAreNot) {
  start([] { return false; });
  write(1);
  for (const auto& packet : others_)
    EXPECT_EQ(packet.addresses.traffic_class & kEcnMask,
              packet.headers.bth.opcode == roce::Opcode::acknowledge ? kNotEct : kEct0);
}

TEST_F(NicCongestion, TheProgramsTrafficClassIsKeptWhereThatIsWanted) {
  params_.congestion.ecn = "program";
  start();
  write(3);
  EXPECT_TRUE(cnps_.empty());
  for (const auto& packet : others_) EXPECT_EQ(packet.addresses.traffic_class & kEcnMask, kNotEct);
}

TEST_F(NicCongestion, CnpsAreNotCloserThanTheirTime) {
  params_.congestion.np.min_time_between_cnps = 20_us;
  params_.congestion.control.name = "none";
  start();
  while (now() < 300_us) write(1);
  ASSERT_GT(cnps_.size(), 5u);
  for (std::size_t i = 1; i < cnps_.size(); ++i) EXPECT_GE(cnps_[i].at - cnps_[i - 1].at, 19_us);
  EXPECT_GT(notified().np_ecn_marked_roce_packets, 2 * cnps_.size());
}

TEST_F(NicCongestion, WithoutTimeEachMarkIsAnswered) {
  params_.congestion.np.min_time_between_cnps = {};
  start();
  write(5);
  EXPECT_EQ(notified().np_cnp_sent, 5u);
  EXPECT_EQ(notified().np_ecn_marked_roce_packets, 5u);
}

TEST_F(NicCongestion, APriorityThatIsNotEnabledIsNotAnswered) {
  params_.congestion.np.enable = 0xfe;
  start();
  write(3);
  EXPECT_EQ(notified().np_ecn_marked_roce_packets, 3u);
  EXPECT_EQ(notified().np_cnp_sent, 0u);
}

TEST_F(NicCongestion, ACnpCanBeLate) {
  Duration at_once{};
  for (const auto delay : {0_us, 7_us}) {
    params_.congestion.np.delay = delay;
    cnps_.clear();
    start();
    const auto begin = now();
    write(1);
    run(20);
    ASSERT_EQ(cnps_.size(), 1u);
    if (delay == Duration{}) at_once = cnps_.front().at - begin;
    EXPECT_EQ(cnps_.front().at - begin, at_once + delay);
  }
}

// The pair's window is one message: the answer to the loss shows by the packets that follow it.
TEST_F(NicCongestion, ALossIsAnsweredWhereThatIsWanted) {
  for (const bool wanted : {false, true}) {
    params_.congestion.np.cnp_on_loss = wanted;
    build(params_);
    connect();
    int lost = 0;
    drop() = [&](Frame& frame) {
      const auto* packet = frame.as<Packet>();
      return packet != nullptr && packet->headers.bth.opcode == roce::Opcode::write_first && lost++ == 0;
    };
    write(2, 3000);
    EXPECT_GT(b().nic.counters().engine.out_of_sequence, 0u);
    EXPECT_EQ(notified().np_cnp_sent != 0, wanted);
    EXPECT_EQ(notified().np_ecn_marked_roce_packets, 0u);
    EXPECT_EQ(heard().rp_cnp_handled != 0, wanted);
  }
}

TEST_F(NicCongestion, SendingAgainSlowsDownWhereThatIsWanted) {
  params_.congestion.cnp_on_retransmit = true;
  build(params_);
  connect();
  int lost = 0;
  drop() = [&](Frame& frame) {
    const auto* packet = frame.as<Packet>();
    return packet != nullptr && packet->headers.bth.opcode == roce::Opcode::write_first && lost++ == 0;
  };
  write(2, 3000);
  EXPECT_GT(heard().roce_slow_restart_cnps, 0u);
  EXPECT_EQ(heard().rp_cnp_handled, 0u);
}

// --- Traces of the reaction point.
class FollowedControl : public NicCongestion {
 protected:
  void follow() {
    auto& trace = a().nic.blocks().engine.trace();
    trace.control_changed.subscribe([this](const ControlChanged& changed) { views_.push_back(changed); });
    trace.cnp_taken.subscribe([this](const CnpTaken& taken) {
      EXPECT_EQ(taken.qpn.value, kQpn);
      views_at_cnps_.push_back(views_.size());
    });
  }
  // Marks come for some time, and then none.
  void run_marked(bool followed) {
    int packets = 0;
    others_.clear();
    cnps_.clear();
    start([&] { return ++packets < 40; });
    if (followed) follow();
    for (int i = 0; i < 4; ++i) write(1, 1 << 16);
  }

  std::vector<ControlChanged> views_;
  std::vector<std::size_t> views_at_cnps_;  // number of views before each CNP
};

TEST_F(FollowedControl, TheRateFallsBehindACnpAndRisesAgain) {
  run_marked(true);
  for (const auto end = now() + 700_us; now() < end;) write(1, 1 << 16);  // longer than rpg_time_reset
  ASSERT_FALSE(views_at_cnps_.empty());
  EXPECT_EQ(views_at_cnps_.size(), heard().rp_cnp_handled);
  constexpr auto kUnlimited = roce::Allowance::kUnlimited;
  ASSERT_EQ(views_at_cnps_.front(), 1u);
  EXPECT_EQ(views_[0].state, (roce::ControlState{kUnlimited, kUnlimited, 0}));
  const auto lowest = std::ranges::min_element(views_, {}, [](const auto& view) { return view.state.rate; });
  EXPECT_LT(lowest->state.rate, 0.6e11);
  EXPECT_GT(lowest->state.alpha, 0);
  EXPECT_GT(views_.back().state.rate, lowest->state.rate);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    EXPECT_EQ(views_[i].qpn.value, kQpn);
    EXPECT_EQ(views_[i].window, roce::Allowance::kNoWindow);
    EXPECT_TRUE(i == 0 || views_[i].state != views_[i - 1].state);
  }
}

TEST_F(FollowedControl, IsNotChangedByThat) {
  for (const auto* control : {"dcqcn", "dcqcn_paper", "dctcp", "timely", "swift"}) {
    params_.congestion.control.name = control;
    const auto times = [this](bool followed) {
      run_marked(followed);
      std::vector<Duration> times;
      for (const auto& packet : others_) times.push_back(packet.at);
      return times;
    };
    const auto alone = times(false);
    views_.clear();
    EXPECT_EQ(times(true), alone) << control;
    EXPECT_FALSE(views_.empty()) << control;
    const bool has_window = std::string(control) == "dctcp" || std::string(control) == "swift";
    EXPECT_EQ(views_.back().window != roce::Allowance::kNoWindow, has_window) << control;
  }
}

// A message of 64 packets: marks on the first packets slow the others down.
TEST_F(NicCongestion, CnpsSlowTheirQueuePairDown) {
  const auto time_of_one = [this] {
    const auto begin = now();
    write(1, 1 << 16);
    return now() - begin;
  };
  start([] { return false; });
  const auto free = time_of_one();
  start();
  time_of_one();
  const auto slow = time_of_one();
  EXPECT_GT(slow, 2 * free);
}

TEST_F(NicCongestion, WithoutControlACnpIsIgnored) {
  params_.congestion.control.name = "none";
  start();
  write(2);
  EXPECT_GT(heard().rp_cnp_ignored, 0u);
  EXPECT_EQ(heard().rp_cnp_handled, 0u);
}

// Only CNPs of the peer slow a queue pair down.
TEST_F(NicCongestion, ForgedCnpsAreIgnored) {
  start([] { return true; });
  write(1);
  const auto handled = heard().rp_cnp_handled;
  give_cnp([](Packet&) {});
  EXPECT_EQ(heard().rp_cnp_handled, handled + 1);
  give_cnp([](Packet& packet) { packet.addresses.source[15] ^= 9; });
  EXPECT_EQ(heard().rp_cnp_handled, handled + 1);
  EXPECT_EQ(heard().rp_cnp_ignored, 1u);
  const auto unknown = heard().unknown_qp;
  give_cnp([](Packet& packet) { packet.headers.bth.destination = {0x77}; });
  EXPECT_EQ(heard().unknown_qp, unknown + 1);
}

// A marked CNP causes no CNP, and a CNP with missing or additional bytes does no harm.
TEST_F(NicCongestion, OddCnpsDoNoHarm) {
  start();
  write(1);
  const auto sent = a().nic.counters().notification.np_cnp_sent;
  give_cnp([](Packet& packet) { packet.addresses.traffic_class |= kCe; });
  for (const std::uint32_t bytes : {0u, 4u, 15u, 1000u})
    give_cnp([bytes](Packet& packet) { packet.put(Payload(bytes)); });
  EXPECT_EQ(a().nic.counters().notification.np_cnp_sent, sent);
  write(1);
}

// --- Marks that acknowledgements report (DCTCP).
class NicEcnEcho : public NicCongestion {
 protected:
  void SetUp() override {
    NicCongestion::SetUp();
    params_.congestion.control.name = "dctcp";
  }
  // Acknowledgements of the run that report a mark, and all acknowledgements.
  std::pair<int, int> echoes() const {
    std::pair<int, int> counts;
    for (const auto& packet : others_) {
      if (packet.headers.bth.opcode != roce::Opcode::acknowledge) continue;
      ++counts.second;
      counts.first += packet.headers.bth.becn;
    }
    return counts;
  }
};

TEST_F(NicEcnEcho, TheNextAcknowledgementTellsOfAMark) {
  int packets = 0;
  start([&] { return ++packets == 3; });
  write(5);
  EXPECT_EQ(echoes(), std::pair(1, 5));
}

TEST_F(NicEcnEcho, IsForThoseWhoWantToKnow) {
  for (const auto& [echo, control, told] :
       {std::tuple("auto", "dctcp", 2), {"auto", "dcqcn", 0}, {"on", "dcqcn", 2}, {"off", "dctcp", 0}}) {
    params_.congestion.np.ecn_echo = echo;
    params_.congestion.control.name = control;
    others_.clear();
    start();
    write(1);
    write(1);
    EXPECT_EQ(echoes().first, told) << echo << control;
  }
}

TEST_F(NicEcnEcho, ALongMessageIsAcknowledgedEveryFewPackets) {
  params_.congestion.ack_every = 4;
  start([] { return false; });
  write(1, 16 * 1024);  // packets of one MTU each
  EXPECT_EQ(echoes(), std::pair(0, 4));
}

// --- Port telemetry in requests, returned in acknowledgements (HPCC).
class NicTelemetry : public NicCongestion {
 protected:
  struct Carried {
    roce::Opcode opcode;
    std::optional<Telemetry> block;
    std::uint32_t bytes;
  };

  void SetUp() override {
    NicCongestion::SetUp();
    params_.congestion.control.name = "hpcc";
  }
  // Each frame passes a port with utilisation `used`.
  void start_with_a_port(double used = 1) {
    build(params_);
    connect();
    drop() = [this, used](Frame& frame) {
      const auto* packet = frame.as<Packet>();
      if (packet == nullptr) return false;
      carried_.push_back({packet->headers.bth.opcode, std::nullopt, frame.size()});
      if (frame.telemetry() == nullptr) return false;
      carried_.back().block = *frame.telemetry();
      const auto sent = static_cast<std::uint64_t>(static_cast<double>(now().ps) / 80 * used);
      frame.add_hop({.rate = {100'000'000'000}, .at = now(), .sent = sent, .queue = 0, .id = 1});
      last_ = *frame.telemetry();
      return false;
    };
  }
  void read(std::uint32_t bytes) {
    a().post_send({.opcode = SendOpcode::read, .length = bytes, .remote = at_b()});
    EXPECT_EQ(a().wait_status(kSendCqn, 1_s), CqeSyndrome::success);
  }
  Duration time_to_write(std::uint32_t bytes) {
    const auto begin = now();
    write(1, bytes);
    return now() - begin;
  }

  std::vector<Carried> carried_;
  std::optional<Telemetry> last_;  // as the frame continued
};

TEST_F(NicTelemetry, AnAcknowledgementGivesBackTheNewest) {
  start_with_a_port();
  for (int i = 0; i < 3; ++i) {
    carried_.clear();
    write(1, 8);
    ASSERT_EQ(carried_.size(), 2u);
    EXPECT_EQ(carried_[0].opcode, roce::Opcode::write_only);
    EXPECT_EQ(carried_[0].block, Telemetry());
    EXPECT_EQ(carried_[0].bytes, kTransportAt + 12 + 16 + 8 + 4 + 42);
    EXPECT_EQ(carried_[1].opcode, roce::Opcode::acknowledge);
    EXPECT_EQ(carried_[1].bytes, kTransportAt + 12 + 4 + 4 + 42);
    ASSERT_TRUE(carried_[1].block);
    EXPECT_TRUE(carried_[1].block->goes_back());
    EXPECT_EQ(carried_[1].block->hops().size(), 1u);
    EXPECT_EQ(carried_[1].block, last_);  // no port adds a record on the way back
  }
}

TEST_F(NicTelemetry, EachRequestOfAMessageCarriesItAndReadsDoNot) {
  start_with_a_port();
  write(1, 8 * 1024);
  std::size_t acknowledgements = 0;
  for (const auto& one : carried_) {
    const bool is_request = one.opcode != roce::Opcode::acknowledge;
    EXPECT_TRUE(!is_request || one.block);
    acknowledgements += !is_request && one.block;  // a further acknowledgement may have nothing newer to return
  }
  EXPECT_GT(acknowledgements, 0u);
  carried_.clear();
  read(8 * 1024);
  EXPECT_GT(carried_.size(), 8u);
  for (const auto& one : carried_) EXPECT_FALSE(one.block);
}

TEST_F(NicTelemetry, IsForThoseWhoWantIt) {
  for (const auto* control : {"none", "dcqcn", "dctcp"}) {
    params_.congestion.control.name = control;
    carried_.clear();
    start_with_a_port();
    write(2);
    EXPECT_FALSE(carried_.empty());
    for (const auto& one : carried_) EXPECT_FALSE(one.block) << control;
  }
}

TEST_F(NicTelemetry, ABusyPortSlowsItsSendersDown) {
  params_.congestion.ack_every = 1;
  const auto time_behind_ten = [this] {
    write(10, 1 << 16);
    return time_to_write(1 << 16);
  };
  start_with_a_port(0.5);
  const auto free = time_behind_ten();
  start_with_a_port(4);
  EXPECT_GT(time_behind_ten(), 2 * free);
}

// --- The delay inside the receiver: requests ask for it, acknowledgements report it (Swift).
class NicEndpointDelay : public NicTelemetry {
 protected:
  void SetUp() override {
    NicTelemetry::SetUp();
    params_.congestion.control.name = "swift";
  }
};

TEST_F(NicEndpointDelay, AnAcknowledgementBringsIt) {
  start_with_a_port();
  write(1, 8);
  ASSERT_EQ(carried_.size(), 2u);
  EXPECT_EQ(carried_[0].block, Telemetry::delay_request());
  EXPECT_EQ(carried_[0].bytes, kTransportAt + 12 + 16 + 8 + 4 + 8);
  EXPECT_EQ(carried_[1].bytes, kTransportAt + 12 + 4 + 4 + 8);
  ASSERT_TRUE(carried_[1].block && carried_[1].block->delay());
  // The delay is the receive pipeline plus the time of a WRITE to memory.
  EXPECT_GT(*carried_[1].block->delay(), params_.rx.latency);
  EXPECT_LT(*carried_[1].block->delay(), 2_us);
}

TEST_F(NicEndpointDelay, ReadsDoNotAskForIt) {
  start_with_a_port();
  read(8 * 1024);
  EXPECT_GT(carried_.size(), 8u);
  for (const auto& one : carried_) EXPECT_FALSE(one.block);
}

}  // namespace
}  // namespace rnicsim::nic::test
