// SPDX-License-Identifier: Apache-2.0
// QPs, SRQs and multicast groups of ids: created, used and destroyed at any time.
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/base/kernel.h"
#include "tests/soak/connections_walk/walker.h"

namespace rnicsim::testing {

using Stage = Shape::Stage;

namespace {

// Content of a message: the sender's token and the sender's count of messages.
struct Message {
  std::uint64_t token, number;
};

constexpr std::uint32_t kFarTooMany = 1 << 24;

}  // namespace

void ConnectionWalker::create_qp(const Known& ident) {
  Ident& it = *ident;
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = it.id->qp_type;
  wanted.sq_sig_all = 1;
  wanted.cap = {kDepth, kDepth, 1, 1, sizeof(Message)};
  const bool too_many = dice_.once_in(20), other_type = dice_.once_in(20);
  if (too_many) wanted.cap.max_send_wr = kFarTooMany;
  if (other_type) wanted.qp_type = it.datagram ? IBV_QPT_RC : IBV_QPT_UD;
  if (!it.shares_receives && dice_.once_in(2)) wanted.pd = pd_;
  if (wanted.pd != nullptr || dice_.once_in(2)) wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
  const bool legal = it.qp == Ident::Qp::none && it.device && !too_many && !other_type;
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    return legal ? initializing(it.datagram, it.bound_to_device, IBV_QPS_INIT)(shape) : Outcomes{{EINVAL, shape}};
  };
  int answer = 0;
  if (dice_.once_in(2)) {
    answer = errno_of(rdma_create_qp_ex(it.id, &wanted));
  } else {
    ibv_qp_init_attr plain{};
    plain.cap = wanted.cap;
    plain.qp_type = wanted.qp_type;
    plain.sq_sig_all = 1;
    answer = errno_of(rdma_create_qp(it.id, wanted.pd, &plain));
  }
  if (!validate(it, "rdma_create_qp", answer, rule)) return;
  if (answer != 0) {
    if (it.qp == Ident::Qp::none && (it.id->qp != nullptr || it.id->send_cq != nullptr || it.id->recv_cq != nullptr))
      fail("rdma_create_qp left something");
    return;
  }
  it.qp = it.datagram ? Ident::Qp::rts : Ident::Qp::init;
  it.connected = false;
  expect_state(it, it.datagram ? IBV_QPS_RTS : IBV_QPS_INIT);
  if (it.id->qp == nullptr || it.id->send_cq == nullptr || it.id->pd != it.id->qp->pd)
    fail("rdma_create_qp: the id does not have it");
}

void ConnectionWalker::expect_state(const Ident& it, ibv_qp_state state) {
  if (it.id->qp == nullptr) return;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  if (!expect("ibv_query_qp", ibv_query_qp(it.id->qp, &attributes, IBV_QP_STATE, &initial), {0})) return;
  if (attributes.qp_state != state && attributes.qp_state != IBV_QPS_ERR)
    fail("the QP of " + name(it) + " is in state " + std::to_string(attributes.qp_state));
}

// Leaves all groups first. The kernel would refuse to destroy a QP in a group, and rdma_destroy_qp() returns no error.
void ConnectionWalker::destroy_qp(const Known& ident) {
  Ident& it = *ident;
  while (it.qp != Ident::Qp::none && !it.groups.empty() && !town_.broken) leave(ident, it.groups.back()->group.ipv6);
  rdma_destroy_qp(it.id);
  if (it.id->qp != nullptr || it.id->send_cq != nullptr || it.id->recv_cq != nullptr)
    fail("rdma_destroy_qp left something");
  it.qp = Ident::Qp::none;
  it.sends.clear();
  it.receives.clear();
}

// One SRQ per id; it is not replaced.
void ConnectionWalker::create_srq(const Known& ident) {
  Ident& it = *ident;
  if (it.shares_receives) return;
  ibv_srq_init_attr wanted{};
  wanted.attr = {dice_.once_in(10) ? kFarTooMany : kDepth, 1, 0};
  const bool legal = it.device && wanted.attr.max_wr == kDepth;
  const int answer = errno_of(rdma_create_srq(it.id, nullptr, &wanted));
  if (!expect("rdma_create_srq", answer, {legal ? 0 : EINVAL}) || answer != 0) return;
  it.shares_receives = true;
}

// --- Groups.

void ConnectionWalker::join(const Known& ident) {
  Ident& it = *ident;
  Place place = dice_.once_in(8) ? draw_remote(it) : Place{Place::Kind::group, dice_.once_in(4), 0};
  place.port = 0;
  rdma_cm_join_mc_attr_ex wanted{};
  wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  wanted.join_flags = dice_.once_in(4) ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
  const int wrong = int(dice_.below(20));
  if (wrong == 0) wanted.comp_mask |= RDMA_CM_JOIN_MC_ATTR_RESERVED;
  if (wrong == 1) wanted.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  if (wrong == 2) wanted.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
  wanted.addr = written(place);
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (wrong == 0) return {{ENOTSUP, shape}};
    const bool right_state = shape.stage == Stage::bound || shape.stage == Stage::address_resolved;
    const bool legal = wrong > 2 && it.datagram && place.kind == Place::Kind::group && right_state &&
                       has_device(shape, it.bound_to_device);
    return {{legal ? 0 : EINVAL, shape}};
  };
  it.shapes.wander(it.surroundings());
  if (it.synchronous && it.id->event != nullptr) rdma_ack_cm_event(std::exchange(it.id->event, nullptr));
  auto& joined = *it.groups.emplace_back(std::make_unique<Joined>(Joined{place, false, now()}));
  const int answer = errno_of(rdma_join_multicast_ex(it.id, &wanted, &joined));
  const bool done = it.synchronous ? it.id->event != nullptr : answer == 0;
  validate_waiting(ident, "rdma_join_multicast_ex", answer, rule);
  if (!done && !town_.broken) it.groups.pop_back();
}

void ConnectionWalker::leave(const Known& ident, bool ipv6) {
  Ident& it = *ident;
  const Place place{Place::Kind::group, ipv6, 0};
  const auto last = std::find_if(it.groups.rbegin(), it.groups.rend(),
                                 [&](const auto& joined) { return joined->group.ipv6 == place.ipv6; });
  const bool joined = last != it.groups.rend();
  if (joined) {
    for (std::size_t i = held_.size(); i > 0; --i)
      if (held_[i - 1].group == last->get()) acknowledge(i - 1);
    if (it.synchronous && it.id->event != nullptr) rdma_ack_cm_event(std::exchange(it.id->event, nullptr));
  }
  expect("rdma_leave_multicast", errno_of(rdma_leave_multicast(it.id, written(place))), {joined ? 0 : EADDRNOTAVAIL});
  if (joined) it.groups.erase(std::next(last).base());
}

// --- Messages.

void ConnectionWalker::post(Ident& it) {
  if (it.qp == Ident::Qp::none || it.qp == Ident::Qp::unknown) return;
  if (dice_.once_in(2)) {
    if (it.shares_receives || it.id->pd != pd_ || it.receives.size() >= kDepth) return;
    const std::uint32_t cell = it.first_cell + it.next_cell++ % kDepth;
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&cells_[cell * kCell]), kCell, mr_->lkey};
    ibv_recv_wr wr{}, *bad = nullptr;
    wr.wr_id = cell;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    if (!expect("ibv_post_recv", ibv_post_recv(it.id->qp, &wr, &bad), {0})) return;
    it.receives.push_back(cell);
  } else {
    if (it.datagram || !it.connected || it.sends.size() >= kDepth) return;
    const Message message{it.token, it.sent};
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&message), sizeof message, 0};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.wr_id = ~it.sent;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    if (!expect("ibv_post_send", ibv_post_send(it.id->qp, &wr, &bad), {0})) return;
    it.sends.push_back(~it.sent++);
  }
}

void ConnectionWalker::poll(Ident& it) {
  if (it.qp == Ident::Qp::none) return;
  for (ibv_cq* cq : {it.id->qp->send_cq, it.id->qp->recv_cq}) {
    if (cq == nullptr) continue;
    ibv_wc completions[4];
    const int count = ibv_poll_cq(cq, 4, completions);
    if (count < 0) return fail("ibv_poll_cq");
    for (int i = 0; i < count && !town_.broken; ++i) complete(it, completions[i]);
  }
}

void ConnectionWalker::complete(Ident& it, const ibv_wc& wc) {
  const bool sent = !it.sends.empty() && it.sends.front() == wc.wr_id;
  const bool received = !it.receives.empty() && it.receives.front() == wc.wr_id;
  if (sent == received || wc.qp_num != it.id->qp->qp_num) return fail("a completion of another work request");
  (sent ? it.sends : it.receives).pop_front();
  if (wc.status != IBV_WC_SUCCESS) {
    const bool fits = wc.status == IBV_WC_WR_FLUSH_ERR ||
                      (sent && (wc.status == IBV_WC_RETRY_EXC_ERR || wc.status == IBV_WC_RNR_RETRY_EXC_ERR));
    if (!fits) fail("a completion of status " + std::to_string(wc.status));
    return;
  }
  if (!it.connected) return fail("a message without a connection");
  if (sent) return;
  ++town_.messages;
  Message message{};
  std::memcpy(&message, &cells_[wc.wr_id * kCell], sizeof message);
  if (wc.byte_len != sizeof message) return fail("a message of another length");
  const bool others = it.peer_token != 0 && it.unique && message.token != it.peer_token;
  if (others || message.number < it.received) return fail("a message of another connection, or an old one");
  it.received = message.number + 1;
}

}  // namespace rnicsim::testing
