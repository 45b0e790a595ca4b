// SPDX-License-Identifier: Apache-2.0
// Forged answers and requests that none of our devices sends: they end in the status of the specification.
#include <gmock/gmock.h>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_answers_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kMicrosecond{1'000'000};
constexpr std::uint8_t kAck = roce::Aeth::kAck | roce::Aeth::kNoCredits;

// A forged answer. h1's own answers are dropped, so that only the forged answer reaches h0.
struct Answer {
  const char* name;
  ibv_wr_opcode operation;
  std::uint32_t bytes;
  roce::Opcode opcode;
  std::uint32_t payload;
  std::uint8_t syndrome;
  ibv_wc_status status;
};
void PrintTo(const Answer& answer, std::ostream* out) { *out << answer.name; }

class ForgedAnswers : public RcWire {
 protected:
  explicit ForgedAnswers(const std::vector<std::string>& faults = {"drop,host=h1"}) : RcWire(faults) {}

  static ibv_send_wr work(Endpoint& end, ibv_wr_opcode operation, std::uint32_t bytes) {
    return operation == IBV_WR_ATOMIC_FETCH_AND_ADD ? end.fetch_add(0, 1) : end.request(operation, 0, bytes, 8192);
  }
};

class BadAnswer : public ForgedAnswers, public ::testing::WithParamInterface<Answer> {};

// An unsignalled request with other work behind it and with posted receives: it completes with the error, and
// everything else is flushed in order.
TEST_P(BadAnswer, EndsTheQueuePair) {
  const auto& answer = GetParam();
  EndpointOptions requester;
  requester.signal_all = false;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint64_t id = 100; id < 103; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
        auto bad = work(end, answer.operation, answer.bytes);
        bad.wr_id = 1;
        ASSERT_EQ(end.post(bad), 0);
        await_requests(0, 1);
        pass(0, 5 * kMicrosecond);
        const auto first = requests().front().psn();
        for (std::uint64_t id = 2; id < 5; ++id) {
          auto good = end.request(IBV_WR_RDMA_WRITE, 0, 64, 8192);
          good.wr_id = id;
          ASSERT_EQ(end.post(good), 0);
        }
        pass(0, 5 * kMicrosecond);
        forge(0, answer_headers(answer.opcode, end.qp->qp_num, first, answer.syndrome), answer.payload);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, answer.status);
        EXPECT_EQ(wc.wr_id, 1u);
        EXPECT_EQ(wc.qp_num, end.qp->qp_num);
        std::vector<std::uint64_t> sends, receives;
        while (const auto flushed = completion_soon(end.cq)) {
          EXPECT_EQ(flushed->status, IBV_WC_WR_FLUSH_ERR);
          (flushed->wr_id < 100 ? sends : receives).push_back(flushed->wr_id);
        }
        EXPECT_THAT(sends, ElementsAre(2, 3, 4));
        EXPECT_THAT(receives, ElementsAre(100, 101, 102));
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(end.receive(0, 64), 0);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        EXPECT_THAT(take_async_events(end.context), IsEmpty());
      },
      requester);
}
INSTANTIATE_TEST_SUITE_P(
    To, BadAnswer,
    ::testing::Values(
        Answer{"send_data", IBV_WR_SEND, 64, roce::Opcode::read_response_only, 64, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"send_original", IBV_WR_SEND, 64, roce::Opcode::atomic_acknowledge, 0, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"write_data", IBV_WR_RDMA_WRITE, 64, roce::Opcode::read_response_first, 1024, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"write_ack_with_payload", IBV_WR_RDMA_WRITE, 64, roce::Opcode::acknowledge, 4, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"read_original", IBV_WR_RDMA_READ, 8, roce::Opcode::atomic_acknowledge, 0, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"read_too_short", IBV_WR_RDMA_READ, 64, roce::Opcode::read_response_only, 60, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"read_too_long", IBV_WR_RDMA_READ, 64, roce::Opcode::read_response_only, 68, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"read_of_nothing", IBV_WR_RDMA_READ, 0, roce::Opcode::read_response_only, 4, kAck, IBV_WC_BAD_RESP_ERR},
        Answer{"read_first_too_short", IBV_WR_RDMA_READ, 3000, roce::Opcode::read_response_first, 512, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"read_only_for_many", IBV_WR_RDMA_READ, 3000, roce::Opcode::read_response_only, 1024, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"read_begins_in_the_middle", IBV_WR_RDMA_READ, 3000, roce::Opcode::read_response_middle, 1024, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"read_ends_at_once", IBV_WR_RDMA_READ, 64, roce::Opcode::read_response_last, 64, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"read_data_with_a_nak", IBV_WR_RDMA_READ, 64, roce::Opcode::read_response_only, 64,
               roce::Aeth::kInvalidRequest, IBV_WC_BAD_RESP_ERR},
        Answer{"atomic_data", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, roce::Opcode::read_response_only, 8, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"atomic_with_payload", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, roce::Opcode::atomic_acknowledge, 8, kAck,
               IBV_WC_BAD_RESP_ERR},
        Answer{"reserved_class", IBV_WR_SEND, 64, roce::Opcode::acknowledge, 0, 0x40, IBV_WC_BAD_RESP_ERR},
        Answer{"reserved_nak", IBV_WR_SEND, 64, roce::Opcode::acknowledge, 0, 0x65, IBV_WC_BAD_RESP_ERR},
        Answer{"invalid_request", IBV_WR_SEND, 64, roce::Opcode::acknowledge, 0, 0x61, IBV_WC_REM_INV_REQ_ERR},
        Answer{"access", IBV_WR_SEND, 64, roce::Opcode::acknowledge, 0, 0x62, IBV_WC_REM_ACCESS_ERR},
        Answer{"operation", IBV_WR_SEND, 64, roce::Opcode::acknowledge, 0, 0x63, IBV_WC_REM_OP_ERR}),
    [](const auto& info) { return std::string(info.param.name); });

// Answers to requests that are not outstanding are dropped without effect.
TEST_F(ForgedAnswers, ToWhatIsNotOpenAreDropped) {
  EndpointOptions requester;
  requester.psn = 1000;
  requester.timeout = 10;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        await_requests(0, 1);
        for (const std::uint32_t psn : {900u, 999u, 1001u, 2000u, 0x800fffu})
          for (const auto opcode :
               {roce::Opcode::acknowledge, roce::Opcode::read_response_only, roce::Opcode::atomic_acknowledge})
            for (const int syndrome : {0x1f, 0x21, 0x40, 0x60, 0x61, 0x62, 0x65})
              forge(0, answer_headers(opcode, end.qp->qp_num, psn, std::uint8_t(syndrome)));
        pass(0, 100 * kMicrosecond);
        EXPECT_FALSE(completion_soon(end.cq, 10));
        EXPECT_EQ(requests().size(), 1u);
        forge(0, answer_headers(roce::Opcode::acknowledge, end.qp->qp_num, 1000));
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, requester);
}

// --- Requests.
struct Request {
  const char* name;
  roce::Opcode opcode;
  std::uint32_t payload;
  std::uint32_t length;   // DMA length in the RETH
  std::uint8_t syndrome;  // syndrome of the NAK
  ibv_event_type event;
};
void PrintTo(const Request& request, std::ostream* out) { *out << request.name; }

class BadRequest : public ForgedAnswers, public ::testing::WithParamInterface<Request> {
 protected:
  BadRequest() : ForgedAnswers(std::vector<std::string>{}) {}
};

// h0 has written once. A forged request in h0's name with the next PSN is refused with one NAK, and h1's QP goes to
// ERR.
TEST_P(BadRequest, IsRefused) {
  const auto& request = GetParam();
  EndpointOptions options;
  options.psn = 1000;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        const auto target = end.request(IBV_WR_RDMA_WRITE, 0, 0, 4096).wr.rdma;
        auto headers = requests().front().headers;
        headers.bth.opcode = request.opcode;
        headers.bth.psn = roce::Psn(1001);
        headers.reth = roce::Reth{target.remote_addr, {target.rkey}, request.length};
        headers.atomic = roce::AtomicEth{target.remote_addr, {target.rkey}, 1, 0};
        forge(1, headers, request.payload);
        pass(0, 20 * kMicrosecond);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);  // h0 did not send the forged request
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (std::uint64_t id = 1; id < 3; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
        meet(1);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(request.event));
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 2);
        EXPECT_EQ(std::ranges::count(end.buffer, 0xf0), 0);
      },
      options, options);
  const auto said = answers();
  ASSERT_EQ(said.size(), 2u);
  EXPECT_EQ(said[1].psn(), 1001u);
  EXPECT_EQ(said[1].headers.aeth->syndrome, request.syndrome);
  EXPECT_EQ(said[1].headers.aeth->msn, 1u);
}
INSTANTIATE_TEST_SUITE_P(
    Of, BadRequest,
    ::testing::Values(Request{"send_middle", roce::Opcode::send_middle, 1024, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"send_last", roce::Opcode::send_last, 8, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_middle", roce::Opcode::write_middle, 1024, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_last_imm", roce::Opcode::write_last_imm, 8, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"send_first_short", roce::Opcode::send_first, 1020, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"send_only_beyond_mtu", roce::Opcode::send_only, 1028, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_only_less", roce::Opcode::write_only, 8, 16, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_only_more", roce::Opcode::write_only, 16, 8, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_first_all", roce::Opcode::write_first, 1024, 1024, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"write_too_long", roce::Opcode::write_first, 1024, 0xffffffff, 0x61,
                              IBV_EVENT_QP_REQ_ERR},
                      Request{"read_with_payload", roce::Opcode::read_request, 8, 8, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"atomic_with_payload", roce::Opcode::fetch_add, 8, 0, 0x61, IBV_EVENT_QP_REQ_ERR},
                      Request{"read_beyond", roce::Opcode::read_request, 0, 1 << 20, 0x62, IBV_EVENT_QP_ACCESS_ERR}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rnicsim::testing::rc_answers_test
