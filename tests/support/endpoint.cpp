// SPDX-License-Identifier: Apache-2.0
#include "tests/support/endpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "verbs/ibverbs/context_options.h"

namespace rnicsim::testing {
namespace {

template <class Object>
Object* made(Object* object, const char* what) {
  if (!object) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  return object;
}
void must(int error, const char* what) {
  if (error != 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(error));
}

int rtr_mask(ibv_qp_type type) {
  constexpr int kConnected = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_UD) return IBV_QP_STATE;
  return type == IBV_QPT_UC ? kConnected : kConnected | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int rts_mask(ibv_qp_type type) {
  constexpr int kReliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return IBV_QP_STATE | IBV_QP_SQ_PSN | (type == IBV_QPT_UC || type == IBV_QPT_UD ? 0 : kReliable);
}

}  // namespace

Endpoint::Endpoint(const EndpointOptions& wanted) : options(wanted), buffer(wanted.buffer_bytes) {
  ibv_device** list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
  context = made(ibv_open_device(made(list[0], "no device")), "ibv_open_device");
  ibv_free_device_list(list);
  if (options.inline_receive != 0) verbs::use_inline_receive(context, options.inline_receive);
  pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
  if (options.channel) channel = made(ibv_create_comp_channel(context), "ibv_create_comp_channel");
  cq = made(ibv_create_cq(context, options.cq_entries, this, channel, 0), "ibv_create_cq");
  mr = made(ibv_reg_mr(pd, buffer.data(), buffer.size(), options.mr_access), "ibv_reg_mr");
  if (options.shared_wr != 0) {
    ibv_srq_init_attr shared{};
    shared.attr = {options.shared_wr, options.max_sge, 0};
    srq = made(ibv_create_srq(pd, &shared), "ibv_create_srq");
  }
  qp = create_qp();
}

ibv_qp* Endpoint::create_qp() {
  ibv_qp_init_attr attributes{};
  attributes.srq = srq;
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = {options.max_wr, options.max_wr, options.max_sge, options.max_sge, options.max_inline};
  attributes.qp_type = options.type;
  attributes.sq_sig_all = options.signal_all;
  return made(ibv_create_qp(pd, &attributes), "ibv_create_qp");
}

Endpoint::~Endpoint() {
  const auto gone = [](auto* object, auto destroy, const char* what) {
    if (!object) return;
    EXPECT_EQ(destroy(object), 0) << what;
  };
  gone(qp, ibv_destroy_qp, "ibv_destroy_qp");
  gone(ah, ibv_destroy_ah, "ibv_destroy_ah");
  gone(srq, ibv_destroy_srq, "ibv_destroy_srq");
  gone(cq, ibv_destroy_cq, "ibv_destroy_cq");
  gone(channel, ibv_destroy_comp_channel, "ibv_destroy_comp_channel");
  gone(mr, ibv_dereg_mr, "ibv_dereg_mr");
  gone(pd, ibv_dealloc_pd, "ibv_dealloc_pd");
  gone(context, ibv_close_device, "ibv_close_device");
}

EndpointAddress Endpoint::address() const {
  EndpointAddress mine{.qpn = qp->qp_num,
                       .psn = options.psn,
                       .gid = {},
                       .buffer = reinterpret_cast<std::uint64_t>(buffer.data()),
                       .rkey = mr->rkey};
  must(ibv_query_gid(context, 1, options.gid_index, &mine.gid), "ibv_query_gid");
  return mine;
}

void Endpoint::to_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = options.qp_access;
  attributes.qkey = options.qkey;
  const int own = options.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own), "to INIT");
}

void Endpoint::to_rtr(const EndpointAddress& remote) {
  remote_ = remote;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = options.mtu;
  attributes.dest_qp_num = remote.qpn;
  attributes.rq_psn = remote.psn;
  attributes.max_dest_rd_atomic = options.max_rd_atomic;
  attributes.min_rnr_timer = options.min_rnr_timer;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = remote.gid;
  attributes.ah_attr.grh.sgid_index = options.gid_index;
  attributes.ah_attr.grh.hop_limit = 64;
  if (options.type == IBV_QPT_UD) ah = made(ibv_create_ah(pd, &attributes.ah_attr), "ibv_create_ah");
  must(ibv_modify_qp(qp, &attributes, rtr_mask(options.type)), "to RTR");
}

void Endpoint::to_rts() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_count;
  attributes.rnr_retry = options.rnr_retry;
  attributes.sq_psn = options.psn;
  attributes.max_rd_atomic = options.max_rd_atomic;
  must(ibv_modify_qp(qp, &attributes, rts_mask(options.type)), "to RTS");
}

void Endpoint::connect(const EndpointAddress& remote) {
  to_init();
  to_rtr(remote);
  to_rts();
}

ibv_qp_state Endpoint::state() {
  ibv_qp_attr attributes;
  ibv_qp_init_attr initial;
  must(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial), "ibv_query_qp");
  return attributes.qp_state;
}

ibv_send_wr Endpoint::request(ibv_wr_opcode opcode, std::uint32_t offset, std::uint32_t length,
                              std::uint32_t remote_offset) {
  sge_ = {reinterpret_cast<std::uint64_t>(buffer.data()) + offset, length, mr->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge_;
  wr.num_sge = 1;
  wr.opcode = opcode;
  if (options.type == IBV_QPT_UD)
    wr.wr.ud = {ah, remote_.qpn, options.qkey};
  else
    wr.wr.rdma = {remote_.buffer + remote_offset, remote_.rkey};
  return wr;
}

ibv_send_wr Endpoint::fetch_add(std::uint32_t offset, std::uint64_t add, std::uint32_t remote_offset) {
  auto wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, offset, 8);
  wr.wr.atomic = {remote_.buffer + remote_offset, add, 0, remote_.rkey};
  return wr;
}

ibv_send_wr Endpoint::compare_swap(std::uint32_t offset, std::uint64_t compare, std::uint64_t swap,
                                   std::uint32_t remote_offset) {
  auto wr = request(IBV_WR_ATOMIC_CMP_AND_SWP, offset, 8);
  wr.wr.atomic = {remote_.buffer + remote_offset, compare, swap, remote_.rkey};
  return wr;
}

int Endpoint::post(ibv_send_wr request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &request, &bad);
}

int Endpoint::receive(std::uint32_t offset, std::uint32_t length, std::uint64_t wr_id) {
  ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer.data()) + offset, length, mr->lkey};
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return srq != nullptr ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

ibv_wc Endpoint::completion() {
  ibv_wc wc{};
  int count = 0;
  while (count == 0) count = ibv_poll_cq(cq, 1, &wc);
  if (count < 0) throw std::runtime_error("ibv_poll_cq");
  return wc;
}

}  // namespace rnicsim::testing
