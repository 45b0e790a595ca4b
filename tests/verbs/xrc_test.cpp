// SPDX-License-Identifier: Apache-2.0
// XRC: messages from a send QP to the receives of a domain, and requests with a wrong SRQ number.
#include <gmock/gmock.h>

#include "model/roce/packet.h"
#include "tests/verbs/xrc_domain.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Xrc : public XrcDomain {
 protected:
  using XrcDomain::XrcDomain;
  // The next completion on the receivers' side.
  static void expect_receive(Receiver& end, std::uint64_t wr_id, ibv_wc_opcode opcode, std::uint32_t bytes) {
    const auto wc = completion_soon(end.cq, 2000);
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc->wr_id, wr_id);
    EXPECT_EQ(wc->opcode, opcode);
    EXPECT_EQ(wc->byte_len, bytes);
    EXPECT_EQ(wc->qp_num, end.qp->qp_num);
    EXPECT_EQ(wc->src_qp, 0u);
  }
  // Headers of h0's requests.
  std::vector<roce::Headers> requests() const {
    std::vector<roce::Headers> all;
    for (const auto& frame : wire())
      if (const auto parsed = roce::parse_frame(frame.bytes, frame.bytes.size());
          frame.from == 0 && parsed.error == roce::ParseError::none)
        all.push_back(parsed.headers);
    return all;
  }
};

TEST_F(Xrc, CarriesWhatRcDoes) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        fill(end);
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 40));
        auto wr = end.request(IBV_WR_SEND_WITH_IMM, 0, 4096);  // four packets
        wr.imm_data = htobe32(77);
        complete_to(end, peer.srqn, wr);
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_WRITE, 0, 3000, 20'000));
        wr = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 2000, 30'000);
        wr.imm_data = htobe32(78);
        complete_to(end, peer.srqn, wr);
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_READ, 40'000, 5000, 20'000));
        EXPECT_TRUE(filled(end, 40'000, 3000));
        complete_to(end, peer.srqn, end.fetch_add(50'000, 5, 60'000));
        complete_to(end, peer.srqn, end.compare_swap(50'008, 6, 100, 60'000));
        std::uint64_t originals[2];
        std::memcpy(originals, &end.buffer[50'000], sizeof originals);
        EXPECT_EQ(originals[0], 1u);
        EXPECT_EQ(originals[1], 6u);
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_WRITE, 0, 0));
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_READ, 0, 0));
      },
      [&](Receiver& end) {
        const std::uint64_t one = 1;
        std::memcpy(&end.buffer[60'000], &one, sizeof one);
        ASSERT_EQ(end.receive(0, kSlot, 11), 0);
        ASSERT_EQ(end.receive(8192, 8192, 12), 0);
        ASSERT_EQ(end.receive(128, kSlot, 13), 0);
        meet(1);
        expect_receive(end, 11, IBV_WC_RECV, 40);
        EXPECT_TRUE(filled(end, 0, 40));
        expect_receive(end, 12, IBV_WC_RECV, 4096);
        EXPECT_TRUE(filled(end, 8192, 4096));
        expect_receive(end, 13, IBV_WC_RECV_RDMA_WITH_IMM, 2000);
        EXPECT_TRUE(filled(end, 20'000, 3000));
        EXPECT_TRUE(filled(end, 30'000, 2000));
      });
  const auto sent = requests();
  ASSERT_FALSE(sent.empty());
  for (const auto& headers : sent) EXPECT_EQ(static_cast<unsigned>(headers.bth.opcode) >> 5, 5u);
  EXPECT_EQ(counters(1).resp_invalid_request, 0u);
}

// Each request names an SRQ, which has its own CQ, PD and receives.
TEST_F(Xrc, QueuesOfOneDomain) {
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<std::uint8_t> buffer(8192);
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        fill(end);
        meet(0);
        for (int i = 0; i < 3; ++i) {
          complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 2000));
          complete_to(end, peer.other_srqn, end.request(IBV_WR_SEND, 0, 3000));
        }
        const auto named = [&](std::uint32_t rkey, std::uint64_t address) {
          auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 2500);
          wr.wr.rdma = {address, rkey};
          return wr;
        };
        complete_to(end, peer.srqn, named(peer.end.rkey, peer.end.buffer + 40'000));
        complete_to(end, peer.other_srqn, named(peer.other_rkey, peer.other_buffer));
        meet(0);
        complete_to(end, peer.srqn, named(peer.other_rkey, peer.other_buffer), IBV_WC_REM_ACCESS_ERR);
      },
      [&](Receiver& end) {
        const auto post = [&](std::uint64_t wr_id) {
          ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer.data()) + 4096, 4096, mr->lkey};
          ibv_recv_wr wr{}, *bad;
          wr.wr_id = wr_id;
          wr.sg_list = &sge;
          wr.num_sge = 1;
          return ibv_post_srq_recv(srq, &wr, &bad);
        };
        for (std::uint64_t i = 0; i < 3; ++i) {
          ASSERT_EQ(end.receive(0, 4096, 100 + i), 0);
          ASSERT_EQ(post(200 + i), 0);
        }
        EXPECT_EQ(ibv_destroy_cq(cq), EBUSY);
        EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
        meet(1);
        expect_completions(end.cq, IBV_WC_SUCCESS, 100, 3);
        expect_completions(cq, IBV_WC_SUCCESS, 200, 3);
        meet(1);
        EXPECT_TRUE(std::equal(buffer.begin(), buffer.begin() + 2500, end.buffer.begin() + 40'000));
        pass(1, kSettled);
        EXPECT_THAT(take_async_events(end.context),
                    ElementsAre(IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_EQ(query(end.qp).qp_state, IBV_QPS_ERR);
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
      },
      sender(), {},
      [&](Receiver& end, XrcAddress& mine) {
        pd = ibv_alloc_pd(end.context);
        cq = ibv_create_cq(end.context, 16, nullptr, nullptr, 0);
        mr = ibv_reg_mr(pd, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        srq = make_xrc_srq(pd, end.xrcd, cq);
        ASSERT_NE(srq, nullptr);
        mine.other_srqn = number_of(srq);
        mine.other_rkey = mr->rkey;
        mine.other_buffer = reinterpret_cast<std::uint64_t>(buffer.data());
      });
}

// Invalid SRQ numbers: not one of the domain's queues.
enum class Wrong { none_such, ordinary, of_another_domain };
struct Refusal {
  Wrong wrong;
  ibv_wr_opcode opcode;
};
class XrcRefusal : public Xrc, public ::testing::WithParamInterface<Refusal> {};

TEST_P(XrcRefusal, IsAnInvalidRequest) {
  const auto [wrong, opcode] = GetParam();
  ibv_srq* other = nullptr;
  ibv_xrcd* stranger = nullptr;
  run_xrc(
      [&, opcode = opcode](Endpoint& end, const XrcAddress& peer) {
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_WRITE, 0, 100));
        const bool atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
        const auto wr = atomic ? end.fetch_add(0, 1) : end.request(opcode, 0, 3000);
        complete_to(end, peer.other_srqn, wr, IBV_WC_REM_INV_REQ_ERR);
        EXPECT_EQ(query(end.qp).qp_state, IBV_QPS_ERR);
      },
      [&](Receiver& end) {
        pass(1, kSettled + kSettled);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_EQ(query(end.qp).qp_state, IBV_QPS_ERR);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_TRUE(other == nullptr || ibv_destroy_srq(other) == 0);
        EXPECT_TRUE(stranger == nullptr || ibv_close_xrcd(stranger) == 0);
      },
      sender(), {},
      [&, wrong = wrong](Receiver& end, XrcAddress& mine) {
        mine.other_srqn = 12'345;
        if (wrong == Wrong::none_such) return;
        if (wrong == Wrong::of_another_domain) stranger = open_domain(end.context);
        ibv_srq_init_attr ordinary{};
        ordinary.attr = {4, 1, 0};
        other = stranger != nullptr ? make_xrc_srq(end.pd, stranger, end.cq) : ibv_create_srq(end.pd, &ordinary);
        ASSERT_NE(other, nullptr);
        mine.other_srqn = other->handle;
      });
}

INSTANTIATE_TEST_SUITE_P(Each, XrcRefusal,
                         ::testing::Values(Refusal{Wrong::none_such, IBV_WR_SEND},
                                           Refusal{Wrong::ordinary, IBV_WR_SEND},
                                           Refusal{Wrong::of_another_domain, IBV_WR_SEND},
                                           Refusal{Wrong::of_another_domain, IBV_WR_RDMA_WRITE},
                                           Refusal{Wrong::none_such, IBV_WR_RDMA_WRITE_WITH_IMM},
                                           Refusal{Wrong::of_another_domain, IBV_WR_RDMA_READ},
                                           Refusal{Wrong::none_such, IBV_WR_ATOMIC_FETCH_AND_ADD}));

TEST_F(Xrc, NoReceiveIsThere) {
  auto patient = sender();
  patient.rnr_retry = 1;
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        complete_to(end, peer.srqn, end.request(IBV_WR_RDMA_WRITE, 0, 8));
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8), IBV_WC_RNR_RETRY_EXC_ERR);
      },
      [&](Receiver& end) { EXPECT_FALSE(completion_soon(end.cq)); }, patient);
  EXPECT_EQ(counters(1).out_of_buffer, 2u);
}

TEST_F(Xrc, ReceivesThatAreNotFit) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, kSlot));
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, kSlot + 1), IBV_WC_REM_INV_REQ_ERR);
      },
      [&](Receiver& end) {
        for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(end.receive(0, kSlot, id), 0);
        meet(1);
        expect_receive(end, 0, IBV_WC_RECV, kSlot);
        const auto wc = completion_soon(end.cq, 2000);
        ASSERT_TRUE(wc);
        EXPECT_EQ(wc->status, IBV_WC_LOC_LEN_ERR);
        EXPECT_EQ(wc->wr_id, 1u);
        EXPECT_EQ(wc->qp_num, end.qp->qp_num);
        EXPECT_FALSE(completion_soon(end.cq)) << "what the queue holds is not the queue pair's";
      });
}

TEST_F(Xrc, ABadKeyInAReceive) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8), IBV_WC_REM_OP_ERR);
      },
      [&](Receiver& end) {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, end.mr->lkey + 1};
        ibv_recv_wr wr{}, *bad;
        wr.wr_id = 9;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        ASSERT_EQ(ibv_post_srq_recv(end.srq, &wr, &bad), 0);
        meet(1);
        const auto wc = completion_soon(end.cq, 2000);
        ASSERT_TRUE(wc);
        EXPECT_EQ(wc->status, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(wc->wr_id, 9u);
      });
}

TEST_F(Xrc, TheLimitIsTold) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8));
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8));
      },
      [&](Receiver& end) {
        for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(end.receive(0, kSlot, id), 0);
        ibv_srq_attr attributes{.max_wr = 0, .max_sge = 0, .srq_limit = 2};
        ASSERT_EQ(ibv_modify_srq(end.srq, &attributes, IBV_SRQ_LIMIT), 0);
        meet(1);
        pass(1, kSettled);
        EXPECT_THAT(take_async_events(end.context), IsEmpty());
        meet(1);
        pass(1, kSettled);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_SRQ_LIMIT_REACHED));
      });
}

// A CQ overrun fails the CQ, and the queue pair whose completion was lost.
TEST_F(Xrc, ACqThatOverruns) {
  EndpointOptions small;
  small.cq_entries = 4;
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        for (int i = 0; i < 5; ++i) ASSERT_EQ(end.post(to(peer.srqn, end.request(IBV_WR_SEND, 0, 8))), 0);
        for (int i = 0; i < 4; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Receiver& end) {
        for (std::uint64_t id = 0; id < 8; ++id) ASSERT_EQ(end.receive(0, kSlot, id), 0);
        meet(1);
        meet(1);
        pass(1, kSettled);
        auto events = take_async_events(end.context);
        EXPECT_THAT(events, ::testing::UnorderedElementsAre(IBV_EVENT_CQ_ERR, IBV_EVENT_SRQ_ERR, IBV_EVENT_QP_FATAL,
                                                            IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_EQ(query(end.qp).qp_state, IBV_QPS_ERR);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 4);
      },
      sender(), small);
}

// The SRQ is destroyed with receives in the CQ, before the next message.
TEST_F(Xrc, AQueueThatGoes) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        for (int i = 0; i < 3; ++i) complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8));
        meet(0);
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8), IBV_WC_REM_INV_REQ_ERR);
      },
      [&](Receiver& end) {
        ibv_srq* kept = make_xrc_srq(end.pd, end.xrcd, end.cq);
        for (std::uint64_t id = 0; id < 5; ++id) ASSERT_EQ(end.receive(0, kSlot, id), 0);
        meet(1);
        expect_receive(end, 0, IBV_WC_RECV, 8);
        meet(1);
        EXPECT_EQ(ibv_destroy_srq(std::exchange(end.srq, nullptr)), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        meet(1);
        pass(1, kSettled);
        EXPECT_EQ(ibv_destroy_srq(kept), 0);
      });
}

// A QP in ERR flushes none of the SRQ's receives.
TEST_F(Xrc, AQueuePairThatFails) {
  run_xrc(
      [&](Endpoint& end, const XrcAddress& peer) {
        meet(0);
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 8));
        meet(0);
      },
      [&](Receiver& end) {
        for (std::uint64_t id = 0; id < 3; ++id) ASSERT_EQ(end.receive(0, kSlot, id), 0);
        meet(1);
        expect_receive(end, 0, IBV_WC_RECV, 8);
        meet(1);
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        pass(1, kSettled);
        EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_QP_LAST_WQE_REACHED));
        EXPECT_FALSE(completion_soon(end.cq));
        int more = 0;
        while (end.receive(0, kSlot) == 0) ++more;
        EXPECT_EQ(more, 13);
      });
}

}  // namespace
}  // namespace rnicsim::testing
