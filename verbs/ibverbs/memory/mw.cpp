// SPDX-License-Identifier: Apache-2.0
// Memory windows: created and destroyed by commands, bound by work requests.
#include <infiniband/verbs.h>

#include <memory>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr unsigned kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;

int create_mw(ibv_pd* pd, ibv_mw_type type, ibv_mw*& created) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  if (!context.has_feature(abi::feature::kWindows)) return EOPNOTSUPP;
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return EINVAL;
  auto mw = std::make_unique<Mw>();
  abi::Mpt mpt;
  mpt.key = Device::of(context.context.device).take_tag();
  mpt.pd = pd->handle;
  mpt.kind = type == IBV_MW_TYPE_1 ? abi::MptKind::window1 : abi::MptKind::window2;
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_mpt(0, mpt), result)) return error;
  mw->context = pd->context;
  mw->pd = pd;
  mw->handle = result.object;
  mw->rkey = mw->handle << 8 | mpt.key;
  mw->type = type;
  created = mw.get();
  context.mws.add(mw->handle, std::move(mw));
  return 0;
}

// The index belongs to the window; the caller chooses the tag, the low 8 bits.
std::uint32_t rkey_of(const ibv_mw& mw, std::uint32_t rkey) { return (mw.rkey & ~0xffu) | (rkey & 0xff); }

abi::BindSegment segment_of(const ibv_mw& mw, std::uint32_t rkey, const ibv_mw_bind_info& info) {
  abi::BindSegment segment;
  segment.window = mw.rkey;
  segment.rkey = rkey_of(mw, rkey);
  segment.region = info.mr != nullptr ? info.mr->lkey : 0;
  segment.access_flags = info.mw_access_flags & kWindowAccess;
  segment.address = info.addr;
  segment.length = info.length;
  return segment;
}

// Programs often set IBV_ACCESS_LOCAL_WRITE as well, which has no effect on a window.
bool may_have(unsigned access) { return (access & ~(kWindowAccess | IBV_ACCESS_LOCAL_WRITE)) == 0; }

int check_bind(const Qp& qp, ibv_mw* mw, const ibv_mw_bind_info& info) {
  if (!qp.does(IBV_QP_EX_WITH_BIND_MW)) return EINVAL;
  if (mw->type != IBV_MW_TYPE_1) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  if ((info.mw_access_flags & IBV_ACCESS_ZERO_BASED) || !may_have(info.mw_access_flags)) return EINVAL;
  if (info.mr != nullptr && info.mr->pd != mw->pd) return EPERM;
  return may_post_send(qp.qp_base.state) ? 0 : EINVAL;
}

// Called with send_lock held.
int post_bind(Qp& qp, ibv_mw& mw, const ibv_mw_bind& bind) {
  if (qp.send->full()) return ENOMEM;
  const std::uint32_t rkey = ibv_inc_rkey(mw.rkey);
  qp.builder.begin(abi::SendOpcode::bind_window, control_flags(qp, bind.send_flags));
  qp.builder.bind(segment_of(mw, rkey, bind.bind_info));
  put_send(qp, bind.wr_id);
  ring_send(qp);
  mw.rkey = rkey;
  return 0;
}

}  // namespace

int release_mw(Mw& mw) {
  return Context::of(mw.context).execute(provider::header(abi::CommandOpcode::destroy_mpt, mw.handle));
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return guarded_object<ibv_mw>([&](ibv_mw*& mw) { return create_mw(pd, type, mw); });
}

int dealloc_mw(ibv_mw* mw) {
  return guarded([&] {
    Context& context = Context::of(mw->context);
    if (!context.mws.holds(mw->handle, &Mw::of(mw))) return ENOENT;
    if (const int error = release_mw(Mw::of(mw))) return error;
    context.mws.take(mw->handle);
    return 0;
  });
}

int bind_mw(ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind) {
  return guarded([&] {
    Qp& qp = Qp::of(handle);
    if (const int error = check_bind(qp, mw, bind->bind_info)) return error;
    if (!qp.send) return ENOMEM;
    qp.send_lock.lock(qp.owner().port);
    const int error = post_bind(qp, *mw, *bind);
    release_send(qp);
    return error;
  });
}

int add_binding(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, provider::WqeBuilder& wqe) {
  if (mw == nullptr || mw->type != IBV_MW_TYPE_2 || !may_have(info.mw_access_flags)) return EINVAL;
  wqe.bind(segment_of(*mw, rkey, info));
  return 0;
}

void take_rkey(ibv_mw& mw, std::uint32_t rkey) { mw.rkey = rkey_of(mw, rkey); }

}  // namespace rnicsim::verbs
