// SPDX-License-Identifier: Apache-2.0
// Parts of the waterfall, with events that the test makes.
#include "sim/results/json.h"
#include "sim/waterfall/assembler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "sim/waterfall/perfetto.h"

namespace rnicsim::sim::waterfall_test {
namespace {

using namespace rnicsim::literals;
using nic::Qpn;
using roce::Psn;

constexpr std::uint32_t kRequester = 0, kResponder = 1;
constexpr Qpn kQp{0x40}, kRemoteQp{0x41};
constexpr std::uint32_t kCq = 7, kRemoteCq = 9;

Duration at(std::int64_t ns) { return {ns * 1000}; }

class Followed : public ::testing::Test {
 protected:
  Followed() {
    assembler.finished = [this](const Journey& journey) { (journey.one_way ? one_way : journeys).push_back(journey); };
  }

  void tell(std::uint32_t host, abi::MilestoneKind kind, std::int64_t ns, std::uint32_t queue, std::uint32_t position,
            std::uint32_t count = 1) {
    assembler.software(
        host, {.time = std::uint64_t(at(ns).ps), .queue = queue, .position = position, .count = count, .kind = kind});
  }
  void posted(std::int64_t ns, std::uint16_t index, std::uint32_t count = 1) {
    tell(kRequester, abi::MilestoneKind::posted, ns, kQp.value, index, count);
  }
  void polled(std::int64_t ns, std::uint32_t consumer) {
    tell(kRequester, abi::MilestoneKind::polled, ns, kCq, consumer);
  }
  void doorbell(std::int64_t stored, std::int64_t arrived, std::uint16_t producer, std::int64_t context) {
    assembler.doorbell(kRequester, at(arrived), {.page = 1, .qpn = kQp, .producer = producer, .wqe_bytes = 64},
                       at(stored));
    assembler.doorbell_taken(kRequester, at(context), {kQp, producer});
  }
  void taken(std::int64_t ns, std::uint16_t index, std::uint64_t message, std::uint32_t psn, std::uint32_t packets = 1,
             nic::SendOpcode opcode = nic::SendOpcode::write, bool signaled = true) {
    assembler.wqe_taken(kRequester, at(ns),
                        {.qpn = kQp,
                         .queue = nic::QueueKind::send,
                         .index = index,
                         .opcode = opcode,
                         .bytes = 8,
                         .signaled = signaled,
                         .message = message,
                         .first = Psn(psn),
                         .packets = packets});
  }
  void began(std::int64_t ns, std::uint64_t message, std::uint32_t psn, std::uint32_t end,
             std::optional<nic::Tag> tag = {}) {
    assembler.request_began(kRequester, at(ns), {kQp, message, Psn(psn), Psn(end), tag});
  }
  void sent(std::uint32_t host, std::int64_t ns, std::uint64_t frame, std::uint32_t psn, roce::Opcode opcode,
            std::int64_t begins) {
    roce::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = Psn(psn);
    headers.bth.destination = host == kRequester ? kRemoteQp : kQp;
    const Payload payload;
    assembler.packet_sent(host, at(ns), {host == kRequester ? kQp : kRemoteQp, headers, payload, {}, frame, {}},
                          1 - host);
    assembler.frame_scheduled(host, {frame, at(begins)});
  }
  void received(std::uint32_t host, std::int64_t arrived, std::uint64_t frame, std::uint32_t psn, roce::Opcode opcode) {
    roce::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = Psn(psn);
    const Payload payload;
    assembler.packet_received(host, {host == kRequester ? kQp : kRemoteQp, headers, payload, {}, frame, at(arrived)});
  }
  void request_taken(std::int64_t ns, std::uint32_t psn, std::uint64_t frame) {
    assembler.request_taken(kResponder, at(ns), {kRemoteQp, Psn(psn), frame});
  }
  void placed(std::int64_t ns, std::uint32_t psn, std::optional<std::uint16_t> receive = {}) {
    assembler.request_placed(kResponder, at(ns), {kRemoteQp, Psn(psn), receive});
  }
  void answer_taken(std::int64_t ns, std::uint64_t frame, std::uint32_t oldest) {
    assembler.answer_taken(kRequester, at(ns), {kQp, frame, Psn(oldest)});
  }
  void completed(std::int64_t ns, std::uint64_t message, bool cqe = true, bool ok = true) {
    assembler.send_completed(kRequester, at(ns), {kQp, message, cqe, ok});
  }
  void cqe(std::int64_t landed, std::uint32_t entry, std::uint16_t index) {
    written(kRequester, kCq, entry, kQp, index, nic::CqeOpcode::requester);
    assembler.cqe_landed(kRequester, at(landed), {{kCq}, entry});
  }
  void written(std::uint32_t host, std::uint32_t cqn, std::uint32_t entry, Qpn qpn, std::uint16_t index,
               nic::CqeOpcode opcode) {
    nic::CqeWritten event{{cqn}, entry, {}};
    event.cqe.qpn = qpn.value;
    event.cqe.wqe_counter = index;
    event.cqe.opcode = opcode;
    assembler.cqe_written(host, event);
  }

  // A WRITE of one packet, from the unit until the ACK is processed; `frame`: the number of its frame.
  void write_attempt(std::int64_t from, std::uint64_t message, std::uint32_t psn, std::uint64_t frame) {
    began(from, message, psn, psn + 1, nic::Tag{frame});
    assembler.translated(kRequester, at(from + 5), nic::Tag{frame});
    sent(kRequester, from + 20, frame, psn, roce::Opcode::write_only, from + 30);
  }
  void write_arrives(std::int64_t from, std::uint32_t psn, std::uint64_t frame) {
    received(kResponder, from + 50, frame, psn, roce::Opcode::write_only);
    request_taken(from + 60, psn, frame);
    placed(from + 80, psn);
  }

  Assembler assembler{{{.post_wqe = 20_ns, .detect = 80_ns}, {.post_wqe = 20_ns, .detect = 80_ns}}};
  std::vector<Journey> journeys, one_way;
};

TEST_F(Followed, AWriteStageByStage) {
  posted(100, 0);
  doorbell(160, 330, 1, 335);
  taken(340, 0, 0, 500);
  write_attempt(350, 0, 500, 1);
  write_arrives(350, 500, 1);
  sent(kResponder, 440, 1, 500, roce::Opcode::acknowledge, 445);
  received(kRequester, 500, 1, 500, roce::Opcode::acknowledge);
  answer_taken(510, 1, 501);
  completed(510, 0);
  cqe(530, 0, 0);
  polled(600, 1);

  ASSERT_EQ(journeys.size(), 1u);
  const auto& journey = journeys[0];
  EXPECT_EQ(journey.start, at(100));
  EXPECT_EQ(journey.latency(), at(500));
  EXPECT_EQ(journey.host, kRequester);
  EXPECT_EQ(journey.peer, kResponder);
  const std::map<Stage, std::int64_t> expected{
      {Stage::post, 60},        {Stage::doorbell, 170},  {Stage::context, 5},    {Stage::fetch, 5},
      {Stage::unit, 10},        {Stage::translation, 5}, {Stage::dma, 15},       {Stage::tx, 10},
      {Stage::wire, 20},        {Stage::rx, 10},         {Stage::placement, 20}, {Stage::answer_tx, 15},
      {Stage::answer_wire, 55}, {Stage::answer_rx, 10},  {Stage::cqe, 20},       {Stage::poll, 70}};
  for (std::size_t i = 0; i < kStages; ++i) {
    const auto found = expected.find(Stage(i));
    EXPECT_EQ(journey.time_in(Stage(i)), at(found == expected.end() ? 0 : found->second)) << to_string(Stage(i));
  }
  ASSERT_EQ(one_way.size(), 1u);
  EXPECT_EQ(one_way[0].latency(), at(430 + 80 - 100));
  EXPECT_EQ(one_way[0].time_in(Stage::poll), at(80));
  EXPECT_EQ(assembler.irregular(), 0u);
}

TEST_F(Followed, TheAttemptThatWasAnswered) {
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 500);
  write_attempt(330, 0, 500, 1);  // lost
  write_attempt(5330, 0, 500, 2);
  write_arrives(5330, 500, 2);
  sent(kResponder, 5410, 1, 500, roce::Opcode::acknowledge, 5415);
  received(kRequester, 5450, 1, 500, roce::Opcode::acknowledge);
  answer_taken(5460, 1, 501);
  completed(5460, 0, false);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].time_in(Stage::retry), at(5000));
  EXPECT_EQ(journeys[0].time_in(Stage::wire), at(20));
  EXPECT_EQ(journeys[0].latency(), at(5460 - 160));
}

TEST_F(Followed, AnAckLost) {
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 500);
  write_attempt(330, 0, 500, 1);
  write_arrives(330, 500, 1);
  sent(kResponder, 410, 1, 500, roce::Opcode::acknowledge, 415);  // lost
  write_attempt(5330, 0, 500, 2);
  write_arrives(5330, 500, 2);  // a duplicate, which is acknowledged again
  sent(kResponder, 5410, 2, 500, roce::Opcode::acknowledge, 5415);
  received(kRequester, 5450, 2, 500, roce::Opcode::acknowledge);
  answer_taken(5460, 2, 501);
  completed(5460, 0, false);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].time_in(Stage::retry), at(5000));
  // The payload had arrived with the first attempt.
  ASSERT_EQ(one_way.size(), 1u);
  EXPECT_EQ(one_way[0].time_in(Stage::retry), at(0));
  EXPECT_EQ(one_way[0].latency(), at(410 + 80 - 160));
}

TEST_F(Followed, AnAnswerThatWasOnlyLate) {
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 500);
  write_attempt(330, 0, 500, 1);
  write_arrives(330, 500, 1);
  sent(kResponder, 410, 1, 500, roce::Opcode::acknowledge, 415);
  write_attempt(5330, 0, 500, 2);  // unnecessary
  received(kRequester, 5340, 1, 500, roce::Opcode::acknowledge);
  answer_taken(5350, 1, 501);
  completed(5350, 0, false);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].time_in(Stage::retry), at(0));
  EXPECT_EQ(journeys[0].time_in(Stage::answer_wire), at(5340 - 415));
  EXPECT_EQ(assembler.irregular(), 0u);
}

TEST_F(Followed, TheLastOfSeveralPackets) {
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 0xffffff, 3);  // its PSNs wrap
  began(340, 0, 0xffffff, 0, nic::Tag{1});
  began(360, 0, 0, 1, nic::Tag{2});
  sent(kRequester, 365, 1, 0xffffff, roce::Opcode::write_first, 370);
  write_attempt(380, 0, 1, 3);
  received(kResponder, 390, 1, 0xffffff, roce::Opcode::write_first);
  request_taken(395, 0xffffff, 1);
  placed(399, 0xffffff);
  write_arrives(380, 1, 3);
  sent(kResponder, 470, 1, 1, roce::Opcode::acknowledge, 470);
  received(kRequester, 480, 1, 1, roce::Opcode::acknowledge);
  answer_taken(480, 1, 2);
  completed(480, 0, false);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].time_in(Stage::unit), at(10));
  EXPECT_EQ(journeys[0].time_in(Stage::packets), at(40));
  EXPECT_EQ(journeys[0].time_in(Stage::retry), at(0));
  EXPECT_EQ(journeys[0].end_of(Stage::placement), at(460));
}

TEST_F(Followed, ARead) {
  posted(100, 4);
  doorbell(160, 330, 5, 330);
  taken(330, 4, 9, 500, 2, nic::SendOpcode::read);
  began(330, 9, 500, 502);
  sent(kRequester, 330, 1, 500, roce::Opcode::read_request, 335);
  received(kResponder, 350, 1, 500, roce::Opcode::read_request);
  request_taken(360, 500, 1);
  sent(kResponder, 400, 1, 500, roce::Opcode::read_response_first, 405);
  sent(kResponder, 430, 2, 501, roce::Opcode::read_response_last, 435);
  received(kRequester, 440, 1, 500, roce::Opcode::read_response_first);
  answer_taken(445, 1, 501);
  received(kRequester, 460, 2, 501, roce::Opcode::read_response_last);
  answer_taken(465, 2, 502);
  assembler.answer_placed(kRequester, at(470), {kQp, 9});
  assembler.answer_placed(kRequester, at(490), {kQp, 9});
  completed(490, 9);
  cqe(495, 0, 4);
  polled(550, 1);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].time_in(Stage::placement), at(70));
  EXPECT_EQ(journeys[0].time_in(Stage::answer_wire), at(25));
  EXPECT_EQ(journeys[0].time_in(Stage::scatter), at(25));
  EXPECT_EQ(journeys[0].latency(), at(450));
  EXPECT_TRUE(one_way.empty());
}

TEST_F(Followed, AListBehindOneDoorbell) {
  posted(100, 0, 3);
  doorbell(200, 370, 3, 370);
  for (std::uint16_t i = 0; i < 3; ++i) taken(800, i, i, 500 + i);
  for (std::uint32_t i = 0; i < 3; ++i) {
    write_attempt(800 + i, i, 500 + i, 1 + i);
    write_arrives(800 + i, 500 + i, 1 + i);
  }
  sent(kResponder, 900, 1, 502, roce::Opcode::acknowledge, 905);  // one ACK for all
  received(kRequester, 950, 1, 502, roce::Opcode::acknowledge);
  answer_taken(960, 1, 503);
  for (std::uint64_t i = 0; i < 3; ++i) completed(960, i, false);
  ASSERT_EQ(journeys.size(), 3u);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(journeys[std::size_t(i)].time_in(Stage::post), at(100 - 20 * i));
  EXPECT_EQ(assembler.irregular(), 0u);
}

TEST_F(Followed, APingPong) {
  posted(100, 0);
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 500, 1, nic::SendOpcode::send);
  write_attempt(330, 0, 500, 1);
  received(kResponder, 380, 1, 500, roce::Opcode::write_only);
  request_taken(390, 500, 1);
  placed(410, 500, std::uint16_t{6});
  written(kResponder, kRemoteCq, 0, kRemoteQp, 6, nic::CqeOpcode::receive_send);
  assembler.cqe_landed(kResponder, at(420), {{kRemoteCq}, 0});
  EXPECT_TRUE(one_way.empty());
  tell(kResponder, abi::MilestoneKind::polled, 530, kRemoteCq, 1);
  ASSERT_EQ(one_way.size(), 1u);
  EXPECT_EQ(one_way[0].latency(), at(430));
  EXPECT_EQ(one_way[0].time_in(Stage::cqe), at(10));
  EXPECT_EQ(one_way[0].time_in(Stage::poll), at(110));
  // The peer answers 25 ns after it has seen the message.
  tell(kResponder, abi::MilestoneKind::posted, 555, kRemoteQp.value, 0);
  assembler.doorbell(kResponder, at(700), {.page = 1, .qpn = kRemoteQp, .producer = 1, .wqe_bytes = 64}, at(600));
  assembler.doorbell_taken(kResponder, at(700), {kRemoteQp, 1});
  nic::WqeTaken wqe{kRemoteQp, nic::QueueKind::send, 0, nic::SendOpcode::write, 8, false, 0, Psn(900), 1};
  assembler.wqe_taken(kResponder, at(700), wqe);
  assembler.request_began(kResponder, at(700), {kRemoteQp, 0, Psn(900), Psn(901), {}});
  sent(kResponder, 710, 5, 900, roce::Opcode::write_only, 715);
  received(kRequester, 730, 5, 900, roce::Opcode::write_only);
  assembler.request_taken(kRequester, at(740), {kQp, Psn(900), 5});
  assembler.request_placed(kRequester, at(760), {kQp, Psn(900), {}});
  ASSERT_EQ(one_way.size(), 2u);
  EXPECT_EQ(one_way[1].start, at(530));
  EXPECT_EQ(one_way[1].time_in(Stage::turnaround), at(25));
  EXPECT_EQ(one_way[1].latency(), at(760 + 80 - 530));
}

TEST_F(Followed, WorkThatFailsOrNeedsNoPacket) {
  doorbell(160, 330, 3, 330);
  taken(330, 0, 0, 500, 0, nic::SendOpcode::nop);
  taken(330, 1, 1, 500);
  taken(330, 2, 2, 501);
  completed(340, 0);
  cqe(350, 0, 0);
  completed(400, 1, true, false);
  completed(400, 2, true, false);
  polled(450, 1);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].latency(), at(450 - 160));
  EXPECT_EQ(journeys[0].time_in(Stage::poll), at(100));
  EXPECT_EQ(assembler.failed(), 2u);
  EXPECT_EQ(assembler.taken(), 3u);
}

TEST_F(Followed, AQpThatBeginsAnew) {
  posted(100, 0);
  doorbell(160, 330, 1, 330);
  taken(330, 0, 0, 500);
  completed(340, 0);
  written(kRequester, kCq, 0, kQp, 0, nic::CqeOpcode::requester);
  assembler.qp_reset(kRequester, kQp);
  polled(500, 1);
  EXPECT_TRUE(journeys.empty());
  doorbell(1160, 1330, 1, 1330);
  taken(1330, 0, 0, 800, 0, nic::SendOpcode::nop);
  completed(1340, 0);
  cqe(1350, 1, 0);
  polled(1400, 2);
  ASSERT_EQ(journeys.size(), 1u);
  EXPECT_EQ(journeys[0].latency(), at(240));
}

TEST(Timeline, IsATraceThatParses) {
  std::vector<Journey> journeys(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto& journey = journeys[2 - i];
    journey.number = i;
    journey.peer = 1;
    journey.opcode = nic::SendOpcode::write;
    journey.bytes = 2;
    journey.start = Duration{std::int64_t(1'000'123 + i * 1000)};
    for (std::size_t stage = 0; stage < kStages; ++stage)
      journey.end[stage] = journey.start + Duration{std::int64_t(stage) * 7001};
  }
  const auto text = timeline_json({"h\"0", "h1"}, journeys);
  const auto trace = Json::parse(text);
  EXPECT_NE(text.find("\"ts\":1.000123"), std::string::npos);
  std::map<std::pair<int, int>, double> busy;  // end of the last slice by track
  std::map<int, std::string> flows;
  for (const auto& event : trace["traceEvents"]) {
    const auto phase = event["ph"].get<std::string>();
    if (phase == "s" || phase == "t" || phase == "f") flows[event["id"].get<int>()] += phase;
    if (phase != "X") continue;
    auto& until = busy[{event["pid"].get<int>(), event["tid"].get<int>()}];
    EXPECT_GE(event["ts"].get<double>() + 1e-9, until) << event.dump();
    until = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(flows.size(), 3u);
  for (const auto& [id, phases] : flows) {
    EXPECT_EQ(phases.front(), 's');
    EXPECT_EQ(phases.back(), 'f');
    EXPECT_EQ(phases.size(), kStages - 1) << "the first stage took no time";
  }
}

}  // namespace
}  // namespace rnicsim::sim::waterfall_test
