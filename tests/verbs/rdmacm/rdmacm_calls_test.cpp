// SPDX-License-Identifier: Apache-2.0
// librdmacm over a scripted kernel: commands of the library and their order, and the effects of answers, errors and
// events.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_errno.h"
#include "tests/verbs/rdmacm/scripted_port.h"

namespace rnicsim {
namespace {

ScriptedPort& port() { return scripted_port(); }

sockaddr_in address(const char* text, std::uint16_t number) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(number);
  EXPECT_EQ(::inet_pton(AF_INET, text, &result.sin_addr), 1);
  return result;
}

using Asked = std::vector<std::string>;
using States = std::vector<abi::QpState>;

class RdmacmCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    port().names_device = true;
    port().type = IBV_QPT_RC;
    channel_ = rdma_create_event_channel();
    ASSERT_NE(channel_, nullptr);
    port().asked.clear();
  }
  void TearDown() override {
    if (id_ != nullptr) {
      if (id_->qp != nullptr) rdma_destroy_qp(id_);
      EXPECT_EQ(rdma_destroy_id(id_), 0);
    }
    rdma_destroy_event_channel(channel_);
    port().expect_nothing_left();
    EXPECT_EQ(port().pds, 0u);
  }

  void make_id(rdma_port_space space = RDMA_PS_TCP) {
    port().type = space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    ASSERT_EQ(rdma_create_id(channel_, &id_, this, space), 0);
    uid_ = port().last_uid;
    number_ = port().last_id;
  }
  void make_bound(rdma_port_space space = RDMA_PS_TCP) {
    make_id(space);
    sockaddr_in local = address("10.0.0.1", 7471);
    ASSERT_EQ(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&local)), 0);
    port().asked.clear();
  }
  void make_with_qp(rdma_port_space space = RDMA_PS_TCP) {
    make_bound(space);
    ibv_qp_init_attr wanted = attributes();
    ASSERT_EQ(rdma_create_qp(id_, nullptr, &wanted), 0);
    port().asked.clear();
    port().states.clear();
  }
  ibv_qp_init_attr attributes() const {
    return {.cap = {.max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}, .qp_type = port().type};
  }
  Event event(rdma_cm_event_type type, int status = 0) const {
    Event made{};
    made.uid = uid_;
    made.id = number_;
    made.event = type;
    made.status = std::uint32_t(status);
    return made;
  }
  rdma_cm_event* next() const {
    rdma_cm_event* taken = nullptr;
    EXPECT_EQ(rdma_get_cm_event(channel_, &taken), 0);
    return taken;
  }
  void non_blocking() const { ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK); }

  rdma_event_channel* channel_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  std::uint64_t uid_ = 0;
  std::uint32_t number_ = 0;
};

TEST_F(RdmacmCalls, BindingNamesAddressAndDevice) {
  make_id();
  EXPECT_EQ(id_->verbs, nullptr);
  EXPECT_EQ(id_->qp_type, IBV_QPT_RC);
  EXPECT_EQ(id_->context, this);
  sockaddr_in local = address("10.0.0.1", 7471);
  EXPECT_EQ(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&local)), 0);
  EXPECT_EQ(port().asked, (Asked{"create_id", "bind", "query", "query"}));
  EXPECT_NE(id_->verbs, nullptr);
  EXPECT_NE(id_->pd, nullptr);
  EXPECT_EQ(id_->port_num, 1);
  EXPECT_EQ(rdma_get_src_port(id_), htons(7471));
}

TEST_F(RdmacmCalls, BindingRefusesWhatIsNoAddress) {
  make_id();
  sockaddr_in local = address("10.0.0.1", 7471);
  local.sin_family = AF_UNIX;
  EXPECT_ERRNO(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&local)), EINVAL);
  EXPECT_ERRNO(rdma_bind_addr(id_, nullptr), EINVAL);
  EXPECT_ERRNO(rdma_resolve_addr(id_, nullptr, nullptr, 10), EINVAL);
  local.sin_family = AF_INET;
  port().refused["bind"] = EADDRINUSE;
  EXPECT_ERRNO(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&local)), EADDRINUSE);
}

TEST_F(RdmacmCalls, AnAddressResolvedBindsTheDevice) {
  make_id();
  sockaddr_in remote = address("10.0.0.2", 7471);
  EXPECT_EQ(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&remote), 2000), 0);
  port().raise(number_, event(RDMA_CM_EVENT_ADDR_RESOLVED));
  rdma_cm_event* resolved = next();
  EXPECT_EQ(resolved->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(resolved->id, id_);
  EXPECT_NE(id_->verbs, nullptr);
  EXPECT_EQ(rdma_ack_cm_event(resolved), 0);
  EXPECT_EQ(rdma_resolve_route(id_, 2000), 0);
  port().raise(number_, event(RDMA_CM_EVENT_ROUTE_RESOLVED));
  resolved = next();
  EXPECT_EQ(id_->route.num_paths, 1);
  EXPECT_NE(id_->route.path_rec, nullptr);
  EXPECT_EQ(rdma_ack_cm_event(resolved), 0);
}

TEST_F(RdmacmCalls, AQueryThatFailsMakesAnErrorOfTheEvent) {
  make_id();
  port().refused["query"] = ENODEV;
  port().raise(number_, event(RDMA_CM_EVENT_ADDR_RESOLVED));
  rdma_cm_event* resolved = next();
  EXPECT_EQ(resolved->event, RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_EQ(resolved->status, -ENODEV);
  EXPECT_EQ(rdma_ack_cm_event(resolved), 0);
}

TEST_F(RdmacmCalls, AQpBringsItsPdAndItsQueues) {
  make_bound();
  ibv_qp_init_attr wanted = attributes();
  ASSERT_EQ(rdma_create_qp(id_, nullptr, &wanted), 0);
  ASSERT_NE(id_->qp, nullptr);
  EXPECT_EQ(id_->qp->pd, id_->pd);
  EXPECT_EQ(port().states, (States{abi::QpState::init}));
  ASSERT_NE(id_->send_cq, nullptr);
  ASSERT_NE(id_->recv_cq, nullptr);
  EXPECT_NE(id_->send_cq, id_->recv_cq);
  EXPECT_EQ(id_->send_cq->cq_context, id_);
  EXPECT_EQ(id_->recv_cq->cq_context, id_);
  EXPECT_EQ(id_->send_cq->channel, id_->send_cq_channel);
  EXPECT_EQ(id_->recv_cq->channel, id_->recv_cq_channel);
  EXPECT_GE(id_->send_cq->cqe, 4);
  EXPECT_GE(id_->recv_cq->cqe, 8);
  EXPECT_EQ(wanted.send_cq, id_->send_cq);
  EXPECT_GE(wanted.cap.max_send_wr, 4u);
  EXPECT_GT(wanted.cap.max_inline_data, 0u);  // the actual capacity, not the requested one
  EXPECT_ERRNO(rdma_create_qp(id_, nullptr, &wanted), EINVAL);
  rdma_destroy_qp(id_);
  EXPECT_EQ(id_->qp, nullptr);
  EXPECT_EQ(id_->send_cq, nullptr);
  EXPECT_EQ(id_->recv_cq_channel, nullptr);
}

TEST_F(RdmacmCalls, AQpNeedsADeviceAndItsPd) {
  make_id();
  ibv_qp_init_attr wanted = attributes();
  EXPECT_ERRNO(rdma_create_qp(id_, nullptr, &wanted), EINVAL);
  sockaddr_in local = address("10.0.0.1", 7471);
  ASSERT_EQ(rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&local)), 0);
  ibv_context* other = ibv_open_device(id_->verbs->device);
  ibv_pd* pd = ibv_alloc_pd(other);
  EXPECT_ERRNO(rdma_create_qp(id_, pd, &wanted), EINVAL);
  ibv_dealloc_pd(pd);
  ibv_close_device(other);
  EXPECT_EQ(id_->send_cq, nullptr);
}

TEST_F(RdmacmCalls, AQpThatCannotBeMadeLeavesNothing) {
  make_bound();
  ibv_qp_init_attr wanted = attributes();
  wanted.cap.max_send_sge = 1000;
  EXPECT_ERRNO(rdma_create_qp(id_, nullptr, &wanted), EINVAL);
  EXPECT_EQ(id_->send_cq, nullptr);
  EXPECT_EQ(id_->recv_cq, nullptr);
  EXPECT_EQ(wanted.send_cq, nullptr);
  wanted = attributes();
  port().refused["init_qp_attr"] = ENODEV;
  EXPECT_ERRNO(rdma_create_qp(id_, nullptr, &wanted), ENODEV);
  EXPECT_EQ(id_->qp, nullptr);
  EXPECT_EQ(id_->recv_cq_channel, nullptr);
}

TEST_F(RdmacmCalls, ADatagramQpIsReadyToSend) {
  make_bound(RDMA_PS_UDP);
  ibv_qp_init_attr wanted = attributes();
  ASSERT_EQ(rdma_create_qp(id_, nullptr, &wanted), 0);
  EXPECT_EQ(port().states, (States{abi::QpState::init, abi::QpState::rtr, abi::QpState::rts}));
}

TEST_F(RdmacmCalls, ParametersOfAConnectionAreChecked) {
  make_bound();
  EXPECT_ERRNO(rdma_connect(id_, nullptr), EINVAL);
  EXPECT_ERRNO(rdma_accept(id_, nullptr), EINVAL);
  rdma_conn_param wanted{};
  wanted.responder_resources = 17;
  EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
  wanted.responder_resources = RDMA_MAX_RESP_RES;
  wanted.initiator_depth = 17;
  EXPECT_ERRNO(rdma_connect(id_, &wanted), EINVAL);
  EXPECT_ERRNO(rdma_accept(id_, &wanted), EINVAL);
  EXPECT_TRUE(port().asked.empty());
  wanted.initiator_depth = 5;
  wanted.qp_num = 0x123;
  wanted.srq = 1;
  wanted.retry_count = 6;
  wanted.private_data = "hello";
  wanted.private_data_len = 5;
  EXPECT_EQ(rdma_connect(id_, &wanted), 0);
  EXPECT_EQ(port().parameters.responder_resources, 16);  // the device's maximum
  EXPECT_EQ(port().parameters.initiator_depth, 5);
  EXPECT_EQ(port().parameters.qp_num, 0x123u);
  EXPECT_EQ(port().parameters.srq, 1);
  EXPECT_EQ(port().parameters.retry_count, 6);
  EXPECT_EQ(port().parameters.private_data_len, 5);
  EXPECT_EQ(std::memcmp(port().parameters.private_data, "hello", 5), 0);
  EXPECT_EQ(port().parameters.valid, 1);
}

TEST_F(RdmacmCalls, TheReplyMovesTheQpAndIsAnswered) {
  make_with_qp();
  EXPECT_EQ(rdma_connect(id_, nullptr), 0);
  EXPECT_EQ(port().parameters.qp_num, id_->qp->qp_num);
  EXPECT_EQ(port().parameters.retry_count, 7);
  port().asked.clear();
  port().raise(number_, event(RDMA_CM_EVENT_CONNECT_RESPONSE));
  rdma_cm_event* established = next();
  EXPECT_EQ(established->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(port().asked,
            (Asked{"init_qp_attr", "modify_qp", "init_qp_attr", "modify_qp", "init_qp_attr", "modify_qp", "accept"}));
  EXPECT_EQ(port().states, (States{abi::QpState::init, abi::QpState::rtr, abi::QpState::rts}));
  EXPECT_EQ(port().parameters.valid, 0);
  EXPECT_ERRNO(rdma_establish(id_), EINVAL);
  EXPECT_EQ(rdma_ack_cm_event(established), 0);
}

TEST_F(RdmacmCalls, AReplyThatCannotBeUsedIsRejected) {
  make_with_qp();
  port().refused["init_qp_attr"] = EINVAL;
  port().raise(number_, event(RDMA_CM_EVENT_CONNECT_RESPONSE));
  rdma_cm_event* failed = next();
  EXPECT_EQ(failed->event, RDMA_CM_EVENT_CONNECT_ERROR);
  EXPECT_EQ(failed->status, -EINVAL);
  EXPECT_EQ(port().asked.back(), "reject");
  EXPECT_EQ(port().states, (States{abi::QpState::error}));
  EXPECT_EQ(rdma_ack_cm_event(failed), 0);
  // The end of a connection that was never established is not reported, and counts as acknowledged.
  port().raise(number_, event(RDMA_CM_EVENT_DISCONNECTED));
  non_blocking();
  EXPECT_ERRNO(rdma_get_cm_event(channel_, &failed), EAGAIN);
}

TEST_F(RdmacmCalls, AProgramWithItsOwnQpAnswersTheReplyItself) {
  make_bound();
  port().raise(number_, event(RDMA_CM_EVENT_CONNECT_RESPONSE));
  rdma_cm_event* response = next();
  EXPECT_EQ(response->event, RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(rdma_ack_cm_event(response), 0);
  ibv_qp_attr state{};
  int mask = 0;
  state.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(rdma_init_qp_attr(id_, &state, &mask), 0);
  EXPECT_EQ(state.dest_qp_num, 77u);
  EXPECT_NE(mask & IBV_QP_DEST_QPN, 0);
  EXPECT_EQ(rdma_establish(id_), 0);
  EXPECT_EQ(port().asked, (Asked{"init_qp_attr", "accept"}));
  EXPECT_EQ(port().parameters.valid, 0);
}

TEST_F(RdmacmCalls, ARequestIsAnIdOfItsOwn) {
  make_bound();
  Event request = event(RDMA_CM_EVENT_CONNECT_REQUEST);
  request.id = 999;
  request.param.conn.initiator_depth = 200;
  request.param.conn.responder_resources = 4;
  request.param.conn.private_data_len = 56;
  request.param.conn.private_data[55] = 9;
  port().raise(number_, request);
  rdma_cm_event* requested = next();
  rdma_cm_id* connection = requested->id;
  EXPECT_NE(connection, id_);
  EXPECT_EQ(requested->listen_id, id_);
  EXPECT_EQ(connection->context, this);
  EXPECT_EQ(connection->channel, channel_);
  EXPECT_NE(connection->verbs, nullptr);
  EXPECT_EQ(requested->param.conn.private_data_len, 56);
  EXPECT_EQ(static_cast<const std::uint8_t*>(requested->param.conn.private_data)[55], 9);
  ibv_qp_init_attr wanted = attributes();
  ASSERT_EQ(rdma_create_qp(connection, nullptr, &wanted), 0);
  port().asked.clear();
  EXPECT_EQ(rdma_accept(connection, nullptr), 0);
  EXPECT_EQ(port().asked,
            (Asked{"init_qp_attr", "modify_qp", "init_qp_attr", "modify_qp", "init_qp_attr", "modify_qp", "accept"}));
  EXPECT_EQ(port().parameters.initiator_depth, 16);     // limited to the device's maximum
  EXPECT_EQ(port().parameters.responder_resources, 4);  // limited to the peer's request
  port().refused["accept"] = EINVAL;
  port().states.clear();
  EXPECT_ERRNO(rdma_accept(connection, nullptr), EINVAL);
  EXPECT_EQ(port().states.back(), abi::QpState::error);
  EXPECT_EQ(rdma_reject(connection, "no", 2), 0);
  EXPECT_EQ(port().rejection.reason, 0);
  EXPECT_EQ(port().rejection.private_data_len, 2);
  EXPECT_EQ(rdma_reject_ece(connection, nullptr, 0), 0);
  EXPECT_EQ(port().rejection.reason, 35);
  rdma_destroy_qp(connection);
  EXPECT_EQ(rdma_ack_cm_event(requested), 0);
  EXPECT_EQ(rdma_destroy_id(connection), 0);
}

TEST_F(RdmacmCalls, ARequestThatCannotBeKnownIsDropped) {
  make_bound();
  port().refused["query"] = EINVAL;
  Event request = event(RDMA_CM_EVENT_CONNECT_REQUEST);
  request.id = 999;
  port().raise(number_, request);
  non_blocking();
  rdma_cm_event* requested = nullptr;
  EXPECT_ERRNO(rdma_get_cm_event(channel_, &requested), EAGAIN);
  EXPECT_EQ(port().asked, (Asked{"query", "destroy_id"}));
}

TEST_F(RdmacmCalls, EndsMoveTheQpToErr) {
  make_with_qp();
  EXPECT_EQ(rdma_disconnect(id_), 0);
  EXPECT_EQ(port().asked, (Asked{"modify_qp", "disconnect"}));
  EXPECT_EQ(port().states, (States{abi::QpState::error}));
  port().raise(number_, event(RDMA_CM_EVENT_REJECTED, 28));
  rdma_cm_event* rejected = next();
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(port().states.size(), 2u);
  EXPECT_EQ(rdma_ack_cm_event(rejected), 0);
}

TEST_F(RdmacmCalls, DestroyingWaitsForTheAcknowledgement) {
  make_bound();
  port().raise(number_, event(RDMA_CM_EVENT_TIMEWAIT_EXIT));
  rdma_cm_event* unread = next();
  int waits = 0;
  port().on_wait = [&] {
    if (++waits == 3) rdma_ack_cm_event(unread);
  };
  EXPECT_EQ(rdma_destroy_id(std::exchange(id_, nullptr)), 0);
  EXPECT_EQ(waits, 3);
}

TEST_F(RdmacmCalls, NothingIsReadableOfADestroyedId) {
  make_bound();
  port().announce(number_);
  pollfd readable{.fd = channel_->fd, .events = POLLIN};
  EXPECT_EQ(::poll(&readable, 1, 0), 1);
  EXPECT_EQ(rdma_destroy_id(std::exchange(id_, nullptr)), 0);
  EXPECT_EQ(::poll(&readable, 1, 0), 0);
}

TEST_F(RdmacmCalls, ARecordWithoutEventIsPassedOver) {
  make_bound();
  port().announce(number_);
  port().announce(number_);
  non_blocking();
  rdma_cm_event* none = nullptr;
  EXPECT_ERRNO(rdma_get_cm_event(channel_, &none), EAGAIN);
  EXPECT_ERRNO(rdma_get_cm_event(channel_, nullptr), EINVAL);
  EXPECT_ERRNO(rdma_ack_cm_event(nullptr), EINVAL);
}

TEST_F(RdmacmCalls, SynchronousCallsEndWithTheirEvent) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_NE(id->channel, nullptr);
  std::swap(id_, id);
  uid_ = port().last_uid;
  number_ = port().last_id;
  sockaddr_in remote = address("10.0.0.2", 7471);
  port().raise(number_, event(RDMA_CM_EVENT_ADDR_RESOLVED));
  EXPECT_EQ(rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr*>(&remote), 2000), 0);
  ASSERT_NE(id_->event, nullptr);
  EXPECT_EQ(id_->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
  rdma_conn_param wanted{};
  port().raise(number_, event(RDMA_CM_EVENT_REJECTED, 28));
  EXPECT_ERRNO(rdma_connect(id_, &wanted), ECONNREFUSED);
  EXPECT_EQ(id_->event->event, RDMA_CM_EVENT_REJECTED);
  port().raise(number_, event(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT));
  EXPECT_ERRNO(rdma_connect(id_, &wanted), ETIMEDOUT);
  EXPECT_ERRNO(rdma_migrate_id(id_, nullptr), EINVAL);
  EXPECT_EQ(rdma_migrate_id(id_, channel_), 0);
  EXPECT_EQ(id_->event, nullptr);
  EXPECT_EQ(id_->channel, channel_);
  rdma_cm_id* connection = nullptr;
  EXPECT_ERRNO(rdma_get_request(id_, &connection), EINVAL);
}

TEST_F(RdmacmCalls, AnEndpointsRequestsHaveQpsAndChannels) {
  sockaddr_in local = address("10.0.0.1", 7471);
  rdma_addrinfo info{};
  info.ai_flags = RAI_PASSIVE;
  info.ai_qp_type = IBV_QPT_RC;
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_src_addr = reinterpret_cast<sockaddr*>(&local);
  info.ai_src_len = sizeof local;
  ibv_qp_init_attr wanted = attributes();
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(rdma_create_ep(&listener, &info, nullptr, &wanted), 0);
  EXPECT_EQ(listener->qp, nullptr);
  Event request = event(RDMA_CM_EVENT_CONNECT_REQUEST);
  request.uid = port().last_uid;
  request.id = 999;
  port().raise(port().last_id, request);
  rdma_cm_id* connection = nullptr;
  ASSERT_EQ(rdma_get_request(listener, &connection), 0);
  EXPECT_NE(connection->qp, nullptr);
  EXPECT_NE(connection->channel, listener->channel);
  ASSERT_NE(connection->event, nullptr);
  EXPECT_EQ(connection->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_destroy_ep(connection);
  rdma_destroy_ep(listener);
}

TEST_F(RdmacmCalls, AGroupIsAttachedWhenItsEventIsRead) {
  make_with_qp(RDMA_PS_UDP);
  sockaddr_in group = address("239.1.1.1", 0);
  auto* name = reinterpret_cast<sockaddr*>(&group);
  EXPECT_ERRNO(rdma_leave_multicast(id_, name), EADDRNOTAVAIL);
  int context = 0;
  EXPECT_EQ(rdma_join_multicast(id_, name, &context), 0);
  EXPECT_EQ(port().attached, 0u);
  Event joined = event(RDMA_CM_EVENT_MULTICAST_JOIN);
  joined.uid = port().last_uid;
  joined.param.ud.qp_num = 0xffffff;
  joined.param.ud.ah_attr.grh.dgid[0] = 0xff;
  port().raise(number_, joined);
  rdma_cm_event* told = next();
  EXPECT_EQ(told->event, RDMA_CM_EVENT_MULTICAST_JOIN);
  EXPECT_EQ(told->id, id_);
  EXPECT_EQ(told->param.ud.private_data, &context);
  EXPECT_EQ(told->param.ud.qp_num, 0xffffffu);
  EXPECT_EQ(port().attached, 1u);
  EXPECT_EQ(rdma_ack_cm_event(told), 0);
  EXPECT_EQ(rdma_leave_multicast(id_, name), 0);
  EXPECT_EQ(port().detached, 1u);
  EXPECT_ERRNO(rdma_leave_multicast(id_, name), EADDRNOTAVAIL);
}

TEST_F(RdmacmCalls, JoiningChecksItsAttributes) {
  make_with_qp(RDMA_PS_UDP);
  sockaddr_in group = address("239.1.1.1", 0);
  rdma_cm_join_mc_attr_ex wanted{};
  wanted.addr = reinterpret_cast<sockaddr*>(&group);
  wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
  EXPECT_ERRNO(rdma_join_multicast_ex(id_, &wanted, nullptr), ENOTSUP);
  wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  EXPECT_ERRNO(rdma_join_multicast_ex(id_, &wanted, nullptr), EINVAL);
  wanted.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  wanted.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
  EXPECT_ERRNO(rdma_join_multicast_ex(id_, &wanted, nullptr), EINVAL);
  wanted.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
  port().refused["join_mcast"] = EADDRNOTAVAIL;
  EXPECT_ERRNO(rdma_join_multicast_ex(id_, &wanted, nullptr), EADDRNOTAVAIL);
  EXPECT_ERRNO(rdma_leave_multicast(id_, wanted.addr), EADDRNOTAVAIL);
}

TEST_F(RdmacmCalls, AnOptionsBytesGoWithIt) {
  make_id();
  std::uint8_t type_of_service = 0x20;
  EXPECT_EQ(rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &type_of_service, 1), 0);
  EXPECT_EQ(port().option, std::vector<std::byte>{std::byte(0x20)});
  EXPECT_ERRNO(rdma_set_option(id_, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, nullptr, 1), EFAULT);
  port().refused["set_option"] = ENOSYS;
  EXPECT_ERRNO(rdma_set_option(id_, 9, 9, &type_of_service, 1), ENOSYS);
}

TEST_F(RdmacmCalls, EceIsForProgramsWithTheirOwnQp) {
  make_bound();
  ibv_ece ece{.vendor_id = 1, .options = 2, .comp_mask = 0};
  EXPECT_EQ(rdma_set_local_ece(id_, &ece), 0);
  EXPECT_EQ(rdma_get_remote_ece(id_, &ece), 0);
  EXPECT_EQ(ece.vendor_id, 0u);
  EXPECT_ERRNO(rdma_set_local_ece(id_, &ece), EINVAL);
  EXPECT_ERRNO(rdma_set_local_ece(nullptr, &ece), EINVAL);
  EXPECT_ERRNO(rdma_get_remote_ece(id_, nullptr), EINVAL);
}

TEST_F(RdmacmCalls, AddressesComeFromTheResolver) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_UDP;
  rdma_addrinfo* found = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &found), 0);
  EXPECT_EQ(found->ai_family, AF_INET);
  EXPECT_EQ(found->ai_qp_type, IBV_QPT_UD);
  EXPECT_EQ(found->ai_port_space, RDMA_PS_UDP);
  ASSERT_NE(found->ai_dst_addr, nullptr);
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(found->ai_dst_addr)->sin_port, htons(7471));
  EXPECT_EQ(found->ai_src_addr, nullptr);
  rdma_freeaddrinfo(found);
  EXPECT_EQ(rdma_getaddrinfo("h0.nowhere", "7471", &hints, &found), EAI_NONAME);
  hints.ai_family = AF_IB;
  EXPECT_EQ(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &found), EAI_FAMILY);
  EXPECT_ERRNO(rdma_getaddrinfo(nullptr, nullptr, nullptr, &found), EINVAL);
}

TEST_F(RdmacmCalls, DevicesAreOpenAndStayOpen) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(list[1], nullptr);
  ibv_context* context = list[0];
  rdma_free_devices(list);
  make_bound();
  EXPECT_EQ(id_->verbs, context);
}

TEST_F(RdmacmCalls, EventsHaveNames) {
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
  EXPECT_STREQ(rdma_event_str(rdma_cm_event_type(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)), "UNKNOWN EVENT");
}

}  // namespace

}  // namespace rnicsim
