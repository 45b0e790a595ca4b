// SPDX-License-Identifier: Apache-2.0
// XRC domains, and the QPs that receive for them. One process creates such a QP; any process that has the domain open
// may open the QP as well.
#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint32_t kDomainMask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
constexpr std::uint32_t kOpenMask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
// A receiving QP may be open twice in one context, so handles are the library's own numbers.
constexpr std::uint32_t kFirstHandle = 1u << 31;

int open_domain(Context& context, const ibv_xrcd_init_attr& attributes, ibv_xrcd*& opened) {
  if (!context.has_feature(abi::feature::kXrc)) return EOPNOTSUPP;
  if (attributes.comp_mask != kDomainMask) return EINVAL;
  std::uint32_t number = 0;
  if (const int error = context.port.open_xrcd(attributes.fd, attributes.oflags, number)) return error;
  auto xrcd = std::make_unique<Xrcd>();
  xrcd->context = &context.context;
  xrcd->handle = context.next_xrc++;
  xrcd->number = number;
  opened = xrcd.get();
  context.xrcds.add(xrcd->handle, std::move(xrcd));
  return 0;
}

int close_domain(Context& context, Xrcd& xrcd) {
  if (!resolves(context, &xrcd)) return ENOENT;
  const auto uses = [&](const auto& object) { return object.xrcd == &xrcd; };
  if (context.srqs.any_of(uses) || context.qps.any_of(uses)) return EBUSY;
  if (const int error = context.port.close_xrcd(xrcd.number)) return error;
  context.xrcds.take(xrcd.handle);
  return 0;
}

void join_domain(Context& context, Qp& qp, ibv_xrcd* xrcd, std::uint32_t number) {
  qp.xrcd = &Xrcd::of(xrcd);
  qp.qp_base.qp_num = number;
  qp.qp_base.handle = kFirstHandle | context.next_xrc++;
}

int query_state(Context& context, Qp& qp) {
  abi::QueryQp answer;
  const auto query = provider::header(abi::CommandOpcode::query_qp, qp.number());
  if (const int error = context.execute(query, answer)) return error;
  qp.qp_base.state = ibv_qp_state(answer.context.state);
  qp.port_number = answer.context.port;
  return 0;
}

int open_receiver(Context& context, const ibv_qp_open_attr& attributes, ibv_qp*& opened) {
  const std::uint32_t mask = attributes.comp_mask;
  if (!context.has_feature(abi::feature::kXrc)) return EOPNOTSUPP;
  if (mask >= IBV_QP_OPEN_ATTR_RESERVED || (mask & kOpenMask) != kOpenMask) return EINVAL;
  if (attributes.qp_type != IBV_QPT_XRC_RECV || !resolves(context, attributes.xrcd)) return EINVAL;
  auto qp = std::make_unique<Qp>();
  ibv_qp& base = qp->qp_base;
  base.context = &context.context;
  if (mask & IBV_QP_OPEN_ATTR_CONTEXT) base.qp_context = attributes.qp_context;
  base.qp_type = IBV_QPT_XRC_RECV;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  fill_work_request_api(*qp, 0);
  const auto number = Xrcd::of(attributes.xrcd).number;
  if (const int error = context.port.open_qp(number, attributes.qp_num, context.events.number())) return error;
  join_domain(context, *qp, attributes.xrcd, attributes.qp_num);
  if (const int error = query_state(context, *qp)) {
    release_qp(*qp);
    return error;
  }
  opened = &base;
  context.qps.add(base.handle, std::move(qp));
  return 0;
}

}  // namespace

bool resolves(const Context& context, ibv_xrcd* xrcd) {
  return xrcd != nullptr && xrcd->context == &context.context &&
         context.xrcds.holds(Xrcd::of(xrcd).handle, &Xrcd::of(xrcd));
}

int check_domain_qp(Context& context, const ibv_qp_init_attr_ex& attributes) {
  if (!(attributes.comp_mask & IBV_QP_INIT_ATTR_XRCD) || !resolves(context, attributes.xrcd)) return EINVAL;
  if (attributes.srq == nullptr) return 0;
  return context.srqs.holds(attributes.srq->handle, &Srq::of(attributes.srq)) ? 0 : ENOENT;
}

int make_domain_qp(Context& context, Qp& qp, ibv_xrcd* xrcd) {
  abi::Qpc qpc;
  qpc.transport = abi::Transport::xrc_recv;
  qpc.xrcd = Xrcd::of(xrcd).number;
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_qp(0, qpc), result)) return error;
  join_domain(context, qp, xrcd, result.object);
  return 0;
}

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attributes) {
  return guarded_object<ibv_xrcd>(
      [&](ibv_xrcd*& opened) { return open_domain(Context::of(context), *attributes, opened); });
}

int close_xrcd(ibv_xrcd* xrcd) {
  return guarded([&] { return close_domain(Context::of(xrcd->context), Xrcd::of(xrcd)); });
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attributes) {
  return guarded_object<ibv_qp>(
      [&](ibv_qp*& opened) { return open_receiver(Context::of(context), *attributes, opened); });
}

}  // namespace rnicsim::verbs
