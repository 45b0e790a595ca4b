// SPDX-License-Identifier: Apache-2.0
// Memory windows: allocated by commands to the kernel, bound by work requests.
#include <memory>

#include "model/abi/device.h"
#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

constexpr unsigned kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;

int create(ibv_pd* pd, ibv_mw_type type, std::unique_ptr<ibv_mw>& made) {
  if (!Context::of(pd->context).has_feature(abi::feature::kWindows)) return EOPNOTSUPP;
  auto mw = std::make_unique<ibv_mw>();
  Command<ib_uverbs_alloc_mw> command;
  ib_uverbs_alloc_mw_resp answer{};
  if (const int error = ibv_cmd_alloc_mw(pd, type, mw.get(), &command, sizeof command, &answer, sizeof answer))
    return error;
  made = std::move(mw);
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

int check(const Qp& qp, const ibv_mw& mw, const ibv_mw_bind_info& info) {
  if (!qp.does(IBV_QP_EX_WITH_BIND_MW) || mw.type != IBV_MW_TYPE_1) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  if ((info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0 || !may_have(info.mw_access_flags)) return EINVAL;
  if (info.mr != nullptr && info.mr->pd != mw.pd) return EPERM;
  return may_post_send(qp.qp.state) ? 0 : EINVAL;
}

// Called with send_lock held.
int post(Qp& qp, ibv_mw& mw, const ibv_mw_bind& bind) {
  if (qp.send->full()) return ENOMEM;
  const std::uint32_t rkey = ibv_inc_rkey(mw.rkey);
  qp.builder.begin(abi::SendOpcode::bind_window, control_flags(qp, bind.send_flags));
  qp.builder.bind(segment_of(mw, rkey, bind.bind_info));
  qp.send->post(qp.builder, bind.wr_id);
  mw.rkey = rkey;
  return 0;
}

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  std::unique_ptr<ibv_mw> mw;
  return guarded([&] { return create(pd, type, mw); }) == 0 ? mw.release() : nullptr;
}

int dealloc_mw(ibv_mw* mw) {
  const int error = ibv_cmd_dealloc_mw(mw);
  if (error == 0) delete mw;
  return error;
}

int bind_mw(ibv_qp* handle, ibv_mw* mw, ibv_mw_bind* bind) {
  Qp& qp = Qp::of(handle);
  return guarded([&] {
    if (const int error = check(qp, *mw, bind->bind_info)) return error;
    if (!qp.send) return ENOMEM;
    qp.send_lock.lock();
    const int error = post(qp, *mw, *bind);
    finish_sending(qp);
    return error;
  });
}

int add_binding(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, provider::WqeBuilder& wqe) {
  if (mw == nullptr || mw->type != IBV_MW_TYPE_2 || !may_have(info.mw_access_flags)) return EINVAL;
  wqe.bind(segment_of(*mw, rkey, info));
  return 0;
}

void take_rkey(ibv_mw& mw, std::uint32_t rkey) { mw.rkey = rkey_of(mw, rkey); }

}  // namespace rnicsim::linux_provider
