// SPDX-License-Identifier: Apache-2.0
// Calls that must fail, each with its errno, and without side effects.
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

void Walker::break_something() {
  switch (dice_.below(13)) {
    case 12: return break_device_memory();
    case 8:
    case 9: return break_frames();
    case 10:
    case 11: return break_extended();
    case 0:
    case 1: return garble_handle();
    case 2:
    case 3: return swap_contexts();
    case 4: return ask_too_much();
    case 5: return mix_contexts();
    case 6: return join_badly();
    default: return ask_nonsense();
  }
}

void Walker::garbled(std::uint32_t& handle, const std::string& call, const std::function<int()>& make) {
  const auto right = handle;
  handle = dice_.once_in(2) ? handle ^ (1u << dice_.below(32)) : handle + dice_.between(1, 4);
  const int answer = make();
  handle = right;
  expect(call + " of a garbled handle", answer, {ENOENT});
}

void Walker::swapped(ibv_context*& context, const std::string& call, const std::function<int()>& make) {
  ibv_context* right = context;
  context = right == contexts_[0] ? contexts_[1] : contexts_[0];
  const int answer = make();
  context = right;
  expect(call + " with a swapped context", answer, {ENOENT});
}

void Walker::garble_handle() {
  const auto domain = any(domains_);
  const auto region = any(regions_);
  const auto queue = any(queues_);
  const auto shared = any(shared_);
  const auto pair = any(pairs_);
  const auto window = any(windows_);
  const auto way = any(ways_);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ibv_srq_attr limits{};
  const auto other = any(queues_);
  switch (dice_.below(17)) {
    case 0:
      if (domain) garbled(domain->pd->handle, "ibv_dealloc_pd", [&] { return ibv_dealloc_pd(domain->pd); });
      break;
    case 1:
      if (domain)
        garbled(domain->pd->handle, "ibv_reg_mr", [&] { return made(ibv_reg_mr(domain->pd, arena_.at(0), 64, 0)); });
      break;
    case 2:
      if (domain)
        garbled(domain->pd->handle, "ibv_alloc_mw", [&] { return made(ibv_alloc_mw(domain->pd, IBV_MW_TYPE_1)); });
      break;
    case 3:
      if (region) garbled(region->mr->handle, "ibv_dereg_mr", [&] { return ibv_dereg_mr(region->mr); });
      break;
    case 4:
      if (queue) garbled(queue->cq->handle, "ibv_destroy_cq", [&] { return ibv_destroy_cq(queue->cq); });
      break;
    case 5:
      if (queue) garbled(queue->cq->handle, "ibv_resize_cq", [&] { return ibv_resize_cq(queue->cq, 200); });
      break;
    case 6:
      if (shared) garbled(shared->srq->handle, "ibv_destroy_srq", [&] { return ibv_destroy_srq(shared->srq); });
      break;
    case 7:
      if (shared)
        garbled(shared->srq->handle, "ibv_modify_srq",
                [&] { return ibv_modify_srq(shared->srq, &limits, IBV_SRQ_LIMIT); });
      break;
    case 8:
      if (shared) garbled(shared->srq->handle, "ibv_query_srq", [&] { return ibv_query_srq(shared->srq, &limits); });
      break;
    case 9:
      if (pair) garbled(pair->qp->handle, "ibv_destroy_qp", [&] { return ibv_destroy_qp(pair->qp); });
      break;
    case 10:
      if (pair)
        garbled(pair->qp->handle, "ibv_modify_qp", [&] {
          attributes.qp_state = IBV_QPS_ERR;
          return ibv_modify_qp(pair->qp, &attributes, IBV_QP_STATE);
        });
      break;
    case 11:
      if (pair)
        garbled(pair->qp->handle, "ibv_query_qp",
                [&] { return ibv_query_qp(pair->qp, &attributes, IBV_QP_STATE, &initial); });
      break;
    case 12:
      if (window) garbled(window->mw->handle, "ibv_dealloc_mw", [&] { return ibv_dealloc_mw(window->mw); });
      break;
    case 13:
      if (way) garbled(way->ah->handle, "ibv_destroy_ah", [&] { return ibv_destroy_ah(way->ah); });
      break;
    case 14:
      if (pair)
        garbled(pair->qp->handle, "ibv_attach_mcast", [&] {
          ibv_gid gid = gid_;
          gid.raw[12] = 239;
          return ibv_attach_mcast(pair->qp, &gid, 0);
        });
      break;
    default:
      if (!domain || !other || other->context != domain->context) return;
      initial.send_cq = initial.recv_cq = other->cq;
      initial.qp_type = IBV_QPT_RC;
      initial.cap = {1, 1, 1, 1, 0};
      garbled(dice_.once_in(2) ? other->cq->handle : domain->pd->handle, "ibv_create_qp",
              [&] { return made(ibv_create_qp(domain->pd, &initial)); });
  }
}

void Walker::swap_contexts() {
  const auto domain = any(domains_);
  const auto region = any(regions_);
  const auto queue = any(queues_);
  const auto shared = any(shared_);
  const auto pair = any(pairs_);
  const auto window = any(windows_);
  const auto way = any(ways_);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  ibv_srq_init_attr wanted{};
  wanted.attr = {4, 1, 0};
  switch (dice_.below(11)) {
    case 0:
      if (domain) swapped(domain->pd->context, "ibv_dealloc_pd", [&] { return ibv_dealloc_pd(domain->pd); });
      break;
    case 1:
      if (domain)
        swapped(domain->pd->context, "ibv_reg_mr", [&] { return made(ibv_reg_mr(domain->pd, arena_.at(0), 64, 0)); });
      break;
    case 2:
      if (domain)
        swapped(domain->pd->context, "ibv_create_srq", [&] { return made(ibv_create_srq(domain->pd, &wanted)); });
      break;
    case 3:
      if (region) swapped(region->mr->context, "ibv_dereg_mr", [&] { return ibv_dereg_mr(region->mr); });
      break;
    case 4:
      if (queue) swapped(queue->cq->context, "ibv_destroy_cq", [&] { return ibv_destroy_cq(queue->cq); });
      break;
    case 5:
      if (queue) swapped(queue->cq->context, "ibv_resize_cq", [&] { return ibv_resize_cq(queue->cq, 10); });
      break;
    case 6:
      if (shared) swapped(shared->srq->context, "ibv_destroy_srq", [&] { return ibv_destroy_srq(shared->srq); });
      break;
    case 7:
      if (pair) swapped(pair->qp->context, "ibv_destroy_qp", [&] { return ibv_destroy_qp(pair->qp); });
      break;
    case 8:
      if (pair)
        swapped(pair->qp->context, "ibv_query_qp",
                [&] { return ibv_query_qp(pair->qp, &attributes, IBV_QP_STATE, &initial); });
      break;
    case 9:
      if (window) swapped(window->mw->context, "ibv_dealloc_mw", [&] { return ibv_dealloc_mw(window->mw); });
      break;
    default:
      if (way) swapped(way->ah->context, "ibv_destroy_ah", [&] { return ibv_destroy_ah(way->ah); });
      break;
  }
}

void Walker::ask_too_much() {
  const auto context = dice_.below(kContexts);
  const auto domain = any_domain(context);
  const auto queue = any_queue(context);
  if (!domain || !queue) return;
  // entries of the smallest work requests; max_qp_wr counts the largest
  constexpr std::uint32_t kRingEntries = 1 << 15;
  ibv_qp_init_attr initial{};
  initial.send_cq = initial.recv_cq = queue->cq;
  initial.qp_type = IBV_QPT_RC;
  initial.cap = {1, 1, 1, 1, 0};
  ibv_srq_init_attr shared{};
  shared.attr = {4, 1, 0};
  switch (dice_.below(11)) {
    case 0: initial.cap.max_send_wr = kRingEntries + dice_.between(1, 1 << 20); break;
    case 1: initial.cap.max_recv_wr = kRingEntries + dice_.between(1, 1 << 20); break;
    case 2: initial.cap.max_send_sge = std::uint32_t(limits_.max_sge) + dice_.between(1, 1000); break;
    case 3: initial.cap.max_recv_sge = ~0u - dice_.below(10); break;
    case 4: initial.cap.max_inline_data = 1u << dice_.between(12, 31); break;
    case 5: initial.qp_type = ibv_qp_type(dice_.between(40, 200)); break;
    case 6:
      expect("ibv_create_cq of no or too many entries",
             made(ibv_create_cq(contexts_[context], dice_.once_in(2) ? -int(dice_.below(3)) : limits_.max_cqe + 1,
                                nullptr, nullptr, 0)),
             {EINVAL});
      return;
    case 7:
      expect("ibv_create_cq with a bad vector",
             made(ibv_create_cq(contexts_[context], 10, nullptr, nullptr, contexts_[context]->num_comp_vectors)),
             {EINVAL});
      return;
    case 8: shared.attr.max_wr = dice_.once_in(2) ? 0 : std::uint32_t(limits_.max_srq_wr) + 1; [[fallthrough]];
    case 9:
      if (shared.attr.max_wr == 4) shared.attr.max_sge = std::uint32_t(limits_.max_srq_sge) + 1;
      expect("ibv_create_srq over its caps", made(ibv_create_srq(domain->pd, &shared)), {EINVAL});
      return;
    default:
      expect("ibv_resize_cq to no or too many entries",
             ibv_resize_cq(queue->cq, dice_.once_in(2) ? -int(dice_.below(3)) : limits_.max_cqe + 1), {EINVAL});
      return;
  }
  expect("ibv_create_qp over its caps", made(ibv_create_qp(domain->pd, &initial)), {EINVAL});
}

// Calls with objects of two contexts.
void Walker::mix_contexts() {
  const auto domain = any_domain(0);
  const auto queue = any_queue(1);
  const auto own = any_queue(0);
  if (!domain || !queue || !own) return;
  ibv_qp_init_attr initial{};
  initial.send_cq = own->cq;
  initial.recv_cq = queue->cq;
  initial.qp_type = IBV_QPT_UD;
  initial.cap = {1, 1, 1, 1, 0};
  if (dice_.once_in(2)) std::swap(initial.send_cq, initial.recv_cq);
  expect("ibv_create_qp with another context's CQ", made(ibv_create_qp(domain->pd, &initial)), {ENOENT});
  if (const auto shared = any(shared_); shared && shared->domain->context == 1) {
    initial.send_cq = initial.recv_cq = own->cq;
    initial.srq = shared->srq;
    expect("ibv_create_qp with another context's SRQ", made(ibv_create_qp(domain->pd, &initial)), {EINVAL, ENOENT});
  }
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = domain->pd;
  expect("ibv_alloc_parent_domain of another context's PD", made(ibv_alloc_parent_domain(contexts_[1], &attributes)),
         {EINVAL, ENOENT});
  if (const auto channel = any(channels_)) {
    ibv_context* stranger = contexts_[1 - channel->context];
    ibv_cq* cq = ibv_create_cq(stranger, 4, nullptr, channel->channel, 0);
    expect("ibv_create_cq with another context's channel", made(cq), {EINVAL});
  }
}

void Walker::join_badly() {
  const auto pair = any(pairs_);
  if (!pair) return;
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 239, gid.raw[13] = gid.raw[14] = 1;
  gid.raw[15] = std::uint8_t(200 + dice_.below(50));
  if (pair->type != IBV_QPT_UD) {
    expect("ibv_attach_mcast of a connected QP", ibv_attach_mcast(pair->qp, &gid, 0), {EINVAL});
    return;
  }
  expect("ibv_detach_mcast from no group of its own", ibv_detach_mcast(pair->qp, &gid, 0), {EINVAL});
  expect("ibv_attach_mcast to no group", ibv_attach_mcast(pair->qp, &gid_, 0), {EINVAL});
}

void Walker::ask_nonsense() {
  const auto context = dice_.below(kContexts);
  const auto domain = any_domain(context);
  const auto queue = any_queue(context);
  const auto region = any(regions_);
  if (!domain || !queue) return;
  ibv_qp_init_attr_ex extended{};
  extended.qp_type = IBV_QPT_RC;
  extended.cap = {1, 1, 1, 1, 0};
  extended.send_cq = extended.recv_cq = queue->cq;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = domain->pd;
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = 1;
  path.grh.sgid_index = 1;
  path.grh.dgid = gid_;
  ibv_cq_init_attr_ex completions{};
  completions.cqe = 4;
  ibv_srq_attr attributes{};
  ibv_srq_init_attr_ex shared{};
  shared.attr = {4, 1, 0};
  shared.comp_mask = IBV_SRQ_INIT_ATTR_PD;
  shared.pd = domain->pd;
  switch (dice_.below(15)) {
    case 0: extended.comp_mask |= 1u << dice_.between(16, 31); break;
    case 1:  // With this flag; without it the header's inline function reads the struct.
      extended.pd = nullptr;
      extended.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
      break;
    case 2: extended.send_cq = nullptr; break;
    case 3:
      expect("ibv_reg_mr of bad rights",
             made(ibv_reg_mr(domain->pd, arena_.at(0), 64,
                             dice_.once_in(2) ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_ATOMIC)),
             {EINVAL});
      return;
    case 4:
      expect("ibv_reg_mr of unknown rights", made(ibv_reg_mr(domain->pd, arena_.at(0), 64, 1 << dice_.between(10, 19))),
             {EINVAL});
      return;
    case 5:
      path.port_num = std::uint8_t(dice_.once_in(2) ? 0 : dice_.between(2, 255));
      expect("ibv_create_ah by a bad port", made(ibv_create_ah(domain->pd, &path)), {EINVAL});
      return;
    case 6:
      path.grh.sgid_index = std::uint8_t(dice_.between(20, 255));
      expect("ibv_create_ah by a bad GID", made(ibv_create_ah(domain->pd, &path)), {EINVAL});
      return;
    case 7:
      completions.comp_mask = 1u << dice_.between(8, 31);
      expect("ibv_create_cq_ex of an unknown mask", made(ibv_create_cq_ex(contexts_[context], &completions)),
             {EINVAL, EOPNOTSUPP});
      return;
    case 8:
      completions.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
      completions.parent_domain = domain->protection ? nullptr : domain->pd;
      expect("ibv_create_cq_ex in no parent domain", made(ibv_create_cq_ex(contexts_[context], &completions)),
             {EINVAL});
      return;
    case 9:
      if (const auto victim = any(shared_))
        expect("ibv_modify_srq of an unknown mask", ibv_modify_srq(victim->srq, &attributes, 1 << dice_.between(2, 30)),
               {EINVAL});
      return;
    case 10:
      shared.comp_mask |= 1u << dice_.between(8, 31);
      expect("ibv_create_srq_ex of an unknown mask", made(ibv_create_srq_ex(contexts_[context], &shared)),
             {EINVAL, EOPNOTSUPP});
      return;
    case 11: expect("ibv_alloc_mw of no type", made(ibv_alloc_mw(domain->pd, ibv_mw_type(3))), {EINVAL}); return;
    case 12:
      if (region) {
        const int flags = dice_.once_in(2) ? 0 : 1 << dice_.between(3, 30);
        expect("ibv_rereg_mr of bad flags", ibv_rereg_mr(region->mr, flags, domain->pd, arena_.at(0), 64, 0),
               {flags == 0 && !region->null && !region->device ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT});
      }
      return;
    case 13:
      expect("ibv_reg_mr of more than there is",
             made(ibv_reg_mr(domain->pd, arena_.at(0), ~std::size_t{0} - dice_.below(5000), 0)),
             {EINVAL, ENOMEM, EFAULT});
      return;
    default:
      extended.create_flags = 1u << dice_.between(20, 31);
      extended.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
      break;
  }
  expect("ibv_create_qp_ex of nonsense", made(ibv_create_qp_ex(contexts_[context], &extended)), {EINVAL});
}

}  // namespace rnicsim::testing
