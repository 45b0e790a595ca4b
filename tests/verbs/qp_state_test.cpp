// SPDX-License-Identifier: Apache-2.0
// State machine of an RC queue pair: attributes of each transition; a refused transition changes nothing.
#include <cstring>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr int kIdentity = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
constexpr int kConnect =
    IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRetries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kMoves = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
// Every attribute except the new state. IBV_QP_CAP is included: this device cannot resize queues.
constexpr int kAll = (1 << 21) - 1 - IBV_QP_STATE;

struct Cell {
  ibv_qp_state from, to;
  int required, optional;
};
constexpr Cell kTable[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kIdentity | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kIdentity | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_RTR, kConnect, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRetries | IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | kMoves | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | kMoves | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | kMoves | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     IBV_QP_PORT | IBV_QP_AV | kRetries | IBV_QP_MAX_DEST_RD_ATOMIC | kMoves | IBV_QP_PKEY_INDEX |
         IBV_QP_MIN_RNR_TIMER},
};
constexpr ibv_qp_state kReachable[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR};

const Cell* find(ibv_qp_state from, ibv_qp_state to) {
  for (const auto& cell : kTable)
    if (cell.from == from && cell.to == to) return &cell;
  return nullptr;
}

class QpStates : public RcPair {
 protected:
  // Valid values for every attribute, connected to the QP itself: no packet is sent.
  static ibv_qp_attr good(Endpoint& end, ibv_qp_state to) {
    const auto self = end.address();
    ibv_qp_attr attributes{};
    attributes.qp_state = to;
    attributes.cur_qp_state = end.state();
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    attributes.path_mtu = IBV_MTU_2048;
    attributes.dest_qp_num = self.qpn;
    attributes.rq_psn = 0x111111;
    attributes.sq_psn = 0x222222;
    attributes.max_rd_atomic = 3;
    attributes.max_dest_rd_atomic = 5;
    attributes.min_rnr_timer = 7;
    attributes.timeout = 9;
    attributes.retry_cnt = 4;
    attributes.rnr_retry = 2;
    attributes.en_sqd_async_notify = 0;
    attributes.path_mig_state = IBV_MIG_MIGRATED;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = self.gid;
    attributes.ah_attr.grh.sgid_index = end.options.gid_index;
    attributes.ah_attr.grh.hop_limit = 33;
    attributes.ah_attr.grh.traffic_class = 0x68;
    attributes.alt_ah_attr = attributes.ah_attr;
    attributes.alt_port_num = 1;
    return attributes;
  }
  static int step(Endpoint& end, ibv_qp_state to, int mask) {
    auto attributes = good(end, to);
    return ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | mask);
  }
  // By the shortest sequence, from RESET.
  static void bring(Endpoint& end, ibv_qp_state to) {
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    if (to == IBV_QPS_ERR) {
      ASSERT_EQ(move(end.qp, to), 0);
    }
    for (const auto next : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}) {
      if (to == IBV_QPS_ERR || next > to) return;
      ASSERT_EQ(step(end, next, find(ibv_qp_state(next - 1), next)->required), 0);
    }
  }
  // Compares bytes as programs see them, with unions and padding, since ibv_query_qp() clears the struct first.
  static bool same(const ibv_qp_attr& a, const ibv_qp_attr& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

  static void expect_refused(Endpoint& end, ibv_qp_attr attributes, int mask, int error = EINVAL) {
    const auto before = query(end.qp);
    errno = 0;
    EXPECT_EQ(ibv_modify_qp(end.qp, &attributes, mask), error) << std::hex << "mask 0x" << mask;
    EXPECT_EQ(errno, error);
    EXPECT_TRUE(same(query(end.qp), before)) << std::hex << "mask 0x" << mask;
    EXPECT_EQ(end.qp->state, before.qp_state);
  }
};

TEST_F(QpStates, RequiredOptionalAndExtraAttributes) {
  run_alone([](Endpoint& end) {
    for (const auto& cell : kTable) {
      SCOPED_TRACE(::testing::Message() << cell.from << " -> " << cell.to);
      bring(end, cell.from);
      for (int bit = 1; bit <= kAll; bit <<= 1) {
        const auto attributes = good(end, cell.to);
        if (bit & cell.required) expect_refused(end, attributes, IBV_QP_STATE | (cell.required & ~bit));
        if (bit & kAll & ~(cell.required | cell.optional))
          expect_refused(end, attributes, IBV_QP_STATE | cell.required | bit);
      }
      for (int bit = 1; bit <= kAll; bit <<= 1) {
        if (!(bit & cell.optional)) continue;
        bring(end, cell.from);
        if (bit == IBV_QP_ALT_PATH) {
          expect_refused(end, good(end, cell.to), IBV_QP_STATE | cell.required | bit, EOPNOTSUPP);
          continue;
        }
        EXPECT_EQ(step(end, cell.to, cell.required | bit), 0) << std::hex << "optional 0x" << bit;
        EXPECT_EQ(query(end.qp).qp_state, cell.to);
      }
      bring(end, cell.from);
      EXPECT_EQ(step(end, cell.to, cell.required), 0);
      EXPECT_EQ(end.qp->state, cell.to);
    }
  });
}

TEST_F(QpStates, WhatTheTableDoesNotHaveIsRefused) {
  run_alone([](Endpoint& end) {
    for (const auto from : kReachable) {
      bring(end, from);
      for (int to = IBV_QPS_INIT; to < IBV_QPS_ERR; ++to) {
        if (find(from, ibv_qp_state(to))) continue;
        SCOPED_TRACE(::testing::Message() << from << " -> " << to);
        const auto* into = find(ibv_qp_state(to - 1), ibv_qp_state(to));
        expect_refused(end, good(end, ibv_qp_state(to)), IBV_QP_STATE);
        if (into) expect_refused(end, good(end, ibv_qp_state(to)), IBV_QP_STATE | into->required);
      }
      expect_refused(end, good(end, IBV_QPS_UNKNOWN), IBV_QP_STATE);
      expect_refused(end, good(end, ibv_qp_state(200)), IBV_QP_STATE);
    }
  });
}

TEST_F(QpStates, AnyStateToResetAndToError) {
  run_alone([](Endpoint& end) {
    for (const auto to : {IBV_QPS_RESET, IBV_QPS_ERR}) {
      for (const auto from : kReachable) {
        SCOPED_TRACE(::testing::Message() << from << " -> " << to);
        bring(end, from);
        for (int bit = 1; bit <= kAll; bit <<= 1)
          if (bit & kAll) expect_refused(end, good(end, to), IBV_QP_STATE | bit);
        EXPECT_EQ(move(end.qp, to), 0);
        EXPECT_EQ(query(end.qp).qp_state, to);
      }
    }
  });
}

TEST_F(QpStates, CurrentStateMustBeTrueAndOneOfFour) {
  run_alone([](Endpoint& end) {
    bring(end, IBV_QPS_RTS);
    for (int said = IBV_QPS_RESET; said <= IBV_QPS_UNKNOWN; ++said) {
      auto attributes = good(end, IBV_QPS_RTS);
      attributes.cur_qp_state = ibv_qp_state(said);
      if (said != IBV_QPS_RTS) expect_refused(end, attributes, IBV_QP_STATE | IBV_QP_CUR_STATE);
    }
    for (const auto from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR}) {
      bring(end, from);
      expect_refused(end, good(end, IBV_QPS_RESET), IBV_QP_STATE | IBV_QP_CUR_STATE);
    }
  });
}

TEST_F(QpStates, WithoutANewStateItStays) {
  run_alone([](Endpoint& end) {
    bring(end, IBV_QPS_INIT);
    auto attributes = good(end, IBV_QPS_ERR);
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    EXPECT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(query(end.qp).qp_access_flags, unsigned(IBV_ACCESS_REMOTE_READ));
    EXPECT_EQ(end.state(), IBV_QPS_INIT);
    expect_refused(end, attributes, IBV_QP_SQ_PSN);
    bring(end, IBV_QPS_RTS);
    attributes = good(end, IBV_QPS_ERR);
    attributes.min_rnr_timer = 31;
    EXPECT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_MIN_RNR_TIMER), 0);
    EXPECT_EQ(query(end.qp).min_rnr_timer, 31);
    EXPECT_EQ(end.state(), IBV_QPS_RTS);
  });
}

TEST_F(QpStates, UnknownAttributes) {
  run_alone([](Endpoint& end) {
    bring(end, IBV_QPS_RTS);
    for (const int bit : {1 << 21, 1 << 24, 1 << 26, 1 << 30})
      expect_refused(end, good(end, IBV_QPS_RTS), IBV_QP_STATE | bit, EOPNOTSUPP);
  });
}

TEST_F(QpStates, BadValues) {
  run_alone([](Endpoint& end) {
    ibv_device_attr device;
    ibv_port_attr port;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    ASSERT_EQ(ibv_query_port(end.context, 1, &port), 0);
    const auto refuse = [&](ibv_qp_state to, const char* what, const std::function<void(ibv_qp_attr&)>& spoil) {
      SCOPED_TRACE(what);
      auto attributes = good(end, to);
      spoil(attributes);
      expect_refused(end, attributes, IBV_QP_STATE | find(ibv_qp_state(to - 1), to)->required);
    };
    bring(end, IBV_QPS_RESET);
    refuse(IBV_QPS_INIT, "port 0", [](auto& a) { a.port_num = 0; });
    refuse(IBV_QPS_INIT, "port 2", [](auto& a) { a.port_num = 2; });
    refuse(IBV_QPS_INIT, "pkey index", [](auto& a) { a.pkey_index = 1; });
    bring(end, IBV_QPS_INIT);
    refuse(IBV_QPS_RTR, "no mtu", [](auto& a) { a.path_mtu = ibv_mtu(0); });
    refuse(IBV_QPS_RTR, "mtu", [&](auto& a) { a.path_mtu = ibv_mtu(port.max_mtu + 1); });
    refuse(IBV_QPS_RTR, "dest_rd_atomic", [&](auto& a) { a.max_dest_rd_atomic = device.max_qp_rd_atom + 1; });
    refuse(IBV_QPS_RTR, "rnr timer", [](auto& a) { a.min_rnr_timer = 32; });
    refuse(IBV_QPS_RTR, "path's port", [](auto& a) { a.ah_attr.port_num = 2; });
    refuse(IBV_QPS_RTR, "empty GID", [](auto& a) { a.ah_attr.grh.sgid_index = 200; });
    EXPECT_EQ(port.lid, 0);
    refuse(IBV_QPS_RTR, "no GRH", [](auto& a) { a.ah_attr.is_global = 0; });
    refuse(IBV_QPS_RTR, "a LID", [](auto& a) { a.ah_attr.is_global = 0, a.ah_attr.dlid = 1; });
    bring(end, IBV_QPS_RTR);
    refuse(IBV_QPS_RTS, "rd_atomic", [&](auto& a) { a.max_rd_atomic = device.max_qp_init_rd_atom + 1; });
    refuse(IBV_QPS_RTS, "timeout", [](auto& a) { a.timeout = 32; });
    refuse(IBV_QPS_RTS, "retry count", [](auto& a) { a.retry_cnt = 8; });
    refuse(IBV_QPS_RTS, "rnr retry", [](auto& a) { a.rnr_retry = 8; });
    bring(end, IBV_QPS_RTS);
    auto attributes = good(end, IBV_QPS_RTS);
    attributes.alt_port_num = 2;
    expect_refused(end, attributes, IBV_QP_STATE | IBV_QP_ALT_PATH);
  });
}

TEST_F(QpStates, NoPathMigrates) {
  run_alone([](Endpoint& end) {
    bring(end, IBV_QPS_RTS);
    for (const auto state : {IBV_MIG_REARM, IBV_MIG_ARMED}) {
      auto attributes = good(end, IBV_QPS_RTS);
      attributes.path_mig_state = state;
      expect_refused(end, attributes, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE, EOPNOTSUPP);
    }
  });
}

TEST_F(QpStates, QueryAnswersWhatWasSet) {
  run_alone([](Endpoint& end) {
    bring(end, IBV_QPS_RTS);
    ibv_qp_attr now{};
    ibv_qp_init_attr initial{};
    ASSERT_EQ(ibv_query_qp(end.qp, &now, 0, &initial), 0);
    const auto set = good(end, IBV_QPS_RTS);
    EXPECT_EQ(now.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(now.cur_qp_state, IBV_QPS_RTS);
    EXPECT_EQ(now.port_num, set.port_num);
    EXPECT_EQ(now.qp_access_flags, set.qp_access_flags);
    EXPECT_EQ(now.path_mtu, set.path_mtu);
    EXPECT_EQ(now.dest_qp_num, set.dest_qp_num);
    EXPECT_EQ(now.rq_psn, set.rq_psn);
    EXPECT_EQ(now.sq_psn, set.sq_psn);
    EXPECT_EQ(now.max_rd_atomic, set.max_rd_atomic);
    EXPECT_EQ(now.max_dest_rd_atomic, set.max_dest_rd_atomic);
    EXPECT_EQ(now.min_rnr_timer, set.min_rnr_timer);
    EXPECT_EQ(now.timeout, set.timeout);
    EXPECT_EQ(now.retry_cnt, set.retry_cnt);
    EXPECT_EQ(now.rnr_retry, set.rnr_retry);
    EXPECT_EQ(now.sq_draining, 0);
    EXPECT_EQ(now.ah_attr.is_global, 1);
    EXPECT_EQ(now.ah_attr.port_num, 1);
    EXPECT_EQ(now.ah_attr.grh.hop_limit, 33);
    EXPECT_EQ(now.ah_attr.grh.traffic_class, 0x68);
    EXPECT_EQ(now.ah_attr.grh.sgid_index, end.options.gid_index);
    EXPECT_EQ(std::memcmp(&now.ah_attr.grh.dgid, &set.ah_attr.grh.dgid, sizeof(ibv_gid)), 0);
    EXPECT_GE(now.cap.max_send_wr, end.options.max_wr);
    EXPECT_GE(now.cap.max_recv_wr, end.options.max_wr);
    EXPECT_GE(now.cap.max_send_sge, end.options.max_sge);
    EXPECT_GE(now.cap.max_inline_data, end.options.max_inline);
    EXPECT_EQ(initial.qp_type, IBV_QPT_RC);
    EXPECT_EQ(initial.sq_sig_all, 1);
    EXPECT_EQ(initial.send_cq, end.cq);
    EXPECT_EQ(initial.recv_cq, end.cq);
    EXPECT_EQ(initial.cap.max_send_wr, now.cap.max_send_wr);
  });
}

TEST_F(QpStates, QueryTellsThePsnsThatComeNext) {
  constexpr std::uint32_t kMine = 0xfffffd, kYours = 0x222222;
  EndpointOptions h0, h1;
  h0.psn = kMine;
  h1.psn = kYours;
  const auto expect_psns = [](Endpoint& end, std::uint32_t sends, std::uint32_t receives) {
    const auto now = query(end.qp);
    EXPECT_EQ(now.sq_psn, sends & 0xffffff);
    EXPECT_EQ(now.rq_psn, receives & 0xffffff);
  };
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        expect_psns(end, kMine, kYours);
        complete(end, end.request(IBV_WR_SEND, 0, 5 * 1024));
        expect_psns(end, kMine + 5, kYours);
        complete(end, end.request(IBV_WR_RDMA_READ, 0, 3 * 1024));
        expect_psns(end, kMine + 8, kYours);
        meet(0);
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        expect_psns(end, kMine + 8, kYours);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 5 * 1024), 0);
        meet(1);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(1);
        expect_psns(end, kYours, kMine + 8);
      },
      h0, h1);
}

}  // namespace
}  // namespace rnicsim::testing
