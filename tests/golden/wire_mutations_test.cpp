// SPDX-License-Identifier: Apache-2.0
// Captures of real NICs with one change and a valid ICRC: a bit, a packet, or a time. Every change must show, except
// where an equivalence allows it. A missing or additional packet shows once, and not in the packets that follow.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/replay/cm/cm_validator.h"
#include "sim/replay/replay.h"
#include "tests/support/wire_frames.h"

namespace rnicsim::sim::replay::wire_mutations_test {
namespace {

constexpr std::size_t kTransportAt = 14 + 20 + 8;
constexpr std::size_t kPkeyAt = kTransportAt + 2;
constexpr std::size_t kDestinationAt = kTransportAt + 5;
constexpr std::size_t kPsnAt = kTransportAt + 9;
constexpr std::size_t kSyndromeAt = kTransportAt + 12;
constexpr std::size_t kEnd = kSyndromeAt + 4;

struct View {
  const char* capture;
  const char* address;
  std::size_t stride = 1;  // every stride-th packet is altered

  friend std::ostream& operator<<(std::ostream& out, const View& view) { return out << view.capture << view.address; }
};

std::string name_of(const testing::TestParamInfo<View>& info) {
  auto name = std::string(info.param.capture) + (info.param.address == std::string("10.0.0.1") ? "_as_h0" : "_as_h1");
  std::ranges::replace(name, '-', '_');
  return name;
}

class WireMutations : public testing::TestWithParam<View> {
 protected:
  void SetUp() override { ASSERT_EQ(differences(), 0u); }

  std::uint64_t differences() const { return differences(frames); }
  std::uint64_t differences(const std::vector<CapturedFrame>& altered) const {
    const auto engine_owner = nic::make_model_engine({});
    auto& engine = *engine_owner;
    return replay_frames(altered, address, engine).differences();
  }
  void expect_flips_show(const WirePacket& packet, std::size_t from, std::size_t to,
                         const std::function<bool(std::size_t, unsigned)>& is_free) {
    auto& frame = frames.at(packet.frame - 1);
    for (auto at = from; at < to; ++at)
      for (unsigned bit = 0; bit < 8; ++bit) {
        const auto flip = std::byte(1u << bit);
        frame.bytes[at] ^= flip;
        test::seal(frame);
        EXPECT_EQ(differences() == 0, is_free(at, bit))
            << packet.row().name << " frame " << frame.number << " byte " << at << " bit " << bit;
        frame.bytes[at] ^= flip;
        test::seal(frame);
        ++tried;
      }
  }
  std::vector<CapturedFrame> without(std::uint32_t number) const {
    auto altered = frames;
    std::erase_if(altered, [&](const CapturedFrame& frame) { return frame.number == number; });
    return altered;
  }
  // Duplicates a frame. Later frames are renumbered: a frame's number is its position.
  std::vector<CapturedFrame> with_twice(std::uint32_t number) const {
    auto altered = frames;
    const auto at = std::ranges::find(altered, number, &CapturedFrame::number);
    altered.insert(at, *at);
    for (std::size_t i = 0; i < altered.size(); ++i) altered[i].number = static_cast<std::uint32_t>(i + 1);
    return altered;
  }
  // Visits every stride-th packet that the address sent: requests or responses.
  template <class Visit>
  void each_sent(bool responses, Visit&& visit) {
    std::size_t count = 0;
    for (const auto& packet : capture.packets)
      if (packet.addresses.source == address && packet.row().response() == responses &&
          count++ % GetParam().stride == 0)
        visit(packet);
    EXPECT_GT(count, 0u);
  }
  static bool never(std::size_t, unsigned) { return false; }

  std::vector<CapturedFrame> frames = read_capture(std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces" / "wire" /
                                                   (GetParam().capture + std::string(".pcap")));
  const WireCapture capture = parse_capture(frames);
  const roce::Gid address = *parse_address(GetParam().address);
  std::size_t tried = 0;
};

// --- Answers of the address: each bit of PSN, syndrome and MSN.
class WireAnswers : public WireMutations {};

TEST_P(WireAnswers, EachFlippedBitShows) {
  each_sent(true, [&](const WirePacket& packet) {
    const bool has_aeth = packet.row().has(roce::header::kAeth);
    const bool ack = has_aeth && (packet.headers.aeth->syndrome & roce::Aeth::kClassMask) == roce::Aeth::kAck;
    expect_flips_show(packet, kPsnAt, has_aeth ? kEnd : kSyndromeAt,
                      [&](std::size_t at, unsigned bit) { return ack && at == kSyndromeAt && bit < 5; });
  });
  EXPECT_GT(tried, 200u);
  EXPECT_EQ(differences(), 0u);
}

TEST_P(WireAnswers, OneThatIsMissingShowsOnce) {
  // Class of the syndrome of an ACKNOWLEDGE.
  const auto class_of = [](const WirePacket& packet) -> std::optional<unsigned> {
    if (packet.row().operation != roce::Operation::acknowledge) return std::nullopt;
    return packet.headers.aeth->syndrome & roce::Aeth::kClassMask;
  };
  std::size_t must_show = 0;
  each_sent(true, [&](const WirePacket& packet) {
    const auto found = differences(without(packet.frame));
    const auto kind = class_of(packet);
    // A later ACK may replace a missing one. Soft-RoCE sends a second NAK: allowed behind its RNR NAK, otherwise one
    // more difference.
    const auto before =
        std::find_if(std::make_reverse_iterator(std::ranges::find(capture.packets, packet.frame, &WirePacket::frame)),
                     capture.packets.rend(), class_of);
    const bool behind_rnr = before != capture.packets.rend() && class_of(*before) == roce::Aeth::kRnrNak;
    EXPECT_LE(found, kind == roce::Aeth::kRnrNak ? 2u : 1u) << packet.frame;
    if (kind == roce::Aeth::kAck || (kind == roce::Aeth::kNak && behind_rnr)) return;
    EXPECT_GE(found, 1u) << packet.frame;
    ++must_show;
  });
  EXPECT_GT(must_show, 0u);
}

TEST_P(WireAnswers, OneThatIsGivenTwiceShowsOnce) {
  each_sent(true,
            [&](const WirePacket& packet) { EXPECT_EQ(differences(with_twice(packet.frame)), 1u) << packet.frame; });
}

INSTANTIATE_TEST_SUITE_P(Captures, WireAnswers,
                         testing::Values(View{"rxe-two-guests", "10.0.0.1"}, View{"rxe-two-guests", "10.0.0.2"},
                                         View{"rnr-h0", "10.0.0.2", 3}, View{"read_loss-h1", "10.0.0.2", 17}),
                         name_of);

// Two peculiarities of Soft-RoCE are accepted in their places, and nowhere else.
class WireReadLoss : public WireMutations {
 protected:
  CapturedFrame& resumed() {
    const auto found = std::ranges::find_if(capture.packets, [&](const WirePacket& packet) {
      return packet.row().response() && packet.psn().value() == 258 && packet.frame > kFirstAgain;
    });
    return frames.at(found->frame - 1);
  }
  static constexpr std::uint32_t kFirstAgain = 120;
};

TEST_P(WireReadLoss, TheResumedAnswerIsCheckedByItsLengthAndPlace) {
  const auto right = resumed();
  auto& frame = resumed();
  const auto parsed = roce::parse_frame(right.bytes, right.bytes.size());
  const auto payload = std::span(right.bytes).subspan(parsed.payload_offset, parsed.payload_bytes);
  frame.bytes = test::frame_of(parsed.addresses, parsed.headers, payload.first(payload.size() - 4));
  frame.length = static_cast<std::uint32_t>(frame.bytes.size());
  EXPECT_EQ(differences(), 1u);
  auto headers = parsed.headers;
  headers.bth.opcode = roce::Opcode::read_response_last;
  headers.aeth = roce::Aeth{0x1f, 3};
  frame.bytes = test::frame_of(parsed.addresses, headers, payload);
  frame.length = static_cast<std::uint32_t>(frame.bytes.size());
  EXPECT_EQ(differences(), 1u);
}

TEST_P(WireReadLoss, NoOtherPacketMayBeginInTheMiddle) {
  std::size_t changed = 0;
  for (const auto& packet : capture.packets) {
    if (packet.headers.bth.opcode != roce::Opcode::read_response_first) continue;
    // The packet loses its AETH and becomes READ_RESPONSE_MIDDLE.
    auto altered = frames;
    auto& frame = altered.at(packet.frame - 1);
    auto headers = packet.headers;
    headers.bth.opcode = roce::Opcode::read_response_middle;
    frame.bytes = test::frame_of(packet.addresses, headers, packet.payload.bytes());
    frame.length = static_cast<std::uint32_t>(frame.bytes.size());
    EXPECT_EQ(differences(altered), 1u) << packet.frame;
    ++changed;
  }
  EXPECT_EQ(changed, 5u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireReadLoss, testing::Values(View{"read_loss-h1", "10.0.0.2"}), name_of);

class WireRnr : public WireMutations {
 protected:
  bool is_nak(const WirePacket& packet, std::uint8_t syndrome) const {
    return packet.headers.aeth && packet.headers.aeth->syndrome == syndrome;
  }
};

TEST_P(WireRnr, TheSecondNakIsFreeBehindTheFirstOnly) {
  const auto behind = std::ranges::find_if(
      capture.packets, [&](const auto& packet) { return is_nak(packet, roce::Aeth::kSequenceError); });
  EXPECT_EQ(differences(without(behind->frame)), 0u);
  EXPECT_EQ(differences(with_twice(behind->frame)), 1u);
  // In the other order the NAK reports a gap that does not exist.
  auto swapped = frames;
  std::swap(swapped.at(behind->frame - 2).bytes, swapped.at(behind->frame - 1).bytes);
  EXPECT_GT(differences(swapped), 0u);
  // Without the RNR NAK before it, the NAK is a difference.
  EXPECT_GT(differences(without(behind->frame - 1)), 0u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireRnr, testing::Values(View{"rnr-h0", "10.0.0.2"}), name_of);

// --- Requests that the address sent.
class WireRequests : public WireMutations {};

TEST_P(WireRequests, EachFlippedBitOfAPsnOrDestinationShows) {
  each_sent(false, [&](const WirePacket& packet) {
    if (packet.headers.bth.destination.value == 1) return;
    expect_flips_show(packet, kPsnAt, kSyndromeAt, never);
  });
  EXPECT_GT(tried, 40u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireRequests,
                         testing::Values(View{"exhaustion-h0", "10.0.0.1"}, View{"read_loss-h0", "10.0.0.1"},
                                         View{"rnr-h0", "10.0.0.1", 13}, View{"rnr_exhaust-h0", "10.0.0.1"},
                                         View{"uc-h0", "10.0.0.1"}, View{"mcast-h0", "10.0.0.1"},
                                         View{"rxe-two-guests", "10.0.0.2", 5}),
                         name_of);

// A retransmitted packet must equal the first transmission, except for data that a READ has received already.
class WireResends : public WireMutations {
 protected:
  std::vector<const WirePacket*> resends() {
    std::vector<const WirePacket*> found;
    roce::Psn next;
    each_sent(false, [&](const WirePacket& packet) {
      if (!found.empty() || (seen_ && before(packet.psn(), next))) found.push_back(&packet);
      next = packet.psn();
      seen_ = true;
    });
    return found;
  }
  // Without the last packet of a round, the NIC may have gone back earlier, and the capture may have ended.
  static bool ends_a_round(const std::vector<const WirePacket*>& again, std::size_t i) {
    return i + 1 == again.size() || !before(again[i]->psn(), again[i + 1]->psn());
  }

 private:
  bool seen_ = false;
};

TEST_P(WireResends, EachFlippedBitShows) {
  const auto again = resends();
  for (std::size_t i = 0; i < again.size() && i < 6; ++i) {
    expect_flips_show(*again[i], kPkeyAt, kPkeyAt + 2, never);
    // With another destination, the packet belongs to another QP and is missing here.
    if (!ends_a_round(again, i)) expect_flips_show(*again[i], kDestinationAt, kDestinationAt + 3, never);
    const std::size_t reth = again[i]->headers.reth ? 16 : 0;
    expect_flips_show(*again[i], kSyndromeAt, kSyndromeAt + reth + (again[i]->payload.empty() ? 0 : 1), never);
  }
  EXPECT_GT(tried, 100u);
}

TEST_P(WireResends, OneThatIsMissingShows) {
  const auto again = resends();
  ASSERT_GT(again.size(), 1u);
  std::size_t must_show = 0;
  for (std::size_t i = 0; i + 1 < again.size() && i < 5; ++i) {
    if (ends_a_round(again, i)) continue;
    EXPECT_GT(differences(without(again[i]->frame)), 0u) << again[i]->frame;
    ++must_show;
  }
  EXPECT_GT(must_show, 1u);
}

TEST_P(WireResends, OneThatIsSentTwiceShows) {
  const auto again = resends();
  ASSERT_FALSE(again.empty());
  for (std::size_t i = 0; i < again.size() && i < 6; ++i)
    EXPECT_GT(differences(with_twice(again[i]->frame)), 0u) << again[i]->frame;
}

INSTANTIATE_TEST_SUITE_P(Captures, WireResends,
                         testing::Values(View{"exhaustion-h0", "10.0.0.1"}, View{"read_loss-h0", "10.0.0.1"},
                                         View{"rnr-h0", "10.0.0.1"}, View{"atomic_loss-h0", "10.0.0.1"},
                                         View{"rnr_exhaust-h0", "10.0.0.1"}),
                         name_of);

// --- Times: retransmissions before the timer has ended.
class WireTimes : public WireMutations {
 protected:
  // Moves the frame and all later frames earlier by `by`.
  void hurry(std::uint32_t number, Duration by) {
    for (auto& frame : frames)
      if (frame.number >= number) frame.time -= by;
  }
};

TEST_P(WireTimes, TheRnrTimerIsWaitedFor) {
  constexpr Duration kTimer{2'560'000'000};
  const auto nak = std::ranges::find_if(
      capture.packets, [](const auto& packet) { return packet.headers.aeth && packet.headers.aeth->syndrome == 0x30; });
  const auto again = std::find_if(nak, capture.packets.end(), [](const auto& packet) {
    return !packet.row().response() && packet.psn().value() == 256;
  });
  const auto waited = again->time - nak->time;
  ASSERT_GT(waited, kTimer);
  hurry(again->frame, waited - kTimer);
  EXPECT_EQ(differences(), 0u);
  hurry(again->frame, Duration{1'000});
  EXPECT_GT(differences(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireTimes, testing::Values(View{"rnr-h0", "10.0.0.1"}), name_of);

class WireGivesUp : public WireMutations {};

// One more packet than the retry count allows, as the earlier rounds imply it: the engine has given up.
TEST_P(WireGivesUp, NothingIsSentBehindTheEnd) {
  auto more = frames;
  constexpr std::size_t kRound = 6;
  for (std::size_t i = 0; i < 5 * kRound; ++i) {
    auto frame = more.at(more.size() - kRound);
    frame.number = static_cast<std::uint32_t>(more.size() + 1);
    frame.time += Duration{8'000'000'000};
    more.push_back(frame);
  }
  EXPECT_GT(differences(more), 0u);  // eight retries; the retry count is at most seven
  more.resize(frames.size() + 4 * kRound);
  EXPECT_EQ(differences(more), 0u);
}

TEST_P(WireGivesUp, ATimerTooShortForAnyTimeoutShows) {
  for (auto& frame : frames)
    if (frame.number > 6) frame.time -= frames.at(6).time - frames.at(0).time - Duration{5'000'000};
  EXPECT_GT(differences(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireGivesUp, testing::Values(View{"exhaustion-h0", "10.0.0.1"}), name_of);

// --- Connection management: messages of the address to the peer's QP1.
class WireManagement : public WireMutations {
 protected:
  static constexpr std::size_t kMadAt = kTransportAt + 12 + 8;
  static constexpr std::size_t kTransactionAt = kMadAt + 8;
  static constexpr std::size_t kAttributeAt = kMadAt + 16;
  static constexpr std::size_t kLocalIdAt = kMadAt + 24;
  static constexpr std::size_t kRemoteIdAt = kMadAt + 28;
  static constexpr std::size_t kRejectReasonAt = kMadAt + 34;

  CmTraffic traffic() const { return cm_traffic(parse_capture(frames), address); }
  std::uint64_t unlike() const { return validate_management(traffic(), address).differences.size(); }
  // Visits the messages that the address sent, by kind and frame.
  template <class Visit>
  void each_message(Visit&& visit) {
    std::size_t count = 0;
    for (const auto& message : traffic().messages) {
      if (!message.sent) continue;
      visit(std::string(cm::name_of(message.envelope.message)), message.frame);
      ++count;
    }
    EXPECT_GT(count, 1u);
  }
  void flip(std::uint32_t number, std::size_t at, unsigned bits) {
    frames.at(number - 1).bytes.at(at) ^= std::byte(bits);
    test::seal(frames.at(number - 1));
  }
};

// A sender chooses an ID when a message uses the ID for the first time; every other ID follows from earlier messages.
TEST_P(WireManagement, EachFlippedBitOfATransactionOrIdShows) {
  each_message([&](const std::string& kind, std::uint32_t number) {
    const auto is_free = [&](std::size_t at) {
      if (at < kLocalIdAt) return kind == "DREQ";
      return at < kRemoteIdAt ? kind == "REP" : kind == "REQ";
    };
    for (auto at = kTransactionAt; at < kMadAt + 32; ++at) {
      if (at >= kAttributeAt && at < kLocalIdAt) continue;
      for (unsigned bit = 0; bit < 8; ++bit) {
        flip(number, at, 1u << bit);
        EXPECT_EQ(unlike() == 0, is_free(at)) << kind << " byte " << at << " bit " << bit;
        flip(number, at, 1u << bit);
        ++tried;
      }
    }
  });
  EXPECT_GE(tried, 2u * 128);
  EXPECT_EQ(unlike(), 0u);
}

TEST_P(WireManagement, OneThatIsMissingShows) {
  each_message([&](const std::string& kind, std::uint32_t number) {
    // A later frame: without it, the answer to the last message might lie behind the end of the capture.
    auto altered = without(number);
    altered.push_back(frames.front());
    altered.back().time = frames.back().time + Duration{1'000'000'000'000};
    const auto found = differences(altered);
    if (kind == "RTU" || kind == "DREP")
      EXPECT_EQ(found, 1u) << kind;
    else if (kind == "DREQ")
      EXPECT_EQ(found, 0u);  // a host may end a connection without a DREQ
    else
      EXPECT_GE(found, 1u) << kind;
  });
}

TEST_P(WireManagement, OneThatIsSentTwiceShowsOnce) {
  each_message(
      [&](const std::string& kind, std::uint32_t number) { EXPECT_EQ(differences(with_twice(number)), 1u) << kind; });
}

TEST_P(WireManagement, OneThatIsCorruptShows) {
  each_message([&](const std::string& kind, std::uint32_t number) {
    frames.at(number - 1).bytes.at(kLocalIdAt) ^= std::byte{1};  // without a new ICRC
    EXPECT_GE(differences(), 1u) << kind;
    frames.at(number - 1).bytes.at(kLocalIdAt) ^= std::byte{1};
  });
}

// A malformed message is listed, as every other message.
TEST_P(WireManagement, OneThatIsMalformedShows) {
  each_message([&](const std::string& kind, std::uint32_t number) {
    flip(number, kAttributeAt + 1, 0x40);
    const auto given = traffic();
    EXPECT_EQ(given.messages.size() + given.odd.size(), 5u);
    EXPECT_EQ(given.odd.at(0).frame, number);
    EXPECT_GE(unlike(), 1u) << kind;
    flip(number, kAttributeAt + 1, 0x40);
  });
}

INSTANTIATE_TEST_SUITE_P(Captures, WireManagement,
                         testing::Values(View{"rxe-two-guests", "10.0.0.1"}, View{"rxe-two-guests", "10.0.0.2"}),
                         name_of);

// The peer's last message becomes a REQ for a service without listener, and the answer becomes its rejection.
class WireRejection : public WireManagement {};

TEST_P(WireRejection, IsDecidedByItsReason) {
  const auto wire = traffic();
  const auto& last = wire.messages.back();
  const auto& asked = wire.messages.at(wire.messages.size() - 2);
  ASSERT_TRUE(last.sent);
  const auto put = [&](const CmMessage& message, const cm::Envelope& envelope) {
    auto& frame = frames.at(message.frame - 1);
    std::ranges::copy(cm::encode(envelope), frame.bytes.begin() + kMadAt);
    test::seal(frame);
  };
  cm::ConnectRequest request{.local_id = 77, .service_id = 99, .local_qpn = 12};
  request.primary.local_gid = asked.peer;
  request.primary.remote_gid = address;
  put(asked, {.transaction_id = 5, .message = request});
  put(last, {.transaction_id = 5,
             .message = cm::ConnectReject{.remote_id = 77, .reason = cm::RejectReason::invalid_service_id}});
  EXPECT_EQ(differences(), 0u);
  flip(last.frame, kRejectReasonAt + 1, 8 ^ 10);  // reason stale connection: there is no such connection
  EXPECT_GT(differences(), 0u);
  flip(last.frame, kRejectReasonAt + 1, 8 ^ 10);
  flip(last.frame, kMadAt + 32, 0x40);  // rejected message REP: the peer sent no REP
  EXPECT_EQ(differences(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Captures, WireRejection, testing::Values(View{"rxe-two-guests", "10.0.0.1"}), name_of);

}  // namespace
}  // namespace rnicsim::sim::replay::wire_mutations_test
