// SPDX-License-Identifier: Apache-2.0
// XRC domains and their receive QPs: creation, sharing between processes, and lifetime.
#include <gmock/gmock.h>

#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/xrc_domain.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class XrcSharing : public XrcDomain {
 protected:
  using XrcDomain::XrcDomain;

  // A further process on h1.
  std::unique_ptr<host::SoftwareProcess> another(std::function<void()> body) {
    return std::make_unique<host::SoftwareProcess>("process2", system().config().host, host(1).agent(),
                                                   std::move(body));
  }
};

// A file that identifies a domain, closed with this object.
struct DomainFile {
  DomainFile() : fd(::memfd_create("domain", MFD_CLOEXEC)) {}
  ~DomainFile() { ::close(fd); }
  int fd;
};

TEST_F(XrcSharing, DomainsByTheirFiles) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_XRC);
    const DomainFile file;
    EXPECT_EQ(open_domain(end.context, file.fd, 0), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    ibv_xrcd* first = open_domain(end.context, file.fd, O_CREAT | O_EXCL);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->context, end.context);
    EXPECT_EQ(open_domain(end.context, file.fd, O_CREAT | O_EXCL), nullptr);
    EXPECT_EQ(errno, EINVAL);
    const int copy = ::dup(file.fd);
    ibv_xrcd* second = open_domain(end.context, copy, 0);
    ASSERT_NE(second, nullptr);
    ::close(copy);
    ibv_xrcd* alone = open_domain(end.context, -1, 0);
    ASSERT_NE(alone, nullptr);

    // The same domain: a QP that one context created can be opened in the other.
    ibv_qp* qp = make_receiver(end.context, first);
    ASSERT_NE(qp, nullptr);
    ibv_qp* same = open_receiver(end.context, second, qp->qp_num);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(open_receiver(end.context, alone, qp->qp_num), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_close_xrcd(first), EBUSY);
    EXPECT_EQ(ibv_close_xrcd(second), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_close_xrcd(first), 0);
    EXPECT_EQ(query(same).qp_state, IBV_QPS_RESET);
    EXPECT_EQ(ibv_destroy_qp(same), 0);
    EXPECT_EQ(ibv_close_xrcd(second), 0);
    EXPECT_EQ(ibv_close_xrcd(alone), 0);
    // The domain ends with its last opening.
    EXPECT_EQ(open_domain(end.context, file.fd, 0), nullptr);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(open_domain(end.context, 9999, O_CREAT), nullptr);
    EXPECT_EQ(errno, EBADF);
    for (const std::uint32_t mask : {0, 1, 2, 7}) {
      ibv_xrcd_init_attr wanted{};
      wanted.comp_mask = mask;
      wanted.fd = -1;
      EXPECT_EQ(ibv_open_xrcd(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, EINVAL);
    }
  });
}

TEST_F(XrcSharing, SharedReceiveQueues) {
  run_alone([&](Endpoint& end) {
    ibv_xrcd* xrcd = open_domain(end.context);
    const auto made = [&](std::uint32_t without, ibv_xrcd* domain, ibv_cq* cq) {
      ibv_srq_init_attr_ex wanted{};
      wanted.attr = {4, 1, 0};
      wanted.comp_mask =
          (IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ) & ~without;
      wanted.srq_type = IBV_SRQT_XRC;
      wanted.pd = end.pd;
      wanted.xrcd = domain;
      wanted.cq = cq;
      errno = 0;
      ibv_srq* srq = ibv_create_srq_ex(end.context, &wanted);
      return srq == nullptr ? errno : ibv_destroy_srq(srq);
    };
    EXPECT_EQ(made(0, xrcd, end.cq), 0);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_XRCD, xrcd, end.cq), EINVAL);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_CQ, xrcd, end.cq), EINVAL);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_PD, xrcd, end.cq), EINVAL);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_TYPE, xrcd, end.cq), EINVAL);
    EXPECT_EQ(made(0, nullptr, end.cq), EINVAL);
    EXPECT_EQ(made(0, xrcd, nullptr), EINVAL);
    {
      Endpoint other;
      ibv_xrcd* strange = open_domain(other.context);
      EXPECT_EQ(made(0, strange, end.cq), EINVAL);
      EXPECT_EQ(made(0, xrcd, other.cq), EINVAL);
      EXPECT_EQ(make_xrc_srq(other.pd, xrcd, other.cq), nullptr);
      EXPECT_EQ(errno, EINVAL);
      EXPECT_EQ(ibv_close_xrcd(strange), 0);
      const auto handle = std::exchange(end.cq->handle, 12345);
      EXPECT_EQ(made(0, xrcd, end.cq), ENOENT);
      end.cq->handle = handle;
    }
    ibv_srq* srq = make_xrc_srq(end.pd, xrcd, end.cq);
    ASSERT_NE(srq, nullptr);
    const auto handle = std::exchange(srq->handle, 12345);
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(srq, &number), ENOENT);
    srq->handle = handle;
    EXPECT_EQ(ibv_close_xrcd(xrcd), EBUSY);
    // Only queue pairs of the domain can use its SRQ.
    ibv_qp_init_attr ordinary{};
    ordinary.send_cq = ordinary.recv_cq = end.cq;
    ordinary.srq = srq;
    ordinary.cap = {1, 0, 1, 0, 0};
    ordinary.qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_create_qp(end.pd, &ordinary), nullptr);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  });
}

TEST_F(XrcSharing, QueuePairs) {
  run_alone([&](Endpoint& end) {
    ibv_xrcd* xrcd = open_domain(end.context);
    ibv_qp_init_attr_ex wanted{};
    wanted.qp_type = IBV_QPT_XRC_RECV;
    const auto refused = [&] {
      errno = 0;
      return ibv_create_qp_ex(end.context, &wanted) == nullptr ? errno : 0;
    };
    EXPECT_EQ(refused(), EINVAL);
    wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    EXPECT_EQ(refused(), EINVAL);
    wanted.xrcd = xrcd;
    wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
    EXPECT_EQ(refused(), EOPNOTSUPP);
    ibv_qp_init_attr plain{};
    plain.send_cq = plain.recv_cq = end.cq;
    plain.qp_type = IBV_QPT_XRC_RECV;
    EXPECT_EQ(ibv_create_qp(end.pd, &plain), nullptr);
    EXPECT_EQ(errno, EINVAL);
    plain.qp_type = IBV_QPT_XRC_SEND;
    plain.cap = {4, 100, 2, 100, 16};
    plain.recv_cq = nullptr;
    ibv_qp* sends = ibv_create_qp(end.pd, &plain);
    ASSERT_NE(sends, nullptr);
    EXPECT_EQ(plain.cap.max_recv_wr, 0u);
    EXPECT_EQ(plain.cap.max_recv_sge, 0u);
    EXPECT_GE(plain.cap.max_send_wr, 4u);
    plain.send_cq = nullptr;
    EXPECT_EQ(ibv_create_qp(end.pd, &plain), nullptr);
    EXPECT_EQ(errno, EINVAL);
    wanted = {};
    wanted.qp_type = IBV_QPT_XRC_SEND;
    wanted.send_cq = end.cq;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD;
    wanted.pd = end.pd;
    wanted.xrcd = xrcd;
    EXPECT_EQ(refused(), EINVAL);

    ibv_qp* receives = make_receiver(end.context, xrcd);
    ASSERT_NE(receives, nullptr);
    ibv_recv_wr wr{}, *bad = nullptr;
    ibv_send_wr send{}, *bad_send = nullptr;
    for (ibv_qp* qp : {sends, receives}) EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    for (ibv_qp* qp : {sends, receives}) {
      EXPECT_EQ(ibv_modify_qp(qp, &attributes, init), 0);
      EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), EINVAL);
      EXPECT_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
    }
    ASSERT_EQ(move(receives, IBV_QPS_ERR), 0);
    EXPECT_EQ(ibv_post_send(receives, &send, &bad_send), EINVAL);
    EXPECT_EQ(bad_send, &send);
    EXPECT_EQ(open_receiver(end.context, xrcd, sends->qp_num), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(open_receiver(end.context, xrcd, receives->qp_num + 1000), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_destroy_qp(sends), 0);
    EXPECT_EQ(ibv_destroy_qp(receives), 0);
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  });
}

TEST_F(XrcSharing, OpeningNamesAllOfIt) {
  run_alone([&](Endpoint& end) {
    Endpoint other;
    ibv_xrcd* xrcd = open_domain(end.context);
    ibv_xrcd* strange = open_domain(other.context);
    ibv_qp* qp = make_receiver(end.context, xrcd);
    ASSERT_NE(qp, nullptr);
    ibv_qp_open_attr good{};
    good.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    good.qp_num = qp->qp_num;
    good.xrcd = xrcd;
    good.qp_type = IBV_QPT_XRC_RECV;
    const auto refusal = [&](const std::function<void(ibv_qp_open_attr&)>& change) {
      auto wanted = good;
      change(wanted);
      errno = 0;
      ibv_qp* opened = ibv_open_qp(end.context, &wanted);
      return opened == nullptr ? errno : ibv_destroy_qp(opened);
    };
    EXPECT_EQ(refusal([](auto&) {}), 0);
    EXPECT_EQ(refusal([](auto& wanted) { wanted.comp_mask |= IBV_QP_OPEN_ATTR_CONTEXT; }), 0);
    for (const auto missing : {IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_XRCD, IBV_QP_OPEN_ATTR_TYPE})
      EXPECT_EQ(refusal([&](auto& wanted) { wanted.comp_mask &= ~unsigned(missing); }), EINVAL) << missing;
    for (std::uint32_t bit = 4; bit < 32; ++bit)
      EXPECT_EQ(refusal([&](auto& wanted) { wanted.comp_mask |= 1u << bit; }), EINVAL) << bit;
    for (const auto type : {IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, ibv_qp_type(0)})
      EXPECT_EQ(refusal([&](auto& wanted) { wanted.qp_type = type; }), EINVAL) << type;
    EXPECT_EQ(refusal([](auto& wanted) { wanted.xrcd = nullptr; }), EINVAL);
    EXPECT_EQ(refusal([&](auto& wanted) { wanted.xrcd = strange; }), EINVAL);
    EXPECT_EQ(open_receiver(other.context, strange, qp->qp_num), nullptr) << "of another domain";
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(make_receiver(end.context, strange), nullptr);
    EXPECT_EQ(errno, EINVAL);
    for (const std::uint32_t number : {end.qp->qp_num, 0u, 1u, 0xffffffu, 0x1000000u | qp->qp_num, ~0u})
      EXPECT_EQ(refusal([&](auto& wanted) { wanted.qp_num = number; }), EINVAL) << number;
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(refusal([](auto&) {}), EINVAL) << "it is gone";
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
    EXPECT_EQ(ibv_close_xrcd(strange), 0);
  });
}

// Columns XRC_INI and XRC_TGT of the state table: attributes of the other end are optional and ignored.
TEST_F(XrcSharing, States) {
  run_alone([&](Endpoint& end) {
    ibv_xrcd* xrcd = open_domain(end.context);
    ibv_qp_init_attr plain{};
    plain.send_cq = end.cq;
    plain.qp_type = IBV_QPT_XRC_SEND;
    plain.cap = {4, 0, 1, 0, 0};
    ibv_qp* sends = ibv_create_qp(end.pd, &plain);
    ibv_qp* receives = make_receiver(end.context, xrcd);
    ibv_qp_attr attributes{};
    attributes.port_num = 1;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = 99;
    attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 4;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(end.context, 1, 1, &attributes.ah_attr.grh.dgid), 0);
    attributes.ah_attr.grh.sgid_index = 1;
    attributes.timeout = 14;
    const int connect = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const int answers = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const int retries = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    const int start = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
    const auto go = [&](ibv_qp* qp, ibv_qp_state state, int mask) {
      attributes.qp_state = state;
      return ibv_modify_qp(qp, &attributes, mask);
    };
    for (ibv_qp* qp : {sends, receives})
      EXPECT_EQ(go(qp, IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    EXPECT_EQ(go(receives, IBV_QPS_RTR, connect), EINVAL);
    EXPECT_EQ(go(receives, IBV_QPS_RTR, connect | answers), 0);
    EXPECT_EQ(go(sends, IBV_QPS_RTR, connect | answers), 0);
    EXPECT_EQ(go(sends, IBV_QPS_RTS, start), EINVAL);
    EXPECT_EQ(go(sends, IBV_QPS_RTS, start | retries), 0);
    EXPECT_EQ(go(receives, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
    EXPECT_EQ(go(receives, IBV_QPS_RTS, start | retries), 0);
    EXPECT_EQ(query(sends).max_dest_rd_atomic, 0);
    EXPECT_EQ(query(sends).max_rd_atomic, 4);
    EXPECT_EQ(query(receives).max_dest_rd_atomic, 4);
    EXPECT_EQ(query(receives).max_rd_atomic, 0);
    EXPECT_EQ(go(sends, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_QKEY), EINVAL);
    EXPECT_EQ(ibv_destroy_qp(sends), 0);
    EXPECT_EQ(ibv_destroy_qp(receives), 0);
    EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
  });
}

// One queue pair receives messages of both processes, and outlives its creator.
TEST_F(XrcSharing, AQueuePairOfTwoProcesses) {
  const DomainFile file;
  Exchange<XrcAddress> addresses;
  XrcAddress other;
  std::uint32_t qpn = 0;
  Baton ready, opened, received, gone, sent, closed;
  std::unique_ptr<host::SoftwareProcess> second;
  second = another([&] {
    ready.await(*second);
    Receiver end(file.fd, false);
    end.qp = open_receiver(end.context, end.xrcd, qpn);
    ASSERT_NE(end.qp, nullptr);
    for (std::uint64_t id = 0; id < 4; ++id) ASSERT_EQ(end.receive(0, 4096, 20 + id), 0);
    other = {.end = end.address(), .srqn = number_of(end.srq)};
    opened.give(*second);
    received.await(*second);
    expect_completions(end.cq, IBV_WC_SUCCESS, 20, 2);
    gone.await(*second);
    EXPECT_EQ(query(end.qp).qp_state, IBV_QPS_RTS);
    sent.await(*second);
    expect_completions(end.cq, IBV_WC_SUCCESS, 22, 1);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    second->port().settle();
    sleep_until(now() + kSettled);
    EXPECT_THAT(take_async_events(end.context), ElementsAre(IBV_EVENT_QP_LAST_WQE_REACHED));
    EXPECT_EQ(ibv_destroy_qp(std::exchange(end.qp, nullptr)), 0);
    EXPECT_EQ(open_receiver(end.context, end.xrcd, qpn), nullptr);
    closed.give(*second);
  });
  auto hasty = sender();
  hasty.timeout = 8;
  hasty.retry_count = 1;
  run(
      [&] {
        Endpoint end(hasty);
        const auto peer = addresses.swap(0, {.end = end.address()});
        end.connect(peer.end);
        opened.await(process(0));
        complete_to(end, peer.srqn, end.request(IBV_WR_SEND, 0, 3000));
        for (int i = 0; i < 2; ++i) complete_to(end, other.srqn, end.request(IBV_WR_SEND, 0, 3000));
        received.give(process(0));
        gone.await(process(0));
        settle(0);
        sleep_until(now() + kSettled);
        complete_to(end, other.srqn, end.request(IBV_WR_SEND, 0, 3000));
        sent.give(process(0));
        closed.await(process(0));
        complete_to(end, other.srqn, end.request(IBV_WR_SEND, 0, 8), IBV_WC_RETRY_EXC_ERR);
        while (!second->finished()) sleep_until(now() + kSettled);
      },
      [&] {
        Receiver end(file.fd);
        qpn = end.qp->qp_num;
        end.connect(addresses.swap(1, {.end = end.address(), .srqn = number_of(end.srq)}).end);
        ASSERT_EQ(end.receive(0, 4096, 10), 0);
        ready.give(process(1));
        received.await(process(1));
        expect_completions(end.cq, IBV_WC_SUCCESS, 10, 1);
        EXPECT_EQ(ibv_destroy_qp(std::exchange(end.qp, nullptr)), 0);
        EXPECT_THAT(take_async_events(end.context), IsEmpty()) << "those of the queue pair went with it";
        gone.give(process(1));
        closed.await(process(1));
      });
}

// When a process dies, shared objects stay for the others, and its own objects are destroyed.
TEST_F(XrcSharing, DeathOfTheMaker) {
  const DomainFile file;
  Exchange<XrcAddress> addresses;
  XrcAddress other;
  std::uint32_t qpn = 0, dead_srqn = 0;
  Baton ready, opened, done;
  std::unique_ptr<host::SoftwareProcess> second;
  second = another([&] {
    ready.await(*second);
    Receiver end(file.fd, false);
    end.qp = open_receiver(end.context, end.xrcd, qpn);
    ASSERT_NE(end.qp, nullptr);
    ASSERT_EQ(end.receive(0, 4096, 20), 0);
    other = {.end = end.address(), .srqn = number_of(end.srq)};
    opened.give(*second);
    done.await(*second);
    expect_completions(end.cq, IBV_WC_SUCCESS, 20, 1);
  });
  run(
      [&] {
        Endpoint end(sender());
        end.connect(addresses.swap(0, {.end = end.address()}).end);
        opened.await(process(0));
        while (!process(1).finished()) sleep_until(now() + kSettled);
        complete_to(end, other.srqn, end.request(IBV_WR_SEND, 0, 100));
        complete_to(end, dead_srqn, end.request(IBV_WR_SEND, 0, 100), IBV_WC_REM_INV_REQ_ERR);
        done.give(process(0));
        while (!second->finished()) sleep_until(now() + kSettled);
      },
      [&] {
        // The process ends without destroying its objects.
        auto* end = new Receiver(file.fd);
        qpn = end->qp->qp_num;
        dead_srqn = number_of(end->srq);
        end->connect(addresses.swap(1, {.end = end->address(), .srqn = dead_srqn}).end);
        ready.give(process(1));
        opened.await(process(1));
      });
}

// The ibv_wr_* calls and the extended CQ.
TEST_F(XrcSharing, ExtendedCalls) {
  Exchange<XrcAddress> addresses;
  run(
      [&] {
        Endpoint end(sender());
        ASSERT_EQ(ibv_destroy_qp(std::exchange(end.qp, nullptr)), 0);
        ibv_qp_init_attr_ex wanted{};
        wanted.send_cq = end.cq;
        wanted.cap = {8, 0, 2, 0, 64};
        wanted.qp_type = IBV_QPT_XRC_SEND;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        wanted.pd = end.pd;
        wanted.sq_sig_all = 1;
        wanted.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                                IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
        end.qp = ibv_create_qp_ex(end.context, &wanted);
        ASSERT_NE(end.qp, nullptr);
        const auto peer = addresses.swap(0, {.end = end.address()});
        end.connect(peer.end);
        fill(end);
        meet(0);
        ibv_qp_ex* qp = ibv_qp_to_qp_ex(end.qp);
        const auto buffer = reinterpret_cast<std::uint64_t>(end.buffer.data());
        ibv_wr_start(qp);
        ibv_wr_send(qp);
        ibv_wr_set_sge(qp, end.mr->lkey, buffer, 32);
        EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << "it names no queue";
        ibv_wr_start(qp);
        ibv_wr_send(qp);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_set_sge(qp, end.mr->lkey, buffer, 32);
        EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
        ibv_wr_start(qp);
        ibv_wr_send(qp);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_set_sge(qp, end.mr->lkey, buffer, 32);
        ibv_wr_send_imm(qp, htobe32(5));
        ibv_wr_set_inline_data(qp, end.buffer.data(), 64);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_rdma_write(qp, peer.end.rkey, peer.end.buffer + 30'000);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_set_sge(qp, end.mr->lkey, buffer, 2000);
        ibv_wr_atomic_fetch_add(qp, peer.end.rkey, peer.end.buffer + 60'000, 3);
        ibv_wr_set_xrc_srqn(qp, peer.srqn);
        ibv_wr_set_sge(qp, end.mr->lkey, buffer + 50'000, 8);
        ASSERT_EQ(ibv_wr_complete(qp), 0);
        for (int i = 0; i < 4; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&] {
        Receiver end(-1);
        ibv_cq_init_attr_ex wanted{};
        wanted.cqe = 16;
        wanted.wc_flags = IBV_WC_STANDARD_FLAGS;
        ibv_cq_ex* cq = ibv_create_cq_ex(end.context, &wanted);
        ASSERT_NE(cq, nullptr);
        ASSERT_EQ(ibv_destroy_srq(std::exchange(end.srq, nullptr)), 0);
        end.srq = make_xrc_srq(end.pd, end.xrcd, ibv_cq_ex_to_cq(cq));
        end.connect(addresses.swap(1, {.end = end.address(), .srqn = number_of(end.srq)}).end);
        for (std::uint64_t id = 0; id < 2; ++id) ASSERT_EQ(end.receive(std::uint32_t(id) * 4096, 64, 7 + id), 0);
        meet(1);
        meet(1);
        ibv_poll_cq_attr attributes{};
        ASSERT_EQ(ibv_start_poll(cq, &attributes), 0);
        EXPECT_EQ(cq->wr_id, 7u);
        EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
        EXPECT_EQ(ibv_wc_read_byte_len(cq), 32u);
        EXPECT_EQ(ibv_wc_read_qp_num(cq), end.qp->qp_num);
        ASSERT_EQ(ibv_next_poll(cq), 0);
        EXPECT_EQ(cq->wr_id, 8u);
        EXPECT_EQ(ibv_wc_read_imm_data(cq), htobe32(5));
        EXPECT_EQ(ibv_next_poll(cq), ENOENT);
        ibv_end_poll(cq);
        EXPECT_TRUE(filled(end, 4096, 64));
        EXPECT_TRUE(filled(end, 30'000, 2000));
        EXPECT_EQ(end.buffer[60'000], 3);
        EXPECT_EQ(ibv_destroy_srq(std::exchange(end.srq, nullptr)), 0);
        EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
      });
}

class NoXrc : public RcPair {
 protected:
  NoXrc() : RcPair({"nic.capabilities.xrc=false"}) {}
};

TEST_F(NoXrc, SaysSo) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_FALSE(device.device_cap_flags & IBV_DEVICE_XRC);
    EXPECT_EQ(open_domain(end.context), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(make_xrc_srq(end.pd, nullptr, end.cq), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(make_receiver(end.context, nullptr), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(open_receiver(end.context, nullptr, 1), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
    ibv_qp_init_attr plain{};
    plain.send_cq = end.cq;
    plain.qp_type = IBV_QPT_XRC_SEND;
    EXPECT_EQ(ibv_create_qp(end.pd, &plain), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
  });
}

}  // namespace
}  // namespace rnicsim::testing
