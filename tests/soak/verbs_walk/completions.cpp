// SPDX-License-Identifier: Apache-2.0
// Completions: each belongs to one work request, in the order of its queue, with a possible status, and the bytes have
// arrived.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/base/kernel.h"
#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::uint32_t kGrh = 40;

std::optional<ibv_wc_opcode> completed_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV: return IBV_WC_SEND;
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV: return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW: return IBV_WC_BIND_MW;
    case IBV_WR_TSO: return IBV_WC_TSO;
    default: return std::nullopt;
  }
}

}  // namespace

void Walker::pass(std::int64_t nanoseconds) {
  process_->port().settle();
  sleep_until(now() + Duration{nanoseconds * 1000});
}

void Walker::look() {
  check_slots();
  if (const auto queue = any(queues_); queue && !dice_.once_in(8)) return poll(queue);
  take_events();
}

void Walker::poll(const std::shared_ptr<Queue>& queue) {
  if (queue->channel && dice_.once_in(4)) {
    ++queue->arms;
    expect("ibv_req_notify_cq", ibv_req_notify_cq(queue->cq, int(dice_.below(2))), {0});
  }
  if (queue->extended != nullptr && dice_.once_in(2)) return poll_extended(*queue);
  std::array<ibv_wc, 8> completions;
  const int wanted = int(dice_.between(1, 8));
  const int count = ibv_poll_cq(queue->cq, wanted, completions.data());
  if (count < 0 || count > wanted)
    return fail("ibv_poll_cq gave " + std::to_string(count) + " of " + std::to_string(wanted));
  for (int i = 0; i < count && !town_.broken; ++i) complete(*queue, completions[std::size_t(i)]);
}

void Walker::poll_extended(Queue& queue) {
  ibv_poll_cq_attr attributes{};
  int answer = ibv_start_poll(queue.extended, &attributes);
  if (answer != 0) {
    expect("ibv_start_poll", answer, {ENOENT});
    return;
  }
  std::vector<std::pair<ibv_wc, std::uint32_t>> completions;  // with their flow tags
  for (const auto most = dice_.between(1, 4); answer == 0; answer = ibv_next_poll(queue.extended)) {
    ibv_wc wc{};
    wc.wr_id = queue.extended->wr_id;
    wc.status = queue.extended->status;
    wc.qp_num = ibv_wc_read_qp_num(queue.extended);
    if (wc.status == IBV_WC_SUCCESS) {
      wc.opcode = ibv_wc_read_opcode(queue.extended);
      wc.byte_len = ibv_wc_read_byte_len(queue.extended);
      wc.wc_flags = ibv_wc_read_wc_flags(queue.extended);
      if (wc.wc_flags & IBV_WC_WITH_IMM) wc.imm_data = ibv_wc_read_imm_data(queue.extended);
    }
    completions.emplace_back(wc, wc.status == IBV_WC_SUCCESS ? ibv_wc_read_flow_tag(queue.extended) : 0);
    if (completions.size() == most) break;
  }
  ibv_end_poll(queue.extended);
  for (const auto& [wc, tag] : completions)
    if (!town_.broken) complete(queue, wc, tag);
}

void Walker::take_events() {
  ibv_async_event event;
  for (std::size_t c = 0; c < kContexts; ++c)
    while (ibv_get_async_event(contexts_[c], &event) == 0) {
      const auto concerns = [&](const auto& objects, auto* object, auto member) {
        return std::ranges::any_of(objects, [&](const auto& known) { return (*known).*member == object; });
      };
      bool known = true;
      switch (event.event_type) {
        case IBV_EVENT_CQ_ERR: known = concerns(queues_, event.element.cq, &Queue::cq); break;
        case IBV_EVENT_WQ_FATAL: known = concerns(work_queues_, event.element.wq, &Pair::wq); break;
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED: known = concerns(shared_, event.element.srq, &SharedQueue::srq); break;
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_COMM_EST:
        case IBV_EVENT_SQ_DRAINED:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
          known =
              concerns(pairs_, event.element.qp, &Pair::qp) || concerns(receivers_, event.element.qp, &XrcReceiver::qp);
          break;
        default: fail("event " + std::to_string(event.event_type));
      }
      if (!known) return fail("event " + std::to_string(event.event_type) + " of an object that is none of ours");
      if (event.event_type == IBV_EVENT_CQ_ERR)
        for (const auto& queue : queues_)
          if (queue->cq == event.element.cq && !queue->may_overrun) fail("IBV_EVENT_CQ_ERR though there was room");
      check_shared_event(event);
      ibv_ack_async_event(&event);
    }
  for (const auto& channel : channels_) {
    ibv_cq* cq = nullptr;
    void* owner = nullptr;
    while (ibv_get_cq_event(channel->channel, &cq, &owner) == 0) {
      const auto queue = std::ranges::find(queues_, cq, &Queue::cq);
      if (queue == queues_.end() || (*queue)->channel != channel)
        return fail("an event of a CQ that is none of the channel's");
      if ((*queue)->arms == 0) return fail("an event of a CQ that was not armed");
      --(*queue)->arms;
      ibv_ack_cq_events(cq, 1);
    }
  }
}

std::shared_ptr<Pair> Walker::pair_of(std::uint32_t number) const {
  for (const auto* known : {&pairs_, &work_queues_})
    if (const auto found = std::ranges::find(*known, number, &Pair::number); found != known->end()) return *found;
  return nullptr;
}

void Walker::complete(Queue& queue, const ibv_wc& wc, std::optional<std::uint32_t> tag) {
  ++completions_;
  const auto takes = [&](const auto& shared) { return shared->opening && shared->posted.contains(wc.wr_id); };
  if (const auto shared = std::ranges::find_if(shared_, takes); shared != shared_.end())
    return complete_extended(queue, **shared, wc);
  const auto found = pair_of(wc.qp_num);
  const bool sent = wc.wr_id & kSendMark;
  if (!found) return fail("a completion of QP " + std::to_string(wc.qp_num) + ", which is no more");
  Pair& pair = *found;
  if ((sent ? pair.send_queue : pair.receive_queue).get() != &queue) return fail("a completion in another CQ");
  if (queue.may_overrun) return complete_vaguely(pair, wc);
  if (sent)
    complete_send(pair, wc);
  else
    complete_receive(pair, wc, tag);
}

// The CQ was too small, and completions were lost.
void Walker::complete_vaguely(Pair& pair, const ibv_wc& wc) {
  if (const auto send = std::ranges::find(pair.sends, wc.wr_id, &Send::id); send != pair.sends.end()) {
    for (auto done = pair.sends.begin(); done != send + 1; ++done) give_back(*done);
    pair.sends.erase(pair.sends.begin(), send + 1);
  }
  if (const auto receive = std::ranges::find(pair.receives, wc.wr_id, &Receive::id); receive != pair.receives.end()) {
    for (auto done = pair.receives.begin(); done != receive + 1; ++done) give_back(*done);
    pair.receives.erase(pair.receives.begin(), receive + 1);
  }
  if (!pair.shared) return;
  pair.shared->exact = false;
  if (const auto node = pair.shared->posted.extract(wc.wr_id)) give_back(node.mapped());
}

// Earlier unsignalled sends were successful: this completion covers them.
void Walker::complete_send(Pair& pair, const ibv_wc& wc) {
  auto& sends = pair.sends;
  const auto at = std::ranges::find(sends, wc.wr_id, &Send::id);
  if (at == sends.end())
    return fail("a completion of a send that is not outstanding, status " + std::to_string(wc.status));
  for (auto before = sends.begin(); before != at; ++before) {
    if (before->signalled) return fail("the completion of a signalled send is missing");
    if (pair.failed) return fail("the completion of a flushed send is missing");
  }
  // All sends of a looped list have the same id: this is the first of them.
  const Send send = *at;
  for (auto done = sends.begin(); done != at + 1; ++done) give_back(*done);
  if (wc.status == IBV_WC_SUCCESS) {
    if (!send.signalled) fail("a completion of a send that was not signalled");
    if (pair.failed) fail("a send after one that failed went well");
    check_success(pair, send, wc);
  } else {
    check_status(pair, send, wc.status);
    if (!send.before_recovery) {
      if (!pair.failed) expect_failed(pair, wc);
      pair.failed = true;
    }
  }
  pair.sends.erase(pair.sends.begin(), std::ranges::find(pair.sends, wc.wr_id, &Send::id) + 1);
}

// The device reports ERR, too, and the library knows the state now.
void Walker::expect_failed(Pair& pair, const ibv_wc& wc) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  if (!expect("ibv_query_qp", ibv_query_qp(pair.qp, &attributes, IBV_QP_STATE, &initial), {0})) return;
  pair.told = attributes.qp_state;
  const bool stopped =
      attributes.qp_state == IBV_QPS_ERR || (attributes.qp_state == IBV_QPS_SQE && !is_reliable(pair.type));
  if (!stopped)
    fail("status " + std::to_string(wc.status) + (wc.wr_id & kSendMark ? " of a send" : " of a receive") + " of type " +
         std::to_string(pair.type) + ", but the QP is in state " + std::to_string(attributes.qp_state));
}

// True: the connection is unchanged since the send was posted.
bool Walker::is_sure(const Pair& pair, const Send& send) const {
  return send.firm && is_firm(pair) && send.changes == pair.changes && send.peer_changes == pair.peer->changes;
}

void Walker::check_status(Pair& pair, const Send& send, ibv_wc_status status) {
  const bool rc = is_reliable(pair.type);
  const bool sure = is_sure(pair, send);
  const bool good = sure && send.remote == Remote::good && send.target->intact;
  const bool named = send.naming == Remote::none || (sure && names(send, Remote::good));
  const bool misnamed = sure && names(send, Remote::bad);
  bool may = false;
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR: may = true; break;
    case IBV_WC_LOC_PROT_ERR: may = !send.legal || !send.region->intact; break;
    case IBV_WC_LOC_LEN_ERR: may = send.odd_atomic || send.odd_length; break;
    case IBV_WC_LOC_QP_OP_ERR: may = send.foreign; break;
    case IBV_WC_MW_BIND_ERR: may = send.opcode == IBV_WR_BIND_MW || send.opcode == IBV_WR_LOCAL_INV; break;
    case IBV_WC_REM_ACCESS_ERR: may = rc && send.remote != Remote::none && !good && (!misnamed || !send.granted); break;
    case IBV_WC_REM_INV_REQ_ERR:
      may = rc && (takes_receive(send.opcode) || (send.remote != Remote::none && !good) || !named);
      break;
    case IBV_WC_REM_OP_ERR: may = rc && takes_receive(send.opcode) && !misnamed; break;
    case IBV_WC_RNR_RETRY_EXC_ERR: may = rc && takes_receive(send.opcode) && !misnamed; break;
    case IBV_WC_RETRY_EXC_ERR: may = rc; break;
    default: break;
  }
  if (!may)
    return fail("opcode " + std::to_string(send.opcode) + " of type " + std::to_string(pair.type) +
                " can't end with status " + std::to_string(status));
  if (pair.failed && status != IBV_WC_WR_FLUSH_ERR)
    fail("status " + std::to_string(status) + " after the queue had failed");
}

void Walker::check_success(Pair& pair, const Send& send, const ibv_wc& wc) {
  if (send.foreign) return fail("opcode " + std::to_string(send.opcode) + " went well on another transport");
  if (wc.opcode != completed_opcode(send.opcode)) return fail("a completion of opcode " + std::to_string(wc.opcode));
  const bool sure = is_sure(pair, send);
  if (sure && names(send, Remote::bad))
    return fail("opcode " + std::to_string(send.opcode) + " went well that names none of the domain's queues");
  if (send.odd_length) return fail("a frame went well that is too short for one");
  if (send.length == 0) return;
  if (!send.legal && send.region->intact) return fail("a work request went well whose local memory it has no right to");
  if (send.odd_atomic) return fail("an atomic of another length than 8 went well");
  if (send.slot && (send.opcode == IBV_WR_RDMA_READ || send.counts != 0)) load_slot(*send.slot, send.cell, send.length);
  if (!sure || !is_reliable(pair.type) || send.remote == Remote::none) return;
  const bool kept = !send.target || send.target->intact;
  if (send.remote == Remote::bad && kept)
    return fail("a work request went well whose remote memory it has no right to");
  if (send.remote == Remote::good && send.remote_slot) return check_remote_slot(send);
  if (send.remote != Remote::good || !send.landing) return;
  Walker& town = *town_.walkers[send.owner];
  if (send.opcode == IBV_WR_RDMA_READ && send.region->null) return;
  if (send.opcode == IBV_WR_RDMA_READ && send.region->intact) {
    for (std::uint32_t i = 0; i < send.length; ++i)
      if (*arena_.at(send.cell + i) != town.arena_.guard(*send.landing + i))
        return fail("a READ brought something else");
  } else if (send.opcode != IBV_WR_RDMA_READ && kept) {
    pass(3000);  // acknowledged data may not be in memory yet
    const auto* written = town.arena_.at(*send.landing);
    if (!(send.zeros ? is_zero(written, send.length) : has_pattern(written, send.length, send.id)))
      fail("a WRITE wrote something else");
  }
}

void Walker::complete_receive(Pair& pair, const ibv_wc& wc, std::optional<std::uint32_t> tag) {
  Receive receive;
  if (pair.shared) {
    const auto found = pair.shared->posted.find(wc.wr_id);
    if (found == pair.shared->posted.end()) return fail("a completion of a shared receive that is not outstanding");
    receive = found->second;
    pair.shared->posted.erase(found);
  } else {
    if (pair.receives.empty()) return fail("a completion of a receive that is not outstanding");
    if (pair.receives.empty() || pair.receives.front().id != wc.wr_id)
      return fail("receive " + std::to_string(wc.wr_id) + " of type " + std::to_string(pair.type) + " with status " +
                  std::to_string(wc.status) + " instead of " +
                  std::to_string(pair.receives.empty() ? 0 : pair.receives.front().id));
    receive = pair.receives.front();
    pair.receives.pop_front();
  }
  give_back(receive);
  switch (wc.status) {
    case IBV_WC_SUCCESS:
      return pair.type == IBV_QPT_RAW_PACKET ? check_frame(pair, receive, wc, tag) : check_received(pair, receive, wc);
    case IBV_WC_LOC_PROT_ERR:
      if (receive.legal && receive.region->intact) fail("a receive whose memory is good can't end with LOC_PROT_ERR");
      if (pair.context == kInlineContext) return;  // the library may have found the error; then the QP has not failed
      break;
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_REM_INV_REQ_ERR: break;
    default: fail("a receive can't end with status " + std::to_string(wc.status));
  }
  if (pair.wq != nullptr) pair.told = IBV_QPS_ERR;
  if (pair.told != IBV_QPS_ERR) expect_failed(pair, wc);
}

void Walker::check_received(const Pair& pair, const Receive& receive, const ibv_wc& wc) {
  // The library checks that the region exists, and not the region's rights: the memory belongs to the program.
  const bool may_be_inline = pair.context == kInlineContext && wc.byte_len <= kInlineReceive;
  check_bytes(receive, wc, pair.type == IBV_QPT_UD ? kGrh : 0, may_be_inline);
}

// Returns the id of the received data, if the data show it.
std::optional<std::uint64_t> Walker::check_bytes(const Receive& receive, const ibv_wc& wc, std::uint32_t header,
                                                 bool may_be_inline) {
  const auto failed = [this](const std::string& what) {
    fail(what);
    return std::nullopt;
  };
  const bool written = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
  if (!written && wc.opcode != IBV_WC_RECV) return failed("a receive of opcode " + std::to_string(wc.opcode));
  if (written || !receive.region) return {};
  if (wc.byte_len > receive.length || wc.byte_len < header)
    return failed("a receive of " + std::to_string(wc.byte_len) + " bytes");
  const auto length = wc.byte_len - header;
  if (length == 0 || !receive.region->intact || receive.region->null) return {};
  if (!receive.legal && !may_be_inline) return failed("a receive went well into memory that it has no right to");
  std::uint64_t id = 0;
  if (length < sizeof id) return {};
  if (receive.slot) load_slot(*receive.slot, receive.cell, wc.byte_len);
  const auto* bytes = arena_.at(receive.cell + header);
  std::memcpy(&id, bytes, sizeof id);
  if (id == 0 && is_zero(bytes, length)) return {};  // data from a null region
  if (!has_pattern(bytes, length, id)) return failed("a receive brought something that nobody sent");
  if ((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data != __builtin_bswap32(std::uint32_t(id)))
    return failed("a receive with another message's immediate data");
  return id;
}

// Working QPs complete their requests without further calls.
void Walker::expect_progress() {
  const auto waits = [&](const Pair& pair) {
    const bool ends = !is_reliable(pair.type) || (pair.timeout != 0 && pair.rnr_retry != 7);
    if (pair.told != IBV_QPS_RTS || !ends || pair.send_queue->may_overrun) return false;
    return std::ranges::any_of(pair.sends, &Send::signalled);
  };
  for (int round = 0; round < 400 && !town_.broken; ++round) {
    for (const auto& queue : std::vector(queues_)) poll(queue);
    take_events();
    if (std::ranges::none_of(pairs_, [&](const auto& pair) { return waits(*pair); })) return;
    pass(250'000);
  }
  for (const auto& pair : pairs_) {
    if (town_.broken || !waits(*pair)) continue;
    query(pair);
    if (waits(*pair)) fail("a send of QP " + std::to_string(pair->number) + " never ends");
  }
}

// All outstanding requests complete when their QP is in ERR.
void Walker::flush() {
  for (const auto& pair : pairs_) {
    if (town_.broken) return;
    if (pair->told == IBV_QPS_RESET) continue;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    ++pair->changes;
    if (!expect("ibv_modify_qp to ERR", ibv_modify_qp(pair->qp, &attributes, IBV_QP_STATE), {0})) return;
    pair->told = IBV_QPS_ERR;
  }
  for (const auto& queue : work_queues_) {
    if (town_.broken) return;
    if (queue->told == IBV_QPS_RESET) continue;
    ibv_wq_attr attributes{};
    attributes.attr_mask = IBV_WQ_ATTR_STATE;
    attributes.wq_state = IBV_WQS_ERR;
    if (!expect("ibv_modify_wq to ERR", ibv_modify_wq(queue->wq, &attributes), {0})) return;
    queue->told = IBV_QPS_ERR;
  }
  auto all = pairs_;
  all.insert(all.end(), work_queues_.begin(), work_queues_.end());
  const auto outstanding = [](const Pair& pair) {
    const bool sends = !pair.send_queue->may_overrun && std::ranges::any_of(pair.sends, &Send::signalled);
    return sends || (!pair.receive_queue->may_overrun && !pair.receives.empty());
  };
  for (int round = 0; round < 100 && !town_.broken; ++round) {
    for (const auto& queue : std::vector(queues_)) poll(queue);
    take_events();
    if (std::ranges::none_of(all, [&](const auto& pair) { return outstanding(*pair); })) return;
    pass(20'000);
  }
  for (const auto& pair : all)
    if (!town_.broken && outstanding(*pair))
      fail(std::to_string(pair->sends.size()) + " sends and " + std::to_string(pair->receives.size()) +
           " receives of QP " + std::to_string(pair->number) + " were never flushed");
}

}  // namespace rnicsim::testing
