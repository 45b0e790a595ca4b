// SPDX-License-Identifier: Apache-2.0
// ibv_modify_qp after the state table of ibv_modify_qp(3), and with invalid changes.
#include <algorithm>
#include <cerrno>
#include <map>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr int kKnown = ((1 << 21) - 1) | IBV_QP_RATE_LIMIT;
// Path migration is not supported: its attributes are refused with either errno.
constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr std::uint32_t kMostRate = 100'000'000;  // kb/s
constexpr int kEither = IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_ALT_PATH;

// Attributes that an XRC end does not need since they belong to the other end: they are accepted and ignored.
int part_of_other(ibv_qp_type type) {
  if (type == IBV_QPT_XRC_SEND) return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  return type == IBV_QPT_XRC_RECV ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0;
}

struct Masks {
  bool legal = false;
  int required = 0;
  int optional = 0;
};

Masks masks_of(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to) {
  const bool ud = type == IBV_QPT_UD, rc = is_reliable(type);
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return {true, 0, 0};
  if (type == IBV_QPT_RAW_PACKET) {
    constexpr std::pair<ibv_qp_state, ibv_qp_state> kOthers[] = {
        {IBV_QPS_INIT, IBV_QPS_INIT}, {IBV_QPS_INIT, IBV_QPS_RTR}, {IBV_QPS_RTS, IBV_QPS_SQD},
        {IBV_QPS_SQD, IBV_QPS_RTS},   {IBV_QPS_SQD, IBV_QPS_SQD},  {IBV_QPS_SQE, IBV_QPS_RTS}};
    if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return {true, IBV_QP_PORT, 0};
    if (to == IBV_QPS_RTS && (from == IBV_QPS_RTR || from == IBV_QPS_RTS)) return {true, 0, IBV_QP_RATE_LIMIT};
    return {std::ranges::find(kOthers, std::pair(from, to)) != std::end(kOthers), 0, 0};
  }
  const int own = ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  const int path = ud ? 0 : IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
  const int running = IBV_QP_CUR_STATE | own | path | (rc ? IBV_QP_MIN_RNR_TIMER : 0);
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return {true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own, 0};
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | own};
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    if (ud) return {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY};
    const int connected = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    return {true, connected | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0), kEither};
  }
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return {true, IBV_QP_SQ_PSN | (rc ? reliable : 0), running};
  }
  if (to == IBV_QPS_RTS && (from == IBV_QPS_RTS || from == IBV_QPS_SQD)) return {true, 0, running};
  if (from == IBV_QPS_SQE && to == IBV_QPS_RTS && !rc) return {true, 0, IBV_QP_CUR_STATE | own | (ud ? 0 : path)};
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) return {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY};
  if (from == IBV_QPS_SQD && to == IBV_QPS_SQD) {
    if (ud) return {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY};
    const int either = kEither | IBV_QP_AV | IBV_QP_PATH_MIG_STATE;
    return {true, 0,
            either | (rc ? IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
                         : 0)};
  }
  return {};
}

bool has_bad_value(const ibv_qp_attr& attributes, int mask) {
  return ((mask & IBV_QP_PORT) && attributes.port_num != 1) ||
         ((mask & IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) ||
         ((mask & IBV_QP_PATH_MTU) && (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096)) ||
         ((mask & IBV_QP_TIMEOUT) && attributes.timeout > 31) ||
         ((mask & IBV_QP_RATE_LIMIT) && attributes.rate_limit > kMostRate) ||
         ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attributes.max_rd_atomic > 16) ||
         ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attributes.max_dest_rd_atomic > 16) ||
         ((mask & IBV_QP_AV) && attributes.ah_attr.grh.sgid_index >= 16) || (mask & IBV_QP_CAP);
}

// The next state of a QP on the way to RTS.
ibv_qp_state next_state(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET: return IBV_QPS_INIT;
    case IBV_QPS_INIT: return IBV_QPS_RTR;
    case IBV_QPS_RTR:
    case IBV_QPS_SQD:
    case IBV_QPS_SQE: return IBV_QPS_RTS;
    default: return IBV_QPS_RESET;
  }
}

}  // namespace

// States that the device may have moved the QP to since the last call.
std::set<ibv_qp_state> Walker::possible_states(const Pair& pair) const {
  std::set<ibv_qp_state> states{pair.told};
  if (pair.told != IBV_QPS_RESET) states.insert(IBV_QPS_ERR);
  if (!is_reliable(pair.type) && (pair.told == IBV_QPS_RTS || pair.told == IBV_QPS_SQD)) states.insert(IBV_QPS_SQE);
  return states;
}

void Walker::outcomes(const Pair& pair, ibv_qp_state from, const Change& change, std::set<int>& allowed) const {
  const auto& attributes = change.attributes;
  const int mask = change.mask & ~part_of_other(pair.type);
  if (mask & ~kKnown) {
    allowed.insert(EOPNOTSUPP);
    return;
  }
  const auto to = mask & IBV_QP_STATE ? attributes.qp_state : from;
  const auto masks = masks_of(pair.type, from, to);
  const int given = mask & ~int(IBV_QP_STATE);
  const int required = masks.required & ~part_of_other(pair.type);
  const bool complete = (given & required) == required;
  const bool surplus = given & ~(masks.required | masks.optional);
  const bool stale = (mask & IBV_QP_CUR_STATE) && attributes.cur_qp_state != from;
  const auto port = mask & IBV_QP_PORT ? attributes.port_num : pair.port;
  const bool astray = (mask & IBV_QP_AV) && attributes.ah_attr.port_num != port;
  if (!masks.legal || !complete || surplus || stale || astray || has_bad_value(attributes, mask))
    allowed.insert(EINVAL);
  else
    allowed.insert(0);
  if (mask & kMigration) allowed.insert({EINVAL, EOPNOTSUPP});
  if (from == IBV_QPS_SQD && to == IBV_QPS_RTS) allowed.insert(EINVAL);  // while the queue drains
}

Walker::Change Walker::change_to(const std::shared_ptr<Pair>& pair, ibv_qp_state from, ibv_qp_state to) {
  Change change;
  const auto masks = masks_of(pair->type, from, to);
  change.mask = IBV_QP_STATE | masks.required;
  if (dice_.once_in(4)) change.mask |= masks.optional & int(dice_.bits()) & ~kMigration;
  if (dice_.once_in(2)) change.mask &= ~part_of_other(pair->type);
  auto& at = change.attributes;
  at.qp_state = to;
  at.cur_qp_state = from;
  at.port_num = 1;
  at.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | (dice_.once_in(6) ? dice_.below(16) : 14u);
  at.qkey = pair->qkey;
  at.path_mtu = IBV_MTU_512;
  at.max_rd_atomic = std::uint8_t(dice_.between(1, 16));
  at.max_dest_rd_atomic = 16;
  at.min_rnr_timer = std::uint8_t(dice_.between(1, 8));
  at.timeout = std::uint8_t(dice_.between(3, 7));
  at.retry_cnt = std::uint8_t(dice_.between(1, 7));
  at.rnr_retry = std::uint8_t(dice_.below(8));
  at.sq_psn = pair->psn;
  // rate limit in kb/s, high enough that sends do not wait for long
  at.rate_limit = dice_.once_in(2) ? 0 : kMostRate / 10;
  at.en_sqd_async_notify = std::uint8_t(dice_.below(2));
  if (pair->peer) {
    at.dest_qp_num = pair->peer->number;
    at.rq_psn = pair->peer->psn;
    at.ah_attr.grh.dgid = town_.walkers[pair->peer->walker]->gid();
  } else {
    at.ah_attr.grh.dgid = gid_;
  }
  at.ah_attr.is_global = 1;
  at.ah_attr.port_num = 1;
  at.ah_attr.grh.sgid_index = 1;
  at.ah_attr.grh.hop_limit = 64;
  return change;
}

void Walker::spoil(Change& change) {
  switch (dice_.below(11)) {
    case 0:
    case 1: change.mask ^= 1 << dice_.below(21); break;
    case 2: change.mask ^= 1 << dice_.between(22, 30); break;
    case 3: change.attributes.qp_state = ibv_qp_state(dice_.below(7)); break;
    case 4: change.attributes.port_num = std::uint8_t(dice_.between(2, 255)); break;
    case 5: change.attributes.path_mtu = ibv_mtu(dice_.once_in(2) ? 0 : dice_.between(6, 7)); break;
    case 6: change.attributes.timeout = std::uint8_t(dice_.between(32, 255)); break;
    case 7: change.attributes.max_rd_atomic = std::uint8_t(dice_.between(17, 255)); break;
    case 8: change.attributes.ah_attr.port_num = std::uint8_t(dice_.between(2, 255)); break;
    case 9: change.attributes.ah_attr.grh.sgid_index = std::uint8_t(dice_.between(16, 255)); break;
    default: change.mask = int(dice_.bits() & 0x1fffff); break;
  }
}

// Prefers a peer that has chosen this QP already, or that no QP has chosen.
void Walker::choose_peer(const std::shared_ptr<Pair>& pair) {
  const auto waits = [&](const Pair& other) { return other.told == IBV_QPS_RESET || other.told == IBV_QPS_INIT; };
  const bool chosen = pair->peer && pair->peer->alive && pair->peer->peer == pair;
  if (chosen && (waits(*pair->peer) || pair->peer->peer_life == pair->life)) return;
  std::vector<std::shared_ptr<Pair>> best, others;
  const auto sort = [&](const std::shared_ptr<Pair>& other) {
    if (!other->alive || other->type != counterpart(pair->type)) return;
    const bool is_free = !other->peer || !other->peer->alive || other->peer->peer != other;
    (is_free && waits(*other) && other != pair ? best : others).push_back(other);
  };
  for (Walker* walker : town_.walkers) std::ranges::for_each(walker->pairs(), sort);
  std::ranges::for_each(town_.xrc.receivers, sort);
  pair->peer = best.empty() ? any(others) : any(best);
  if (pair->peer && !best.empty()) pair->peer->peer = pair;
}

void Walker::move_something() {
  if (dice_.once_in(8)) {
    const auto queue = any(work_queues_);
    const bool runs = queue && queue->told == IBV_QPS_RTR && !dice_.once_in(4);
    if (queue && !runs)
      move_work_queue(queue, queue->told == IBV_QPS_RESET ? IBV_WQS_RDY : ibv_wq_state(dice_.below(3)));
    return;
  }
  if (dice_.once_in(6)) return move_receiver();
  auto pair = any(pairs_);
  if (!pair) return;
  for (int tries = 0; tries < 3 && pair->runs() && !dice_.once_in(3); ++tries) pair = any(pairs_);
  if (pair->vague() && dice_.once_in(4)) return remove(pair);
  dice_.once_in(10) ? join_or_leave() : move(pair);
}

void Walker::move(const std::shared_ptr<Pair>& pair) {
  switch (dice_.below(9)) {
    case 0: return query(pair);
    case 1: {
      constexpr ibv_qp_state kSides[] = {IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPS_INIT};
      const auto to = kSides[dice_.below(5)];
      return modify(pair, change_to(pair, pair->told, to));
    }
    case 2: {
      auto change = change_to(pair, pair->told, next_state(pair->told));
      spoil(change);
      return modify(pair, change);
    }
    case 3:
    case 4: return move_on(pair);
    default:  // all steps to RTS
      for (int steps = 0; steps < 4; ++steps) move_on(pair);
  }
}

// One step toward RTS, where the QP stays unless its connection has ended. Before that the QP waits for its peer.
void Walker::move_on(const std::shared_ptr<Pair>& pair) {
  const bool connected = connects(pair->type);
  const auto& peer = pair->peer;
  const bool serves = pair->told == IBV_QPS_RTR || pair->told == IBV_QPS_RTS;
  const bool stale =
      connected && serves && peer && (!peer->alive || peer->peer != pair || peer->life != pair->peer_life);
  if (!pair->failed && stale && dice_.once_in(3)) return modify(pair, change_to(pair, pair->told, IBV_QPS_RESET));
  if (pair->told == IBV_QPS_RTS && !pair->failed) return;
  const bool early = connected && peer && peer->peer_life != pair->life;
  if (pair->told == IBV_QPS_RTR && early && !pair->failed && !dice_.once_in(8)) return;
  if (pair->failed) query(pair);
  if (connected && pair->told == IBV_QPS_INIT) choose_peer(pair);
  modify(pair, change_to(pair, pair->told, next_state(pair->told)));
}

void Walker::modify(const std::shared_ptr<Pair>& pair, const Change& change) {
  std::set<int> allowed;
  for (const auto from : possible_states(*pair)) outcomes(*pair, from, change, allowed);
  auto attributes = change.attributes;
  const int mask = change.mask;
  // The peer given in the call: another call may change pair->peer meanwhile.
  const auto peer = pair->peer;
  const auto peer_life = peer ? peer->life : 0;
  // The attributes on which the peer's requests depend change at some time within the call.
  const auto before = pair->changes;
  const bool served = pair->told != IBV_QPS_RESET && pair->told != IBV_QPS_INIT;
  pair->changing = served || (mask & IBV_QP_ACCESS_FLAGS);
  if (pair->changing) ++pair->changes;  // a request may arrive before the change, and be retransmitted after it
  const int answer = ibv_modify_qp(pair->qp, &attributes, mask);
  pair->changing = false;
  if (!expect("ibv_modify_qp from " + std::to_string(pair->told) + " to " + std::to_string(attributes.qp_state) +
                  " of type " + std::to_string(pair->type) + " with mask " + std::to_string(mask),
              answer, allowed))
    return;
  if (answer != 0) {
    pair->changes = before;
    return;
  }
  if (mask & IBV_QP_PORT) pair->port = attributes.port_num;
  if (mask & IBV_QP_ACCESS_FLAGS) {
    pair->access = attributes.qp_access_flags;
    ++pair->changes;  // a request drawn within the call used the old attributes
  }
  if (mask & IBV_QP_TIMEOUT) pair->timeout = attributes.timeout;
  if (mask & IBV_QP_RNR_RETRY) pair->rnr_retry = attributes.rnr_retry;
  if (mask & IBV_QP_QKEY) pair->qkey = attributes.qkey;
  if (!(mask & IBV_QP_STATE)) return;
  const bool recovers = attributes.qp_state == IBV_QPS_RTS && possible_states(*pair).contains(IBV_QPS_SQE);
  const bool starts = pair->told == IBV_QPS_RTR && attributes.qp_state == IBV_QPS_RTS;
  if (starts && !(mask & IBV_QP_ACCESS_FLAGS)) pair->changes = before;
  pair->told = attributes.qp_state;
  if (pair->told == IBV_QPS_RESET) return reset(*pair);
  if (pair->told == IBV_QPS_RTR) pair->peer = peer, pair->peer_life = peer_life;
  if (!recovers) return;
  pair->failed = false;
  for (auto& send : pair->sends) send.before_recovery = true;
}

// Device and library discard all work of the QP.
void Walker::reset(Pair& pair) {
  for (const auto& send : pair.sends) give_back(send);
  for (const auto& receive : pair.receives) give_back(receive);
  pair.sends.clear();
  pair.receives.clear();
  if (pair.shared) pair.shared->exact = false;  // the QP's discarded completions had consumed receives
  pair.failed = false;
  ++pair.life;
  ++pair.changes;
  pair.psn = std::uint32_t(dice_.bits()) & 0xffffff;
}

void Walker::query(const std::shared_ptr<Pair>& pair) {
  const auto allowed = possible_states(*pair);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  if (!expect("ibv_query_qp", ibv_query_qp(pair->qp, &attributes, IBV_QP_STATE, &initial), {0})) return;
  if (!allowed.contains(attributes.qp_state))
    fail("ibv_query_qp: state " + std::to_string(attributes.qp_state) + " after " + std::to_string(pair->told));
  if (initial.cap.max_send_wr != pair->cap.max_send_wr || initial.qp_type != pair->type)
    fail("ibv_query_qp tells of another QP");
  pair->told = attributes.qp_state;
}

void Walker::join_or_leave() {
  const auto pair = any(pairs_);
  if (!pair || pair->type != IBV_QPT_UD) return;
  const auto group = std::uint8_t(dice_.below(3));
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 239, gid.raw[13] = gid.raw[14] = 1, gid.raw[15] = group;
  if (pair->groups.contains(group)) {
    if (expect("ibv_detach_mcast", ibv_detach_mcast(pair->qp, &gid, 0), {0})) pair->groups.erase(group);
  } else {
    if (expect("ibv_attach_mcast", ibv_attach_mcast(pair->qp, &gid, 0), {0})) pair->groups.insert(group);
  }
}

}  // namespace rnicsim::testing
