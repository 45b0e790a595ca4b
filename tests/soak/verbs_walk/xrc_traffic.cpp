// SPDX-License-Identifier: Apache-2.0
// XRC messages: the shared receive queue that each names, and its completions there.
#include <algorithm>
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

// XRC is drawn more often than its share of all queues.
void Walker::post_extended() {
  std::vector<std::shared_ptr<SharedQueue>> extended;
  for (const auto& shared : shared_)
    if (shared->opening) extended.push_back(shared);
  if (const auto shared = any(extended); shared && dice_.once_in(2))
    return shared->queue->may_overrun && dice_.once_in(4) ? remove(shared) : post_shared(shared);
  std::vector<std::shared_ptr<Pair>> senders;
  for (const auto& pair : pairs_)
    if (pair->type == IBV_QPT_XRC_SEND) senders.push_back(pair);
  const auto pair = any(senders);
  if (!pair || (!pair->runs() && !dice_.once_in(4))) return;
  if (dice_.once_in(30)) return post_receives(pair);
  pair->extended != nullptr&& dice_.once_in(2) ? post_batch(pair) : post_sends(pair);
}

// An SRQ of the peer's domain; sometimes none of that domain.
void Walker::name_queue(const Pair& pair, Request& request) {
  Send& send = request.send;
  std::uint32_t number = kNoSuchQueue + dice_.below(kNoSuchQueue);
  send.naming = pair.peer ? Remote::bad : Remote::unknown;
  if (pair.peer) {
    const auto at = town_.walkers[pair.peer->walker]->host();
    std::vector<std::shared_ptr<SharedQueue>> right, wrong;
    for (const Walker* walker : town_.walkers) {
      if (walker->host() != at) continue;
      for (const auto& shared : walker->shared()) {
        if (!shared->alive) continue;
        (shared->opening && shared->opening->domain == pair.peer->serves ? right : wrong).push_back(shared);
      }
    }
    auto& gone = town_.xrc.gone[at];
    if (!right.empty() && !dice_.once_in(25)) {
      send.named = dice_.one_of(right);
      send.naming = Remote::good;
    } else if (!wrong.empty() && dice_.once_in(2)) {
      send.named = dice_.one_of(wrong);
    } else if (!gone.empty() && dice_.once_in(2)) {
      number = dice_.one_of(gone);
      send.naming = Remote::unknown;  // the number may be in use again
    }
  }
  if (send.named) number = send.named->number;
  request.wr.qp_type.xrc.remote_srqn = number;
  town_.xrc.messages[send.id] = {.srqn = number, .receiver = pair.peer ? pair.peer->number : 0};
}

// True: the number's validity was `how` when the send was posted, and the named SRQ still exists.
bool Walker::names(const Send& send, Remote how) { return send.naming == how && (!send.named || send.named->alive); }

void Walker::complete_extended(const Queue& queue, SharedQueue& shared, const ibv_wc& wc) {
  ++extended_;
  const Receive receive = shared.posted.extract(wc.wr_id).mapped();
  give_back(receive);
  if (shared.queue.get() != &queue) return fail("a receive of XRC completes in another CQ");
  if (queue.may_overrun) {
    shared.exact = false;
    return;
  }
  if (!shared.opening->domain->receivers.contains(wc.qp_num))
    return fail("a receive of XRC by QP " + std::to_string(wc.qp_num) + ", which never received for its domain");
  switch (wc.status) {
    case IBV_WC_SUCCESS: return check_message(shared, wc, check_bytes(receive, wc, 0, false));
    case IBV_WC_LOC_PROT_ERR:
      if (receive.legal && receive.region->intact) fail("a receive whose memory is good can't end with LOC_PROT_ERR");
      return;
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_REM_INV_REQ_ERR: return;
    default: fail("a receive of XRC can't end with status " + std::to_string(wc.status));
  }
}

// The message must arrive at the SRQ that it named.
void Walker::check_message(const SharedQueue& shared, const ibv_wc& wc, std::optional<std::uint64_t> id) {
  if (wc.src_qp != 0) return fail("a receive of XRC with a source QP");
  const auto came = [&](std::uint64_t message) {
    const auto found = town_.xrc.messages.find(message);
    return found != town_.xrc.messages.end() && found->second.srqn == shared.number &&
           found->second.receiver == wc.qp_num;
  };
  if (id && !came(*id)) return fail("a message came to a queue that it does not name, or by another QP");
  if (!(wc.wc_flags & IBV_WC_WITH_IMM)) return;
  const std::uint64_t counter = __builtin_bswap32(wc.imm_data) | kSendMark;
  const auto sent = [&](const Walker* walker) { return came(std::uint64_t(walker->index()) << 48 | counter); };
  if (std::ranges::none_of(town_.walkers, sent)) fail("immediate data came to a queue that it was not sent to");
}

// Events of receivers with a shared receive queue.
void Walker::check_shared_event(const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_SRQ_ERR) {
    const auto found = std::ranges::find(shared_, event.element.srq, &SharedQueue::srq);
    if (!(*found)->queue || !(*found)->queue->may_overrun) fail("IBV_EVENT_SRQ_ERR though its CQ had room");
    return;
  }
  const bool fatal = event.event_type == IBV_EVENT_QP_FATAL || event.event_type == IBV_EVENT_QP_REQ_ERR ||
                     event.event_type == IBV_EVENT_QP_ACCESS_ERR;
  const bool last = event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
  if (!fatal && !last) return;
  const auto receiver = std::ranges::find(receivers_, event.element.qp, &XrcReceiver::qp);
  if (receiver != receivers_.end()) {
    (*receiver)->pair->failed = true;
  } else if (last && event.element.qp->srq == nullptr) {
    fail("IBV_EVENT_QP_LAST_WQE_REACHED of a QP without a shared receive queue");
  }
}

}  // namespace rnicsim::testing
