// SPDX-License-Identifier: Apache-2.0
// Asynchronous events.
#include <infiniband/verbs.h>

#include <optional>
#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

std::optional<ibv_event_type> verbs_event(abi::EventType type) {
  using enum abi::EventType;
  switch (type) {
    case communication_established: return IBV_EVENT_COMM_EST;
    case send_queue_drained: return IBV_EVENT_SQ_DRAINED;
    case last_wqe_reached: return IBV_EVENT_QP_LAST_WQE_REACHED;
    case srq_limit: return IBV_EVENT_SRQ_LIMIT_REACHED;
    case srq_error: return IBV_EVENT_SRQ_ERR;
    case cq_error: return IBV_EVENT_CQ_ERR;
    case qp_fatal: return IBV_EVENT_QP_FATAL;
    case qp_request_error: return IBV_EVENT_QP_REQ_ERR;
    case qp_access_error: return IBV_EVENT_QP_ACCESS_ERR;
    case port_active: return IBV_EVENT_PORT_ACTIVE;
    case port_error: return IBV_EVENT_PORT_ERR;
    case device_fatal: return IBV_EVENT_DEVICE_FATAL;
    case completion: break;  // sent to completion channels
  }
  return std::nullopt;
}

bool concerns_qp(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return true;
    default: return false;
  }
}

// True: the device moved the QP to ERR. There may be no error CQE.
bool ends_in_error(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR;
}

bool concerns_srq(ibv_event_type type) { return type == IBV_EVENT_SRQ_LIMIT_REACHED || type == IBV_EVENT_SRQ_ERR; }

// Programs see a work queue, not the QP behind it.
bool deliver_of_wq(Context& context, std::uint32_t number, ibv_async_event& event) {
  return context.wqs.with(number, [&](Wq& wq) {
    ++wq.events_delivered;
    wq.queue->failed = true;
    event.event_type = IBV_EVENT_WQ_FATAL;
    event.element.wq = &wq;
  });
}

// One record comes for each handle of a domain's QP in this context: the handle with the fewest delivered events gets
// it.
template <class Tell>
bool tell_domain_qp(Context& context, std::uint32_t number, Tell&& tell) {
  const auto place = [](const Qp& qp) { return std::pair(qp.events_delivered, qp.qp_base.handle); };
  const auto behind = [&](const Qp& one, const Qp& other) { return place(one) < place(other); };
  return context.qps.with_best([&](const Qp& qp) { return qp.xrcd != nullptr && qp.number() == number; }, behind, tell);
}

// False: the context has no such object, or no longer.
bool deliver(Context& context, const abi::EventRecord& record, ibv_async_event& event) {
  const auto type = verbs_event(abi::EventType(record.type));
  if (!type) return false;
  if (ends_in_error(*type) && deliver_of_wq(context, record.number, event)) return true;
  event.event_type = *type;
  if (concerns_qp(*type)) {
    const auto tell = [&](Qp& qp) {
      ++qp.events_delivered;
      if (ends_in_error(*type)) qp.failed = true;
      event.element.qp = &qp.qp_base;
    };
    return context.qps.with(record.number, tell) || tell_domain_qp(context, record.number, tell);
  }
  if (concerns_srq(*type)) {
    return context.srqs.with(record.number, [&](Srq& srq) {
      ++srq.events_delivered;
      event.element.srq = &srq;
    });
  }
  if (*type == IBV_EVENT_CQ_ERR) {
    return context.cqs.with(record.number, [&](Cq& cq) {
      ++cq.events_delivered;
      event.element.cq = cq.handle_of();
    });
  }
  event.element.port_num = int(record.number);
  return true;
}

int next_event(Context& context, ibv_async_event& event) {
  context.port.charge(abi::CpuCost::system_call);
  for (;;) {
    abi::EventRecord record;
    if (const int error = context.events.next(record)) return error;
    if (deliver(context, record, event)) return 0;
  }
}

void acknowledge(CpuTime& cpu, pthread_mutex_t& mutex, pthread_cond_t& changed, std::uint32_t& completed) {
  pthread_mutex_lock(&mutex);
  ++completed;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&mutex);
  cpu.acknowledged(&completed);
}

}  // namespace

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return guarded_minus_one([&] { return next_event(Context::of(context), *event); });
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (concerns_qp(event->event_type)) {
    ibv_qp& qp = *event->element.qp;
    acknowledge(Qp::of(&qp).owner().port, qp.mutex, qp.cond, qp.events_completed);
  } else if (concerns_srq(event->event_type)) {
    ibv_srq& srq = *event->element.srq;
    acknowledge(Srq::of(&srq).owner().port, srq.mutex, srq.cond, srq.events_completed);
  } else if (event->event_type == IBV_EVENT_WQ_FATAL) {
    ibv_wq& wq = *event->element.wq;
    acknowledge(Wq::of(&wq).owner().port, wq.mutex, wq.cond, wq.events_completed);
  } else if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq& cq = *event->element.cq;
    acknowledge(Cq::of(&cq).owner().port, cq.mutex, cq.cond, cq.async_events_completed);
  }
}

}  // extern "C"
