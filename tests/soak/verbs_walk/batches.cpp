// SPDX-License-Identifier: Apache-2.0
// Sends with ibv_wr_*, whose batches are posted completely or not at all, and binds of type 1 windows.
#include <algorithm>
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

bool has_builder(ibv_wr_opcode opcode) { return opcode <= IBV_WR_TSO; }

bool has_setter(ibv_wr_opcode opcode) { return opcode != IBV_WR_LOCAL_INV && opcode != IBV_WR_BIND_MW; }

void begin(ibv_qp_ex* qp, const ibv_send_wr& wr) {
  qp->wr_id = wr.wr_id;
  qp->wr_flags = wr.send_flags;
  switch (wr.opcode) {
    case IBV_WR_SEND: return ibv_wr_send(qp);
    case IBV_WR_SEND_WITH_IMM: return ibv_wr_send_imm(qp, wr.imm_data);
    case IBV_WR_SEND_WITH_INV: return ibv_wr_send_inv(qp, wr.invalidate_rkey);
    case IBV_WR_RDMA_WRITE: return ibv_wr_rdma_write(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return ibv_wr_rdma_write_imm(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, wr.imm_data);
    case IBV_WR_RDMA_READ: return ibv_wr_rdma_read(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return ibv_wr_atomic_cmp_swp(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add,
                                   wr.wr.atomic.swap);
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return ibv_wr_atomic_fetch_add(qp, wr.wr.atomic.rkey, wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add);
    case IBV_WR_TSO: return ibv_wr_send_tso(qp, wr.tso.hdr, wr.tso.hdr_sz, wr.tso.mss);
    case IBV_WR_LOCAL_INV: return ibv_wr_local_inv(qp, wr.invalidate_rkey);
    case IBV_WR_BIND_MW: return ibv_wr_bind_mw(qp, wr.bind_mw.mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
    default: return;
  }
}

}  // namespace

// Draws requests that ibv_wr_* can express: without SGE list, or with inline pieces, no length can be wrong.
bool Walker::draw_batch(const std::shared_ptr<Pair>& pair, std::vector<std::unique_ptr<Request>>& requests) {
  const std::size_t wanted = dice_.between(1, 4);
  while (requests.size() < wanted) {
    auto request = std::make_unique<Request>();
    if (!draw_send(pair, *request)) break;
    const bool nonsense = request->wr.num_sge < 0 || std::uint32_t(request->wr.num_sge) > pair->cap.max_send_sge;
    const bool takes_list = has_setter(request->wr.opcode) && !request->inlined;
    if (!has_builder(request->wr.opcode) || (nonsense && !takes_list)) {
      give_back(request->send);
      break;
    }
    if (request->send.naming != Remote::none && dice_.once_in(30)) {
      request->namings = dice_.once_in(2) ? 0 : 2;
      request->error = EINVAL;
    }
    requests.push_back(std::move(request));
  }
  return !requests.empty();
}

void Walker::build(const Pair& pair, const Request& request) {
  const ibv_send_wr& wr = request.wr;
  begin(pair.extended, wr);
  if (!has_setter(wr.opcode)) return;
  if (pair.type == IBV_QPT_UD)
    ibv_wr_set_ud_addr(pair.extended, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
  if (pair.type == IBV_QPT_XRC_SEND)
    for (int i = 0; i < request.namings; ++i) ibv_wr_set_xrc_srqn(pair.extended, wr.qp_type.xrc.remote_srqn);
  if (!request.inlined) return ibv_wr_set_sge_list(pair.extended, std::size_t(wr.num_sge), wr.sg_list);
  std::array<ibv_data_buf, 4> pieces;
  std::transform(wr.sg_list, wr.sg_list + wr.num_sge, pieces.begin(), [](const ibv_sge& sge) {
    return ibv_data_buf{reinterpret_cast<void*>(sge.addr), sge.length};
  });
  ibv_wr_set_inline_data_list(pair.extended, std::size_t(wr.num_sge), pieces.data());
}

void Walker::post_batch(const std::shared_ptr<Pair>& pair) {
  std::vector<std::unique_ptr<Request>> requests;
  if (!draw_batch(pair, requests)) return;
  int error = may_post(pair->told) ? 0 : EINVAL;
  std::size_t outstanding = pair->sends.size();
  for (const auto& request : requests) {
    if (error != 0) break;
    const bool refused = !pair->does(request->wr.opcode);
    error = refused ? EOPNOTSUPP : outstanding++ >= pair->cap.max_send_wr ? ENOMEM : request->error;
  }
  const bool aborts = dice_.once_in(10);
  for (const auto& request : requests) {
    if (error == 0 && !aborts)
      pair->sends.push_back(request->send);
    else
      give_back(request->send);
  }
  note_room();
  ibv_wr_start(pair->extended);
  for (const auto& request : requests) build(*pair, *request);
  if (aborts) return ibv_wr_abort(pair->extended);
  const int answer = ibv_wr_complete(pair->extended);
  if (pair->vague()) return;
  expect("ibv_wr_complete of " + std::to_string(requests.size()) + " from opcode " +
             std::to_string(requests[0]->wr.opcode) + " on, in state " + std::to_string(pair->told),
         answer, {error});
}

void Walker::bind_window(const std::shared_ptr<Pair>& pair) {
  const auto window = any(windows_);
  const auto cell = arena_.take();
  const auto region = cell ? draw_region(*pair->domain, *cell) : nullptr;
  if (!window || !region) {
    if (cell) arena_.give_back(*cell);
    return;
  }
  ibv_mw_bind bind{.wr_id = ++next_id_ | kSendMark,
                   .send_flags = dice_.once_in(2) ? unsigned(IBV_SEND_SIGNALED) : 0u,
                   .bind_info = {}};
  const bool closes = dice_.once_in(5);
  if (!closes) {
    const auto start = region->access & IBV_ACCESS_ZERO_BASED ? 0 : arena_.address(region->offset);
    bind.bind_info = {region->mr, start, dice_.between(0, region->length + (dice_.once_in(20) ? 1 : 0)),
                      unsigned(dice_.below(8) << 1)};
  }
  int error = 0;
  if (window->mw->type != IBV_MW_TYPE_1)
    error = EINVAL;
  else if (!closes && region->mr->pd != window->mw->pd)
    error = EPERM;
  else if (!is_of(pair->type, IBV_WR_BIND_MW))
    error = EINVAL;
  else if (!may_post(pair->told))
    error = EINVAL;
  else if (pair->sends.size() >= pair->cap.max_send_wr)
    error = ENOMEM;
  if (error == 0) {
    pair->sends.push_back({.id = bind.wr_id,
                           .signalled = pair->signals_all || bind.send_flags != 0,
                           .opcode = IBV_WR_BIND_MW,
                           .cell = *cell,
                           .region = region});
    if (!closes) region->may_be_bound = true;
  } else {
    arena_.give_back(*cell);
  }
  note_room();
  const int answer = ibv_bind_mw(pair->qp, window->mw, &bind);
  if (!pair->vague()) expect("ibv_bind_mw in state " + std::to_string(pair->told), answer, {error});
}

}  // namespace rnicsim::testing
