// SPDX-License-Identifier: Apache-2.0
// For every fault of the cable: the right bytes arrive exactly once, and the counters show the fault.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "model/base/kernel.h"
#include "sim/adapter_counters.h"
#include "sim/results/counter_list.h"
#include "sim/system.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing::faults_test {
namespace {

constexpr std::uint32_t kMessageBytes = 4000;  // four packets
constexpr std::uint32_t kSlot = 4096;
constexpr std::uint32_t kMostMessages = 8;

// Counter's path below "nic." (with prefix "h1:": of h1, otherwise of h0), and the least and most expected value.
struct Expected {
  const char* counter;
  std::uint64_t least;
  std::uint64_t most;
};
struct Case {
  const char* name;
  ibv_wr_opcode operation;
  std::uint32_t messages;
  std::vector<std::string> faults;
  std::vector<Expected> expected;
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(i * 31 + i / 251 + 1); }

class Exchanges : public TwoHosts {
 protected:
  Exchanges(const std::vector<std::string>& faults, std::uint64_t seed = 1) : TwoHosts({}, faults, seed) {
    options_.buffer_bytes = 3 * kMostMessages * kSlot;
    options_.psn = 0xfffffd;  // wraps within the first message
    options_.timeout = 8;     // 1.05 ms
  }

  // h0 posts all operations at once; h1 responds. A READ fetches the data that the other operations brought.
  void exchange(const std::vector<ibv_wr_opcode>& operations) {
    Exchange<EndpointAddress> addresses;
    run(
        [&] {
          Endpoint end(options_);
          fill(end);
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          request(end, operations);
          meet(0);
          expect_quiet(end, 0);
          meet(0);
        },
        [&] {
          Endpoint end(options_);
          fill(end);
          end.connect(addresses.swap(1, end.address()));
          for (std::uint64_t id = 0; id < kMostMessages; ++id)
            ASSERT_EQ(end.receive(received(id), kMessageBytes, id), 0);
          meet(1);
          take_receives(end, operations);
          meet(1);
          for (std::uint32_t i = 0; i < operations.size(); ++i)
            if (operations[i] == IBV_WR_RDMA_WRITE) expect_bytes(end, target(i), source(i));
          expect_quiet(end, 1);
          meet(1);
        });
  }

  std::map<std::string, std::uint64_t> counters(std::size_t index) {
    std::map<std::string, std::uint64_t> values;
    const sim::CounterList list(system().counters(index));
    for (const auto& entry : list.entries()) values[entry.path] = entry.value;
    return values;
  }

  EndpointOptions options_;

 private:
  // Thirds of a buffer: source data, target of WRITEs and READs, target of SENDs.
  static std::uint32_t source(std::uint64_t message) { return static_cast<std::uint32_t>(message) * kSlot; }
  static std::uint32_t target(std::uint64_t message) { return source(kMostMessages + message); }
  static std::uint32_t received(std::uint64_t receive) { return source(2 * kMostMessages + receive); }
  static void fill(Endpoint& end) {
    for (std::uint32_t i = 0; i < source(kMostMessages); ++i) end.buffer[i] = pattern(i);
  }

  void request(Endpoint& end, const std::vector<ibv_wr_opcode>& operations) {
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const bool read = operations[i] == IBV_WR_RDMA_READ;
      auto wr = end.request(operations[i], read ? target(i) : source(i), kMessageBytes, read ? source(i) : target(i));
      wr.wr_id = i;
      ASSERT_EQ(end.post(wr), 0);
    }
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const auto wc = end.completion();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << "of message " << i;
      EXPECT_EQ(wc.wr_id, i);
      if (operations[i] == IBV_WR_RDMA_READ) expect_bytes(end, target(i), source(i));
    }
  }

  void take_receives(Endpoint& end, const std::vector<ibv_wr_opcode>& operations) {
    std::uint64_t id = 0;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      if (operations[i] != IBV_WR_SEND) continue;
      const auto wc = end.completion();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, id);
      EXPECT_EQ(wc.byte_len, kMessageBytes);
      expect_bytes(end, received(id++), source(i));
    }
  }

  static void expect_bytes(const Endpoint& end, std::uint32_t at, std::uint32_t from) {
    for (std::uint32_t i = 0; i < kMessageBytes; ++i)
      ASSERT_EQ(end.buffer[at + i], pattern(from + i)) << "of the message from " << from << ", byte " << i;
  }

  // Packets that are still on the cable are old: they change nothing and complete nothing.
  void expect_quiet(Endpoint& end, std::size_t me) {
    constexpr std::uint8_t kTouched = 0xee;
    std::fill(end.buffer.begin() + source(kMostMessages), end.buffer.end(), kTouched);
    settle(me);
    sleep_until(now() + Duration{20'000'000'000});
    EXPECT_EQ(std::count(end.buffer.begin() + source(kMostMessages), end.buffer.end(), kTouched),
              2 * kMostMessages * kSlot);
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(end.cq, 1, &wc), 0);
    EXPECT_EQ(end.state(), IBV_QPS_RTS);
  }
};

class Faults : public Exchanges, public ::testing::WithParamInterface<Case> {
 protected:
  Faults() : Exchanges(GetParam().faults) {}
};

TEST_P(Faults, RightBytesExactlyOnce) {
  exchange(std::vector(GetParam().messages, GetParam().operation));
  const std::array values{counters(0), counters(1)};
  for (const auto& [counter, least, most] : GetParam().expected) {
    const std::string_view text(counter);
    const bool second = text.starts_with("h1:");
    const std::string path(second ? text.substr(3) : text);
    const auto value = values[second].at((path.starts_with("link.") ? "" : "nic.") + path);
    EXPECT_GE(value, least) << counter;
    EXPECT_LE(value, most) << counter;
  }
  std::uint64_t struck = 0;
  for (const auto& host : values)
    for (const auto& [path, value] : host)
      if (path.starts_with("link.")) struck += value;
  EXPECT_GT(struck, 0u) << "no rule has struck";
}

constexpr std::uint64_t kAny = ~0ull;
constexpr auto kSend = IBV_WR_SEND;
constexpr auto kWrite = IBV_WR_RDMA_WRITE;
constexpr auto kRead = IBV_WR_RDMA_READ;

// Three messages in a row. The next packet shows the responder a lost or late request; only the timer shows the loss of
// the last request.
const std::vector<Expected> kSequenceError{
    {"h1:engine.out_of_sequence", 1, kAny}, {"engine.packet_seq_err", 1, 1}, {"engine.local_ack_timeout_err", 0, 0}};
// A late packet closes the gap. The packet behind it is then out of order again, unless it was retransmitted before.
const std::vector<Expected> kOvertaken{
    {"h1:engine.out_of_sequence", 1, kAny}, {"engine.packet_seq_err", 1, 2}, {"engine.local_ack_timeout_err", 0, 0}};
const std::vector<Expected> kTimeout{{"engine.local_ack_timeout_err", 1, 1}, {"engine.packet_seq_err", 0, 0}};
const std::vector<Expected> kDuplicate{{"h1:engine.duplicate_request", 1, kAny},
                                       {"h1:engine.out_of_sequence", 0, 0},
                                       {"engine.packet_seq_err", 0, 0},
                                       {"engine.local_ack_timeout_err", 0, 0}};
const std::vector<Expected> kNothing{{"engine.packet_seq_err", 0, 0},
                                     {"engine.local_ack_timeout_err", 0, 0},
                                     {"h1:engine.out_of_sequence", 0, 0},
                                     {"h1:engine.duplicate_request", 0, 0}};
const std::vector<Expected> kRepeat{{"engine.local_ack_timeout_err", 1, 1}, {"h1:engine.duplicate_request", 1, kAny}};
// The requester asks again for the missing response and for all later READs.
const std::vector<Expected> kResponseGap{{"engine.local_ack_timeout_err", 0, 0}, {"h1:engine.duplicate_request", 1, 6}};

std::vector<Expected> operator+(std::vector<Expected> a, const Expected& b) {
  a.push_back(b);
  return a;
}
constexpr Expected kBadAtH1{"h1:rx.rx_icrc_encapsulated", 1, 1};
constexpr Expected kBadAtH0{"rx.rx_icrc_encapsulated", 1, 1};

const Case kCases[] = {
    {"send_lost", kSend, 3, {"drop,opcode=SEND_MIDDLE,nth=1"}, kSequenceError + Expected{"link.dropped", 1, 1}},
    {"send_first_lost", kSend, 3, {"drop,opcode=SEND_FIRST,nth=1"}, kSequenceError},
    {"send_last_lost", kSend, 3, {"drop,opcode=SEND_LAST,nth=3"}, kTimeout},
    {"send_ack_lost", kSend, 1, {"drop,opcode=ACKNOWLEDGE,nth=1"}, kRepeat + Expected{"h1:link.dropped", 1, 1}},
    {"send_ack_lost_and_another_tells", kSend, 3, {"drop,opcode=ACKNOWLEDGE,nth=1"}, kNothing},
    {"send_corrupted", kSend, 3, {"corrupt,opcode=SEND_MIDDLE,nth=2"}, kSequenceError + kBadAtH1},
    {"send_ack_corrupted", kSend, 1, {"corrupt,opcode=ACKNOWLEDGE,nth=1"}, kRepeat + kBadAtH0},
    {"send_duplicated",
     kSend,
     3,
     {"duplicate,opcode=SEND_MIDDLE,nth=1"},
     kDuplicate + Expected{"link.duplicated", 1, 1}},
    {"send_last_duplicated", kSend, 3, {"duplicate,opcode=SEND_LAST,nth=3"}, kDuplicate},
    {"send_duplicated_late", kSend, 3, {"duplicate,opcode=SEND,by=5ms"}, kDuplicate},
    {"send_ack_duplicated", kSend, 3, {"duplicate,opcode=ACKNOWLEDGE"}, kNothing},
    {"send_ack_duplicated_late", kSend, 3, {"duplicate,opcode=ACKNOWLEDGE,by=5ms"}, kNothing},
    {"send_delayed", kSend, 3, {"delay,opcode=SEND_MIDDLE,nth=1,by=5us"}, kOvertaken + Expected{"link.delayed", 1, 1}},
    {"send_delayed_beyond_the_timeout", kSend, 1, {"delay,opcode=SEND_LAST,nth=1,by=5ms"}, kTimeout},
    {"send_ack_delayed", kSend, 3, {"delay,opcode=ACKNOWLEDGE,by=5us"}, kNothing},
    {"send_ack_delayed_beyond_the_timeout", kSend, 1, {"delay,opcode=ACKNOWLEDGE,nth=1,by=1500us"}, kRepeat},
    {"send_reordered", kSend, 3, {"reorder,opcode=SEND_FIRST,nth=2"}, kOvertaken + Expected{"link.reordered", 1, 1}},
    {"send_reordered_far", kSend, 3, {"reorder,opcode=SEND_MIDDLE,nth=1,by=5"}, kOvertaken},
    {"send_last_reordered", kSend, 3, {"reorder,opcode=SEND_LAST,nth=3"}, kNothing},
    {"send_ack_reordered", kSend, 3, {"reorder,opcode=ACKNOWLEDGE,nth=1"}, kNothing},

    {"write_lost", kWrite, 3, {"drop,opcode=WRITE_MIDDLE,nth=1"}, kSequenceError},
    {"write_first_lost", kWrite, 3, {"drop,opcode=WRITE_FIRST,nth=2"}, kSequenceError},
    {"write_last_lost", kWrite, 3, {"drop,opcode=WRITE_LAST,nth=3"}, kTimeout},
    {"write_ack_lost", kWrite, 1, {"drop,opcode=ACKNOWLEDGE,nth=1"}, kRepeat},
    {"write_corrupted", kWrite, 3, {"corrupt,opcode=WRITE_FIRST,nth=1"}, kSequenceError + kBadAtH1},
    {"write_ack_corrupted", kWrite, 1, {"corrupt,opcode=ACKNOWLEDGE,nth=1"}, kRepeat + kBadAtH0},
    {"write_duplicated", kWrite, 3, {"duplicate,opcode=WRITE"}, kDuplicate},
    {"write_duplicated_late", kWrite, 3, {"duplicate,opcode=WRITE,by=5ms"}, kDuplicate},
    {"write_delayed", kWrite, 3, {"delay,opcode=WRITE_LAST,nth=1,by=5us"}, kOvertaken},
    {"write_delayed_beyond_the_timeout", kWrite, 1, {"delay,opcode=WRITE_LAST,nth=1,by=5ms"}, kTimeout},
    {"write_reordered", kWrite, 3, {"reorder,opcode=WRITE_LAST,nth=1"}, kOvertaken},

    {"read_request_lost", kRead, 3, {"drop,opcode=READ_REQUEST,nth=2"}, kSequenceError},
    {"read_request_lost_alone", kRead, 1, {"drop,opcode=READ_REQUEST,nth=1"}, kTimeout},
    {"read_request_corrupted", kRead, 3, {"corrupt,opcode=READ_REQUEST,nth=2"}, kSequenceError + kBadAtH1},
    {"read_request_duplicated", kRead, 3, {"duplicate,opcode=READ_REQUEST,nth=2"}, kDuplicate},
    {"read_request_duplicated_late", kRead, 3, {"duplicate,opcode=READ_REQUEST,by=5ms"}, kDuplicate},
    {"read_request_delayed", kRead, 3, {"delay,opcode=READ_REQUEST,nth=1,by=5us"}, kOvertaken},
    {"read_request_delayed_beyond_the_timeout", kRead, 1, {"delay,opcode=READ_REQUEST,nth=1,by=5ms"}, kTimeout},
    {"read_request_reordered", kRead, 3, {"reorder,opcode=READ_REQUEST,nth=1"}, kOvertaken},
    {"read_response_lost", kRead, 3, {"drop,opcode=READ_RESPONSE_MIDDLE,nth=1"}, kResponseGap},
    {"read_response_first_lost", kRead, 3, {"drop,opcode=READ_RESPONSE_FIRST,nth=2"}, kResponseGap},
    {"read_response_last_lost", kRead, 3, {"drop,opcode=READ_RESPONSE_LAST,nth=3"}, kRepeat},
    {"read_response_corrupted", kRead, 3, {"corrupt,opcode=READ_RESPONSE_MIDDLE,nth=3"}, kResponseGap + kBadAtH0},
    {"read_response_duplicated", kRead, 3, {"duplicate,opcode=READ_RESPONSE"}, kNothing},
    {"read_response_duplicated_late", kRead, 3, {"duplicate,opcode=READ_RESPONSE,by=5ms"}, kNothing},
    {"read_response_delayed", kRead, 3, {"delay,opcode=READ_RESPONSE_MIDDLE,nth=1,by=5us"}, kResponseGap},
    {"read_response_delayed_beyond_the_timeout", kRead, 1, {"delay,opcode=READ_RESPONSE_LAST,nth=1,by=5ms"}, kRepeat},
    {"read_response_reordered", kRead, 3, {"reorder,opcode=READ_RESPONSE_FIRST,nth=2"}, kResponseGap},
};

INSTANTIATE_TEST_SUITE_P(Cable, Faults, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// All faults at once, with all kinds of messages.
class Storm : public Exchanges, public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  Storm()
      : Exchanges({"drop=0.03", "corrupt=0.03", "duplicate=0.03", "duplicate=0.02,by=20us", "delay=0.03,by=3us",
                   "delay=0.01,by=1200us", "reorder=0.03,by=3"},
                  GetParam()) {}
};

TEST_P(Storm, RightBytesExactlyOnce) { exchange({kSend, kWrite, kRead, kRead, kWrite, kSend, kRead, kSend}); }

// As many outstanding READs as the responder accepts, and more READs behind them.
TEST_P(Storm, OnlyReads) {
  options_.max_rd_atomic = 2;
  exchange(std::vector(kMostMessages, kRead));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Storm, ::testing::Range(std::uint64_t{1}, std::uint64_t{21}));

}  // namespace
}  // namespace rnicsim::testing::faults_test
