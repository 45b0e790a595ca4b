// SPDX-License-Identifier: Apache-2.0
// Work requests of every opcode, legal and illegal, and lists with an error or without an end.
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

bool is_atomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
constexpr std::uint32_t kFewBytes = 200;  // the CPU's copies to and from device memory take time

bool is_write(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

ibv_wr_opcode draw_opcode(Dice& dice, ibv_qp_type type) {
  constexpr ibv_wr_opcode kAll[] = {IBV_WR_SEND,
                                    IBV_WR_SEND_WITH_IMM,
                                    IBV_WR_RDMA_WRITE,
                                    IBV_WR_RDMA_WRITE_WITH_IMM,
                                    IBV_WR_RDMA_READ,
                                    IBV_WR_ATOMIC_CMP_AND_SWP,
                                    IBV_WR_ATOMIC_FETCH_AND_ADD,
                                    IBV_WR_SEND_WITH_INV,
                                    IBV_WR_LOCAL_INV,
                                    IBV_WR_BIND_MW};
  if (dice.once_in(60)) return ibv_wr_opcode(dice.between(11, 14));
  for (int tries = 0;; ++tries) {
    const auto opcode = kAll[dice.below(std::size(kAll))];
    const bool rare = opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_BIND_MW;
    if (rare && !dice.once_in(6)) continue;
    if (is_of(type, opcode) || dice.once_in(40)) return opcode;
  }
}

// One range, sometimes divided into two SGEs.
int cut(Dice& dice, ibv_sge* sges, std::uint64_t address, std::uint32_t length, std::uint32_t key, std::uint32_t most) {
  if (most == 0 || (length == 0 && dice.once_in(2))) return 0;
  if (most == 1 || length < 2 || dice.once_in(2)) {
    sges[0] = {address, length, key};
    return 1;
  }
  const auto first = dice.between(1, length - 1);
  sges[0] = {address, first, key};
  sges[1] = {address + first, length - first, key};
  return 2;
}

}  // namespace

bool may_post(ibv_qp_state state) {
  return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

bool Pair::does(ibv_wr_opcode opcode) const {
  return is_of(type, opcode) && (opcode != IBV_WR_TSO || max_tso_header != 0);
}

bool is_of(ibv_qp_type type, ibv_wr_opcode opcode) {
  if (type == IBV_QPT_RAW_PACKET) return opcode == IBV_WR_SEND || opcode == IBV_WR_TSO;
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM: return true;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_LOCAL_INV:
    case IBV_WR_BIND_MW: return type != IBV_QPT_UD;
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_SEND_WITH_INV: return is_reliable(type);
    default: return false;
  }
}

bool takes_receive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
         opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

void Walker::post_something() {
  if (dice_.once_in(4)) return post_frames();
  const auto pair = any(pairs_);
  const auto shared = any(shared_);
  const auto sends = [this](const std::shared_ptr<Pair>& by) {
    if (!by->runs() && !dice_.once_in(4)) return;
    by->extended != nullptr&& dice_.once_in(2) ? post_batch(by) : post_sends(by);
  };
  switch (dice_.below(20)) {
    case 0: return pair ? dice_.once_in(4) ? bind_window(pair) : post_looped_sends(pair) : void();
    case 1:
    case 2:
    case 3:
    case 4: return shared ? post_shared(shared) : void();
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10: return pair ? post_receives(pair) : void();
    default: return pair ? sends(pair) : void();
  }
}

bool Walker::is_firm(const Pair& pair) const {
  const auto& peer = pair.peer;
  return connects(pair.type) && peer && peer->alive && peer->peer.get() == &pair && peer->life == pair.peer_life &&
         peer->peer_life == pair.life && peer->type == counterpart(pair.type) && !pair.changing && !peer->changing;
}

// A region of the domain that covers the cell, or one of device memory; sometimes another region.
std::shared_ptr<Region> Walker::draw_region(const Domain& domain, std::uint32_t cell, bool of_device) {
  std::vector<std::shared_ptr<Region>> own, devices;
  for (const auto& region : regions_) {
    if (region->domain->root() != domain.root()) continue;
    if (region->covers(cell, Arena::kCell)) own.push_back(region);
    if (region->device && region->reaches(0, region->device->guard_at()) && region->device->has_slot())
      devices.push_back(region);
  }
  if (of_device && !devices.empty() && dice_.once_in(8)) return any(devices);
  return own.empty() || dice_.once_in(25) ? any(regions_) : any(own);
}

// Draws the target in the peer's memory: with a key of the peer's domain, or with a key that opens nothing. Over XRC
// the peer is the owner of the named SRQ.
void Walker::draw_remote(const Pair& pair, Request& request, unsigned right) {
  auto& [wr, sges, send, error, inlined, headers, namings] = request;
  send.owner = send.named ? send.named->walker : pair.peer ? pair.peer->walker : index_;
  Walker& town = *town_.walkers[send.owner];
  const bool by_queue = pair.type == IBV_QPT_XRC_SEND;
  const Domain* domain = by_queue    ? (send.named ? send.named->domain->root() : nullptr)
                         : pair.peer ? pair.peer->domain->root()
                                     : nullptr;
  send.granted = pair.peer && (pair.peer->access & right);
  std::vector<std::shared_ptr<Region>> fit;
  const bool write = right == IBV_ACCESS_REMOTE_WRITE;
  const auto source = Arena::kCells * Arena::kCell + dice_.below(Arena::kGuard - Arena::kCell) / 8 * 8;
  const auto at = write ? town.arena().take() : std::optional(source);
  if (!at) {
    send.remote = Remote::unknown;
    return;
  }
  if (domain != nullptr && dice_.once_in(4) && draw_remote_slot(town, *domain, request, right)) {
    if (write) town.arena().give_back(*at);
    return;
  }
  send.landing = at;
  for (const auto& region : town.regions())
    if (pair.peer && region->domain->root() == domain && (region->access & right) && region->covers(*at, Arena::kCell))
      fit.push_back(region);
  send.target = any(fit);
  std::uint64_t address = town.arena().address(source);
  std::uint32_t key = 0;
  if (!town.windows().empty() && !is_atomic(wr.opcode) && dice_.once_in(25)) {
    // The range that the window opens at present is unknown.
    auto windows = town.windows();
    send.target.reset();
    send.remote = Remote::unknown;
    address = town.arena().address(*at);
    key = any(windows)->mw->rkey;
  } else if (send.target && !dice_.once_in(25)) {
    address = send.target->address(town.arena(), *at);
    key = send.target->mr->rkey;
    // The address of an atomic lies in the guarded area: no atomic may be granted there.
    send.remote = send.granted ? Remote::good : Remote::bad;
  } else {
    send.remote = Remote::bad;
    if (!town.regions().empty()) {
      auto regions = town.regions();
      send.target = any(regions);
      key = send.target->mr->rkey ^ (1u << dice_.below(8));
    } else {
      send.target.reset();
      key = std::uint32_t(dice_.bits()) & 0xff;
    }
  }
  if (is_atomic(wr.opcode)) {
    wr.wr.atomic = {address, dice_.bits(), dice_.bits(), key};
  } else {
    wr.wr.rdma = {address, key};
  }
}

int Walker::cut_in_two(ibv_sge* sges, std::uint64_t address, std::uint32_t length, std::uint32_t key,
                       std::uint32_t most) {
  return cut(dice_, sges, address, length, key, most);
}

bool Walker::draw_send(const std::shared_ptr<Pair>& pair, Request& request) {
  if (pair->type == IBV_QPT_RAW_PACKET) return draw_frame(pair, request);
  auto& [wr, sges, send, error, inlined, headers, namings] = request;
  const auto cell = arena_.take();
  wr.opcode = draw_opcode(dice_, pair->type);
  const bool special = wr.opcode == IBV_WR_LOCAL_INV || wr.opcode == IBV_WR_BIND_MW;
  const auto region = cell ? draw_region(*pair->domain, *cell, !special) : nullptr;
  if (!region) {
    if (cell) arena_.give_back(*cell);
    return false;
  }
  send.id = wr.wr_id = ++next_id_ | kSendMark;
  send.opcode = wr.opcode;
  send.cell = *cell;
  send.region = region;
  send.length = is_atomic(wr.opcode) ? 8
                : dice_.once_in(8)   ? 0
                : dice_.once_in(2)   ? dice_.between(1, 64)
                                     : dice_.between(1, Arena::kCell - 40);
  if (is_atomic(wr.opcode) && dice_.once_in(20)) send.length = 4, send.odd_atomic = true;
  const bool takes = wr.opcode == IBV_WR_RDMA_READ || is_atomic(wr.opcode);
  if (dice_.once_in(2)) wr.send_flags |= IBV_SEND_SIGNALED;
  if (dice_.once_in(6)) wr.send_flags |= IBV_SEND_FENCE;
  if (dice_.once_in(6)) wr.send_flags |= IBV_SEND_SOLICITED;
  send.signalled = pair->signals_all || (wr.send_flags & IBV_SEND_SIGNALED);
  inlined = !special && dice_.once_in(takes ? 60 : 5);
  if (inlined) wr.send_flags |= IBV_SEND_INLINE;
  if (region->device && !inlined) {
    send.slot = take_slot(*region);
    if (!dice_.once_in(4)) send.length = std::min(send.length, kFewBytes);
  }
  if (!takes) fill_pattern(arena_.at(*cell), send.length, send.id);
  if (!takes && send.slot) store_slot(*send.slot, *cell, send.length);
  // No time passes until the request is posted, or `changes` shows a change.
  send.firm = is_firm(*pair);
  send.changes = pair->changes;
  send.peer_changes = pair->peer ? pair->peer->changes : 0;
  send.owner = index_;
  if (pair->type == IBV_QPT_XRC_SEND && !special) name_queue(*pair, request);

  send.foreign = !is_of(pair->type, wr.opcode);
  const bool known = is_of(IBV_QPT_RC, wr.opcode);
  if (!known) error = EINVAL;
  wr.sg_list = sges.data();
  const bool covered = send.slot || region->covers(*cell, Arena::kCell);
  const auto address = inlined     ? arena_.address(*cell)
                       : send.slot ? send.slot->at - region->offset
                       : covered   ? region->address(arena_, *cell)
                                   : arena_.address(*cell);
  if (!special) wr.num_sge = cut(dice_, sges.data(), address, send.length, region->mr->lkey, pair->cap.max_send_sge);
  if (wr.num_sge == 0 && !special) send.length = 0;
  if (is_atomic(wr.opcode) && send.length != 8) send.odd_atomic = true;
  send.legal = inlined || send.length == 0 || special ||
               (covered && region->domain->root() == pair->domain->root() &&
                (!takes || (region->access & IBV_ACCESS_LOCAL_WRITE)));
  send.zeros = region->null && !inlined;
  if (inlined && (takes || send.length > pair->cap.max_inline_data)) error = EINVAL;
  if (dice_.once_in(50))
    wr.num_sge = dice_.once_in(2) ? -1 : int(pair->cap.max_send_sge) + 1, error = special ? error : EINVAL;
  if (special && wr.num_sge != 0) error = EINVAL;

  if (wr.opcode == IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
    wr.imm_data = __builtin_bswap32(std::uint32_t(send.id));
  const auto window = any(windows_);
  if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV) {
    wr.invalidate_rkey = window && !dice_.once_in(3) ? window->mw->rkey : region->mr->rkey;
  } else if (wr.opcode == IBV_WR_BIND_MW) {
    if (!window) {
      error = EINVAL;  // no window at all
    } else {
      wr.bind_mw.mw = window->mw;
      wr.bind_mw.rkey = std::uint32_t(dice_.bits());
      wr.bind_mw.bind_info = {region->mr, region->access & IBV_ACCESS_ZERO_BASED ? 0 : arena_.address(region->offset),
                              dice_.between(0, region->length), unsigned(dice_.below(8) << 1)};
      if (window->mw->type != IBV_MW_TYPE_2) error = EINVAL;
      if (error == 0) region->may_be_bound = true;
    }
  } else if (pair->type == IBV_QPT_UD) {
    const auto way = any(ways_);
    const bool usable = way && way->domain->context == pair->context;
    const auto& others = dice_.one_of(town_.walkers)->pairs();
    const auto to = others.empty() ? pair : others[dice_.below(others.size())];
    wr.wr.ud = {way ? way->ah : nullptr, dice_.once_in(3) ? 0xffffff : to->number, to->qkey};
    if (!usable) error = EINVAL;
  } else if (takes || is_write(wr.opcode)) {
    draw_remote(*pair, request,
                is_write(wr.opcode)             ? unsigned(IBV_ACCESS_REMOTE_WRITE)
                : wr.opcode == IBV_WR_RDMA_READ ? unsigned(IBV_ACCESS_REMOTE_READ)
                                                : unsigned(IBV_ACCESS_REMOTE_ATOMIC));
    // Atomics change their target: they get their own cell.
    if (is_atomic(wr.opcode) && !send.remote_slot && send.target && wr.wr.atomic.rkey == send.target->mr->rkey) {
      Walker& town = *town_.walkers[send.owner];
      const auto place = town.arena().take();
      const bool fits = place && send.target->covers(*place, 8);
      if (place) town.arena().give_back(*place);
      if (fits) wr.wr.atomic.remote_addr = send.target->address(town.arena(), *place);
      if (!fits) wr.wr.atomic.rkey ^= 1, send.remote = Remote::bad;
      send.landing.reset();
    }
  }
  // An opcode of another transport: the device refuses it before it checks anything else.
  const bool counted = wr.num_sge >= 0 && std::uint32_t(wr.num_sge) <= pair->cap.max_send_sge;
  if (send.foreign && known) error = counted ? 0 : EINVAL;
  return true;
}

void Walker::give_back(const Send& send) {
  arena_.give_back(send.cell);
  if (send.slot) send.slot->device->give_back(send.slot->at);
  if (is_write(send.opcode) && send.remote_slot) send.remote_slot->device->give_back(send.remote_slot->at);
  if (is_write(send.opcode) && send.landing) town_.walkers[send.owner]->arena().give_back(*send.landing);
}

// Posts a list; the refused element and its errno are predicted.
void Walker::post_sends(const std::shared_ptr<Pair>& pair) {
  std::array<Request, 4> requests;
  std::size_t count = 0;
  const std::size_t wanted = dice_.once_in(3) ? dice_.between(2, 4) : 1;
  while (count < wanted && draw_send(pair, requests[count])) ++count;
  if (count == 0) return;
  for (std::size_t i = 0; i + 1 < count; ++i) requests[i].wr.next = &requests[i + 1].wr;
  std::size_t posted = 0;
  int error = !may_post(pair->told) ? EINVAL : pair->cap.max_send_wr == 0 ? ENOMEM : 0;
  while (error == 0 && posted < count) {
    if (pair->sends.size() >= pair->cap.max_send_wr) {
      error = ENOMEM;
    } else if (requests[posted].error != 0) {
      error = requests[posted].error;
    } else {
      pair->sends.push_back(requests[posted++].send);
    }
  }
  for (std::size_t i = posted; i < count; ++i) give_back(requests[i].send);
  note_room();
  ibv_send_wr* bad = nullptr;
  if (pair->vague()) return void(ibv_post_send(pair->qp, &requests[0].wr, &bad));
  const int answer = ibv_post_send(pair->qp, &requests[0].wr, &bad);
  if (!expect("ibv_post_send of opcode " + std::to_string(requests[0].wr.opcode) + " in state " +
                  std::to_string(pair->told),
              answer, {error}))
    return;
  if (error != 0 && bad != &requests[posted].wr)
    fail("ibv_post_send: another bad_wr than the first that was not posted");
}

// A list without end is posted until the queue is full.
void Walker::post_looped_sends(const std::shared_ptr<Pair>& pair) {
  Request request;
  if (!draw_send(pair, request)) return;
  request.wr.next = &request.wr;
  if (const auto frame = town_.frames.find(request.send.id); frame != town_.frames.end()) frame->second.repeated = true;
  // All requests have one id: only with all signalled is the number of completions known.
  request.wr.send_flags |= IBV_SEND_SIGNALED;
  request.send.signalled = true;
  int error = !may_post(pair->told) ? EINVAL : 0;
  const auto room = pair->cap.max_send_wr - pair->sends.size();
  if (error == 0) error = room != 0 && request.error != 0 ? request.error : ENOMEM;
  const auto count = error == ENOMEM ? room : 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto send = request.send;
    if (i + 1 != count) {  // all use the same memory, which is released with the last request
      const auto cell = arena_.take();
      send.cell = cell.value_or(0);
      send.landing.reset();
      send.slot.reset();
      send.remote_slot.reset();
    }
    send.firm = false;
    if (request.send.remote_slot) request.send.remote_slot->device->added += send.counts;
    pair->sends.push_back(send);
  }
  if (count == 0) give_back(request.send);
  note_room();
  ibv_send_wr* bad = nullptr;
  if (pair->vague()) return void(ibv_post_send(pair->qp, &request.wr, &bad));
  expect("ibv_post_send of a looped list", ibv_post_send(pair->qp, &request.wr, &bad), {error});
  if (bad != &request.wr) fail("ibv_post_send of a looped list: bad_wr");
}

bool Walker::draw_receive(const Domain& domain, std::uint32_t max_sge, ibv_recv_wr& wr, std::array<ibv_sge, 2>& sges,
                          Receive& receive, int& error) {
  const auto cell = arena_.take();
  const auto region = cell ? draw_region(domain, *cell, true) : nullptr;
  if (!region) {
    if (cell) arena_.give_back(*cell);
    return false;
  }
  receive = {.id = ++next_id_, .cell = *cell, .length = dice_.once_in(10) ? dice_.between(0, 100) : Arena::kCell};
  receive.region = region;
  if (region->device) receive.slot = take_slot(*region);
  const bool covered = receive.slot || region->covers(*cell, Arena::kCell);
  const auto address = receive.slot ? receive.slot->at - region->offset
                       : covered    ? region->address(arena_, *cell)
                                    : arena_.address(*cell);
  wr.wr_id = receive.id;
  wr.sg_list = sges.data();
  wr.num_sge = cut(dice_, sges.data(), address, receive.length, region->mr->lkey, max_sge);
  if (wr.num_sge == 0) receive.length = 0;
  receive.legal = receive.length == 0 ||
                  (covered && region->domain->root() == domain.root() && (region->access & IBV_ACCESS_LOCAL_WRITE));
  error = 0;
  if (dice_.once_in(40)) wr.num_sge = dice_.once_in(2) ? -1 : int(max_sge) + 1, error = EINVAL;
  return true;
}

void Walker::post_receives(const std::shared_ptr<Pair>& pair) {
  std::array<ibv_recv_wr, 3> wrs{};
  std::array<std::array<ibv_sge, 2>, 3> sges;
  std::array<Receive, 3> receives;
  std::array<int, 3> errors{};
  const std::size_t wanted = dice_.between(1, 3);
  std::size_t count = 0;
  while (count < wanted &&
         draw_receive(*pair->domain, pair->cap.max_recv_sge, wrs[count], sges[count], receives[count], errors[count]))
    ++count;
  if (count == 0) return;
  for (std::size_t i = 0; i + 1 < count; ++i) wrs[i].next = &wrs[i + 1];
  const bool looped = dice_.once_in(15);
  if (looped) wrs[0].next = &wrs[0];
  std::size_t posted = 0;
  const bool never = pair->shared || pair->type == IBV_QPT_XRC_SEND;
  int error = never || pair->told == IBV_QPS_RESET ? EINVAL : pair->cap.max_recv_wr == 0 ? ENOMEM : 0;
  while (error == 0 && (looped || posted < count)) {
    const auto next = looped ? 0 : posted;
    if (pair->receives.size() >= pair->cap.max_recv_wr)
      error = ENOMEM;
    else if (errors[next] != 0)
      error = errors[next];
    else {
      pair->receives.push_back(receives[next]);
      if (looped && posted != 0) {
        pair->receives.back().cell = arena_.take().value_or(0);
        pair->receives.back().slot.reset();
      }
      if (looped) pair->receives.back().legal = false, pair->receives.back().region = nullptr;
      ++posted;
    }
  }
  for (std::size_t i = looped ? std::min<std::size_t>(posted, 1) : posted; i < count; ++i) give_back(receives[i]);
  note_room();
  ibv_recv_wr* bad = nullptr;
  const int answer =
      pair->wq != nullptr ? ibv_post_wq_recv(pair->wq, &wrs[0], &bad) : ibv_post_recv(pair->qp, &wrs[0], &bad);
  if (pair->vague()) return;
  if (!expect("ibv_post_recv in state " + std::to_string(pair->told), answer, {error})) return;
  if (error != 0 && bad != &wrs[looped ? 0 : posted])
    fail("ibv_post_recv: another bad_wr than the first that was not posted");
}

void Walker::post_shared(const std::shared_ptr<SharedQueue>& shared) {
  ibv_recv_wr wr{};
  std::array<ibv_sge, 2> sges;
  Receive receive;
  int error = 0;
  if (!draw_receive(*shared->domain, shared->max_sge, wr, sges, receive, error)) return;
  const bool full = shared->posted.size() >= shared->max_wr;
  std::set<int> allowed{full ? ENOMEM : error};
  if (full && !shared->exact) allowed = {error, ENOMEM};
  // Entered before the call: the completion may come before the call returns.
  if (allowed.contains(0)) shared->posted[receive.id] = receive;
  note_room();
  ibv_recv_wr* bad = nullptr;
  const int answer = ibv_post_srq_recv(shared->srq, &wr, &bad);
  if (!expect("ibv_post_srq_recv", answer, allowed)) return;
  if (answer == 0) return;
  shared->posted.erase(receive.id);
  give_back(receive);
  if (bad != &wr) fail("ibv_post_srq_recv: bad_wr");
}

}  // namespace rnicsim::testing
