// SPDX-License-Identifier: Apache-2.0
// XRC objects: domains, their shared receive queues, and their receive QPs. Each process that has the domain open may
// have handles of the receive QPs.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::size_t kMostOpenings = 4, kMostReceivers = 5, kMostShared = 5;
constexpr std::uint32_t kXrcQueueMask =
    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

ibv_xrcd* open_file(ibv_context* context, int fd, int flags, std::uint32_t more = 0) {
  ibv_xrcd_init_attr wanted{};
  wanted.comp_mask = (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS) ^ more;
  wanted.fd = fd;
  wanted.oflags = flags;
  return ibv_open_xrcd(context, &wanted);
}

ibv_srq_init_attr_ex queue_of_domain(const XrcOpening& opening, const Domain& domain, const Queue& queue) {
  ibv_srq_init_attr_ex wanted{};
  wanted.attr = {4, 1, 0};
  wanted.comp_mask = kXrcQueueMask;
  wanted.srq_type = IBV_SRQT_XRC;
  wanted.pd = domain.pd;
  wanted.xrcd = opening.xrcd;
  wanted.cq = queue.cq;
  return wanted;
}

ibv_qp_open_attr receiver_of_domain(const XrcOpening& opening, std::uint32_t number) {
  ibv_qp_open_attr wanted{};
  wanted.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  wanted.qp_num = number;
  wanted.xrcd = opening.xrcd;
  wanted.qp_type = IBV_QPT_XRC_RECV;
  return wanted;
}

}  // namespace

// Opens the domain that the host's processes share, and creates the objects that a sender needs.
void Walker::make_extended_objects(std::uint32_t context) {
  open_domain(context, 0, O_CREAT);
  if (openings_.empty() || openings_.back()->context != context) return;
  make_extended_shared(openings_.back());
  make_receiver(openings_.back());
  make_pair(context, IBV_QPT_XRC_SEND);
}

void Walker::make_of_extended() {
  const auto opening = any(openings_);
  const auto extended = std::ranges::count_if(shared_, [](const auto& shared) { return bool(shared->opening); });
  switch (dice_.below(5)) {
    case 0: {
      constexpr int kFlags[] = {0, O_CREAT, O_CREAT, O_CREAT, O_CREAT | O_EXCL, O_EXCL};
      const auto file = dice_.once_in(8) ? std::nullopt : std::optional(dice_.once_in(4) ? 1u : 0u);
      if (openings_.size() < kMostOpenings) open_domain(dice_.below(kContexts), file, kFlags[dice_.below(6)]);
      return;
    }
    case 1:
    case 2: return opening && std::size_t(extended) < kMostShared ? make_extended_shared(opening) : change_shared();
    case 3: return opening && receivers_.size() < kMostReceivers ? make_receiver(opening) : void();
    default: return opening && receivers_.size() < kMostReceivers ? open_receiver(opening) : void();
  }
}

void Walker::destroy_of_extended() {
  switch (dice_.below(4)) {
    case 0:
      if (const auto opening = any(openings_)) remove(opening);
      return;
    case 1:
      if (const auto receiver = any(receivers_)) remove(receiver);
      return;
    case 2:
      if (const auto shared = any(shared_); shared && shared->opening) remove(shared);
      return;
    default:
      if (const auto pair = any(pairs_); pair && pair->type == IBV_QPT_XRC_SEND) remove(pair);
  }
}

void Walker::open_domain(std::uint32_t context, std::optional<std::uint32_t> file, int flags) {
  auto opening = std::make_shared<XrcOpening>();
  opening->context = context;
  opening->file = file;
  XrcFile nobodys;
  XrcFile& known = file ? town_.xrc.files[host()][*file] : nobodys;
  if (!known.domain || (known.domain->opens == 0 && known.calls == 0)) known.domain = std::make_shared<XrcDomain>();
  opening->domain = known.domain;
  const bool exists = known.domain->opens != 0;
  const int answer = file && exists && (flags & O_EXCL) ? EINVAL : file && !exists && !(flags & O_CREAT) ? EAGAIN : 0;
  bool alone = known.calls++ == 0;
  const auto changes = ++known.changes;
  opening->xrcd = open_file(contexts_[context], file ? town_.xrc.descriptors[*file] : -1, flags);
  --known.calls;
  alone = alone && known.changes == changes;
  if (!expect("ibv_open_xrcd", made(opening->xrcd), alone ? std::set{answer} : std::set{0, EAGAIN, EINVAL})) return;
  if (opening->xrcd == nullptr) return;
  ++opening->domain->opens;
  openings_.push_back(opening);
}

void Walker::make_extended_shared(const std::shared_ptr<XrcOpening>& opening) {
  auto shared = std::make_shared<SharedQueue>();
  const auto domain = any_stocked_domain(opening->context);
  const auto queue = any_queue(opening->context);
  if (!domain || !queue) return;
  auto wanted = queue_of_domain(*opening, *domain, *queue);
  wanted.attr = {dice_.between(1, 40), dice_.between(1, 3), 0};
  const auto asked = wanted.attr;
  shared->srq = ibv_create_srq_ex(contexts_[opening->context], &wanted);
  if (!expect("ibv_create_srq_ex of XRC", made(shared->srq), {0})) return;
  if (wanted.attr.max_wr < asked.max_wr || wanted.attr.max_sge < asked.max_sge)
    fail("ibv_create_srq_ex gave less than asked for");
  shared->opening = opening;
  shared->queue = queue;
  ++opening->users;
  ++queue->users;
  add(shared, domain, wanted.attr);
  std::uint32_t number = 0;
  expect("ibv_get_srq_num", ibv_get_srq_num(shared->srq, &number), {0});
  if (number != shared->number) fail("ibv_get_srq_num: another number than the handle's");
}

// Attributes of queues that an XRC receive QP lacks are ignored.
void Walker::make_receiver(const std::shared_ptr<XrcOpening>& opening) {
  auto pair = std::make_shared<Pair>();
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_XRC_RECV;
  wanted.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  wanted.xrcd = opening->xrcd;
  if (dice_.once_in(2)) wanted.cap = {dice_.below(20), dice_.below(20), dice_.below(4), dice_.below(4), 0};
  pair->qp = ibv_create_qp_ex(contexts_[opening->context], &wanted);
  if (!expect("ibv_create_qp_ex of XRC_RECV", made(pair->qp), {0})) return;
  if (wanted.cap.max_send_wr != 0 || wanted.cap.max_recv_wr != 0) fail("a QP of XRC_RECV with queues");
  pair->walker = index_;
  pair->context = opening->context;
  pair->type = IBV_QPT_XRC_RECV;
  pair->number = pair->qp->qp_num;
  pair->psn = std::uint32_t(dice_.bits()) & 0xffffff;
  pair->serves = opening->domain;
  opening->domain->receivers.insert(pair->number);
  town_.xrc.receivers.push_back(pair);
  add(opening, pair, pair->qp);
}

// Opens a receive QP that any process of the host created.
void Walker::open_receiver(const std::shared_ptr<XrcOpening>& opening) {
  std::vector<std::shared_ptr<Pair>> known;
  for (const auto& pair : town_.xrc.receivers)
    if (town_.walkers[pair->walker]->host() == host()) known.push_back(pair);
  const auto pair = any(known);
  if (!pair) return;
  take_turn(*pair);
  auto wanted = receiver_of_domain(*opening, pair->number);
  const bool there = pair->alive && pair->serves == opening->domain;
  ibv_qp* qp = pair->alive ? ibv_open_qp(contexts_[opening->context], &wanted) : nullptr;
  if (pair->alive && expect("ibv_open_qp", made(qp), {there ? 0 : EINVAL}) && there) {
    if (qp->qp_num != pair->number || qp->qp_type != IBV_QPT_XRC_RECV) fail("ibv_open_qp gave another QP");
    add(opening, pair, qp);
  }
  pair->in_call = false;
}

void Walker::add(const std::shared_ptr<XrcOpening>& opening, const std::shared_ptr<Pair>& pair, ibv_qp* qp) {
  ++opening->users;
  ++pair->handles;
  receivers_.push_back(std::make_shared<XrcReceiver>(XrcReceiver{.qp = qp, .opening = opening, .pair = pair}));
}

void Walker::take_turn(Pair& pair) {
  while (pair.in_call && !town_.broken) pass(1000);
  pair.in_call = true;
}

void Walker::move_receiver() {
  auto receiver = any(receivers_);
  if (!receiver) return;
  for (int tries = 0; tries < 3 && receiver->pair->runs(); ++tries) receiver = any(receivers_);
  take_turn(*receiver->pair);
  receiver->pair->qp = receiver->qp;
  move(receiver->pair);
  receiver->pair->in_call = false;
}

void Walker::leave_domain(const SharedQueue& shared) {
  if (!shared.opening) return;
  --shared.opening->users;
  --shared.queue->users;
  town_.xrc.gone[host()].push_back(shared.number);
}

void Walker::remove(const std::shared_ptr<XrcOpening>& opening) {
  XrcFile nobodys;
  XrcFile& known = opening->file ? town_.xrc.files[host()][*opening->file] : nobodys;
  const int wanted = opening->users != 0 ? EBUSY : 0;
  ++known.calls;
  ++known.changes;
  const bool closed = expect("ibv_close_xrcd", ibv_close_xrcd(opening->xrcd), {wanted}) && wanted == 0;
  if (closed) --opening->domain->opens;
  --known.calls;
  if (closed) std::erase(openings_, opening);
}

// Removing the last handle destroys the QP.
void Walker::remove(const std::shared_ptr<XrcReceiver>& receiver) {
  const auto pair = receiver->pair;
  take_turn(*pair);
  const bool last = pair->handles == 1;
  if (last) {
    pair->alive = false;
    std::erase(town_.xrc.receivers, pair);
  }
  if (expect("ibv_destroy_qp of XRC_RECV", ibv_destroy_qp(receiver->qp), {0})) {
    --pair->handles;
    --receiver->opening->users;
    if (last) {
      reset(*pair);
      pair->peer.reset();
    }
    std::erase(receivers_, receiver);
  }
  pair->in_call = false;
}

void Walker::break_extended() {
  const auto opening = any(openings_);
  const auto receiver = any(receivers_);
  const auto shared = any(shared_);
  if (!opening) return;
  switch (dice_.below(6)) {
    case 0: swapped(opening->xrcd->context, "ibv_close_xrcd", [&] { return ibv_close_xrcd(opening->xrcd); }); return;
    case 1: return open_badly(opening);
    case 2: {
      ibv_recv_wr wr{}, *bad = nullptr;
      ibv_send_wr send{}, *bad_send = nullptr;
      if (!receiver) return;
      expect("ibv_post_recv to XRC_RECV", ibv_post_recv(receiver->qp, &wr, &bad), {EINVAL});
      expect("ibv_post_send to XRC_RECV", ibv_post_send(receiver->qp, &send, &bad_send), {EINVAL});
      if (bad != &wr || bad_send != &send) fail("a post to XRC_RECV: bad_wr");
      return;
    }
    case 3: {
      std::uint32_t number = 0;
      if (shared && !shared->opening)
        expect("ibv_get_srq_num of a basic one", ibv_get_srq_num(shared->srq, &number), {EOPNOTSUPP});
      return;
    }
    default: return make_badly(opening);
  }
}

void Walker::open_badly(const std::shared_ptr<XrcOpening>& opening) {
  ibv_context* own = contexts_[opening->context];
  ibv_context* other = contexts_[1 - opening->context];
  const auto sender = any(pairs_);
  const auto receiver = any(receivers_);
  auto wanted = receiver_of_domain(*opening, receiver ? receiver->pair->number : 1);
  switch (dice_.below(7)) {
    case 0:
      expect("ibv_open_xrcd of a bad mask", made(open_file(own, -1, O_CREAT, 1u << dice_.below(32))), {EINVAL});
      return;
    case 1: expect("ibv_open_xrcd of no file", made(open_file(own, 9999, O_CREAT)), {EBADF}); return;
    case 2: wanted.qp_num = kNoSuchQueue + dice_.below(kNoSuchQueue); break;
    case 3:
      if (!sender) return;
      wanted.qp_num = sender->number;
      break;
    case 4: wanted.comp_mask &= ~(1u << dice_.below(3) | 1u << 4); [[fallthrough]];
    case 5:
      if (wanted.comp_mask == (IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE))
        wanted.qp_type = ibv_qp_type(dice_.between(2, 9));
      break;
    default: expect("ibv_open_qp of another context's domain", made(ibv_open_qp(other, &wanted)), {EINVAL}); return;
  }
  expect("ibv_open_qp of nonsense", made(ibv_open_qp(own, &wanted)), {EINVAL});
}

void Walker::make_badly(const std::shared_ptr<XrcOpening>& opening) {
  const auto context = opening->context;
  const auto domain = any_domain(context), stranger = any_domain(1 - context);
  const auto queue = any_queue(context), strange_queue = any_queue(1 - context);
  const auto shared = any(shared_);
  if (!domain || !queue || !stranger || !strange_queue) return;
  auto wanted = queue_of_domain(*opening, *domain, *queue);
  ibv_qp_init_attr_ex initial{};
  initial.cap = {1, 1, 1, 1, 0};
  initial.send_cq = initial.recv_cq = queue->cq;
  initial.qp_type = IBV_QPT_XRC_SEND;
  initial.comp_mask = IBV_QP_INIT_ATTR_PD;
  initial.pd = domain->pd;
  initial.xrcd = opening->xrcd;
  int error = EINVAL;
  ibv_context* by = contexts_[context];
  const auto choice = dice_.below(16);
  switch (choice) {
    case 0: wanted.comp_mask &= ~(1u << dice_.below(4)); break;
    case 1: wanted.cq = nullptr; break;
    case 2: wanted.xrcd = nullptr; break;
    case 3: wanted.cq = strange_queue->cq; break;
    case 4: wanted.srq_type = IBV_SRQT_BASIC; break;
    case 5: wanted.srq_type = IBV_SRQT_TM, error = EOPNOTSUPP; break;
    case 6:  // the domain belongs to another context
      wanted.pd = stranger->pd, wanted.cq = strange_queue->cq;
      by = contexts_[1 - context];
      break;
    case 7: wanted.attr.max_wr = dice_.once_in(2) ? 0 : std::uint32_t(limits_.max_srq_wr) + 1; break;
    case 8: initial.comp_mask |= IBV_QP_INIT_ATTR_XRCD; break;
    case 9: initial.comp_mask |= IBV_QP_INIT_ATTR_XRCD, initial.qp_type = IBV_QPT_RC; break;
    case 10: initial.send_cq = nullptr; break;
    case 11:
      if (!shared || shared->domain->context != context) return;
      initial.srq = shared->srq;
      break;
    case 12:
      if (!shared || !shared->opening || shared->domain->context != context) return;
      initial.srq = shared->srq, initial.qp_type = IBV_QPT_RC;
      break;
    case 13: initial.qp_type = IBV_QPT_XRC_RECV; break;  // without a domain
    case 14:
      initial.qp_type = IBV_QPT_XRC_RECV, initial.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      by = contexts_[1 - context];
      break;
    default:
      initial.qp_type = IBV_QPT_XRC_RECV, initial.comp_mask = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      initial.send_ops_flags = IBV_QP_EX_WITH_SEND, error = EOPNOTSUPP;
  }
  const int answer = choice < 8 ? made(ibv_create_srq_ex(by, &wanted)) : made(ibv_create_qp_ex(by, &initial));
  expect("a call with nonsense of XRC, the " + std::to_string(choice) + "th,", answer, {error});
}

void Walker::close_extended() {
  remove_each(receivers_, [this](const auto& receiver) { remove(receiver); });
  for (const auto& shared : std::vector(shared_))
    if (shared->opening) remove(shared);
  remove_each(openings_, [this](const auto& opening) { remove(opening); });
}

}  // namespace rnicsim::testing
