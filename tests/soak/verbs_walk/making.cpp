// SPDX-License-Identifier: Apache-2.0
// Objects: created, changed, destroyed. Objects in use are busy.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr unsigned kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::size_t kMost = 6;  // objects of a kind, approximately
constexpr std::size_t kMostPairs = 12;
constexpr int kRoomy = 100;  // entries of a CQ

unsigned draw_access(Dice& dice) {
  unsigned access = dice.once_in(3) ? unsigned(dice.below(16)) : kAllAccess;
  if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) access |= IBV_ACCESS_LOCAL_WRITE;
  if (dice.once_in(2)) access |= IBV_ACCESS_MW_BIND;
  return access;
}

struct Range {
  std::uint32_t offset, length;
};

// All operations that may be requested: the flags have the numbers of the opcodes.
std::uint64_t operations_of(const Pair& pair) {
  std::uint64_t flags = 0;
  for (int opcode = IBV_WR_RDMA_WRITE; opcode <= IBV_WR_TSO; ++opcode)
    if (pair.does(ibv_wr_opcode(opcode))) flags |= 1u << opcode;
  return flags;
}

Range draw_range(Dice& dice) {
  const auto first = dice.below(Arena::kCells), cells = dice.between(1, Arena::kCells - first);
  return {first * Arena::kCell, cells * Arena::kCell};
}

}  // namespace

std::shared_ptr<Domain> Walker::any_domain(std::uint32_t context) {
  std::vector<std::shared_ptr<Domain>> ours;
  for (const auto& domain : domains_)
    if (domain->context == context) ours.push_back(domain);
  return any(ours);
}

// Prefers a domain with a region, so that work requests find memory.
std::shared_ptr<Domain> Walker::any_stocked_domain(std::uint32_t context) {
  std::vector<std::shared_ptr<Domain>> stocked;
  for (const auto& domain : domains_)
    for (const auto& region : regions_)
      if (domain->context == context && region->domain->root() == domain->root() && region->length == Arena::kBytes &&
          !region->null && (region->access & kAllAccess) == kAllAccess)
        stocked.push_back(domain);
  return stocked.empty() || dice_.once_in(6) ? any_domain(context) : any(stocked);
}

// Prefers a CQ with enough entries: with lost completions little can be checked.
std::shared_ptr<Queue> Walker::any_queue(std::uint32_t context) {
  std::vector<std::shared_ptr<Queue>> ours, roomy;
  for (const auto& queue : queues_) {
    if (queue->context != context) continue;
    ours.push_back(queue);
    if (!queue->may_overrun && queue->cq->cqe >= kRoomy) roomy.push_back(queue);
  }
  return roomy.empty() || dice_.once_in(20) ? any(ours) : any(roomy);
}

void Walker::make_something() {
  const auto context = dice_.below(kContexts);
  const auto domain = any_domain(context);
  switch (dice_.below(10)) {
    case 0: return domains_.size() < kMost ? make_domain(context) : void();
    case 1: return domains_.size() < kMost + 2 ? make_parent(context) : void();
    case 2: return threads_.size() < 3 ? make_thread(context) : void();
    case 3:
      if (dice_.once_in(4)) return make_device_memory(context);
      if (!domain || regions_.size() >= 2 * kMost) return change_region();
      return dice_.once_in(6) ? make_null_region(domain) : make_region(domain, dice_.once_in(2));
    case 4: return windows_.size() < kMost ? make_window() : void();
    case 5: return domain && ways_.size() < kMost ? make_way(domain) : void();
    case 6: return channels_.size() < 3 ? make_channel(context) : void();
    case 7: return queues_.size() < kMost ? make_queue(context, !dice_.once_in(5)) : resize_queue();
    case 8: return domain && shared_.size() < 6 ? make_shared(any_stocked_domain(context)) : change_shared();
    default: break;
  }
  constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_RC,         IBV_QPT_UC,
                                    IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND};
  if (pairs_.size() < kMostPairs) make_pair(context, kTypes[dice_.below(6)]);
}

void Walker::make_domain(std::uint32_t context) {
  auto domain = std::make_shared<Domain>();
  domain->context = context;
  domain->pd = ibv_alloc_pd(contexts_[context]);
  if (expect("ibv_alloc_pd", made(domain->pd), {0})) domains_.push_back(domain);
}

void Walker::make_thread(std::uint32_t context) {
  auto thread = std::make_shared<ThreadDomain>();
  thread->context = context;
  ibv_td_init_attr attributes{};
  thread->td = ibv_alloc_td(contexts_[context], &attributes);
  if (expect("ibv_alloc_td", made(thread->td), {0})) threads_.push_back(thread);
}

void Walker::make_parent(std::uint32_t context) {
  const auto protection = any_domain(context);
  if (!protection) return;
  auto domain = std::make_shared<Domain>();
  domain->context = context;
  const auto thread = any(threads_);
  if (thread && thread->context == context) domain->thread = thread;
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = protection->pd;
  attributes.td = domain->thread ? thread->td : nullptr;
  domain->pd = ibv_alloc_parent_domain(contexts_[context], &attributes);
  const int wanted = protection->protection ? EINVAL : 0;  // the PD must not be a parent domain
  if (!expect("ibv_alloc_parent_domain", made(domain->pd), {wanted}) || wanted != 0) return;
  domain->protection = protection;
  ++protection->users;
  if (domain->thread) ++thread->users;
  domains_.push_back(domain);
}

void Walker::make_region(std::shared_ptr<Domain> domain, bool whole) {
  auto region = std::make_shared<Region>();
  const auto [offset, length] = whole ? Range{0, Arena::kBytes} : draw_range(dice_);
  region->domain = domain;
  region->offset = offset;
  region->length = length;
  region->access = draw_access(dice_) | (dice_.once_in(8) ? unsigned(IBV_ACCESS_ZERO_BASED) : 0u);
  region->mr = ibv_reg_mr(domain->pd, arena_.at(offset), length, int(region->access));
  if (!expect("ibv_reg_mr", made(region->mr), {0})) return;
  ++domain->users;
  regions_.push_back(region);
}

void Walker::make_null_region(const std::shared_ptr<Domain>& domain) {
  auto region = std::make_shared<Region>();
  region->domain = domain;
  region->length = Arena::kBytes;
  region->access = IBV_ACCESS_LOCAL_WRITE;
  region->null = true;
  region->mr = ibv_alloc_null_mr(domain->pd);
  if (!expect("ibv_alloc_null_mr", made(region->mr), {0})) return;
  ++domain->users;
  regions_.push_back(region);
}

// A reregistered region becomes a new Region object: outstanding work requests keep the old one, whose facts no longer
// hold.
void Walker::change_region() {
  const auto region = any(regions_);
  if (!region || region->may_be_bound || region->null || region->device) return;
  auto next = std::make_shared<Region>(*region);
  const int flags = int(dice_.between(1, IBV_REREG_MR_FLAGS_SUPPORTED));
  const auto domain = any_domain(region->domain->context);
  const auto [offset, length] = draw_range(dice_);
  const unsigned access = draw_access(dice_);
  if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) next->offset = offset, next->length = length;
  if (flags & IBV_REREG_MR_CHANGE_PD) next->domain = domain;
  if (flags & IBV_REREG_MR_CHANGE_ACCESS) next->access = access;
  region->intact = false;
  const int answer = ibv_rereg_mr(region->mr, flags, domain->pd, arena_.at(offset), length,
                                  flags & IBV_REREG_MR_CHANGE_ACCESS ? int(access) : 0);
  if (!expect("ibv_rereg_mr", answer, {0})) return;
  --region->domain->users;
  ++next->domain->users;
  std::ranges::replace(regions_, region, next);
}

void Walker::make_window() {
  const auto domain = any(domains_);
  if (!domain) return;
  auto window = std::make_shared<Window>();
  window->domain = domain;
  window->mw = ibv_alloc_mw(domain->pd, dice_.once_in(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
  if (!expect("ibv_alloc_mw", made(window->mw), {0})) return;
  ++domain->users;
  windows_.push_back(window);
}

void Walker::make_way(const std::shared_ptr<Domain>& domain) {
  auto way = std::make_shared<Way>();
  way->domain = domain;
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  attributes.grh.sgid_index = 1;
  attributes.grh.hop_limit = 64;
  attributes.grh.dgid = dice_.one_of(town_.walkers)->gid();
  if (dice_.once_in(4)) {
    attributes.grh.dgid.raw[12] = 239;
    attributes.grh.dgid.raw[13] = attributes.grh.dgid.raw[14] = 1;
    attributes.grh.dgid.raw[15] = std::uint8_t(dice_.below(3));
  }
  way->ah = ibv_create_ah(domain->pd, &attributes);
  if (!expect("ibv_create_ah", made(way->ah), {0})) return;
  ++domain->users;
  ways_.push_back(way);
}

void Walker::make_channel(std::uint32_t context) {
  auto channel = std::make_shared<Channel>();
  channel->context = context;
  channel->channel = ibv_create_comp_channel(contexts_[context]);
  if (!expect("ibv_create_comp_channel", made(channel->channel), {0})) return;
  fcntl(channel->channel->fd, F_SETFL, O_NONBLOCK);
  channels_.push_back(channel);
}

void Walker::make_queue(std::uint32_t context, bool large) {
  auto queue = std::make_shared<Queue>();
  queue->context = context;
  const auto channel = any(channels_);
  if (channel && channel->context == context && dice_.once_in(2)) queue->channel = channel;
  const auto entries = large ? dice_.between(kRoomy, 400) : dice_.between(1, 6);
  ibv_comp_channel* told = queue->channel ? queue->channel->channel : nullptr;
  if (dice_.once_in(2)) {
    queue->cq = ibv_create_cq(contexts_[context], int(entries), nullptr, told, 0);
  } else {
    ibv_cq_init_attr_ex attributes{};
    attributes.cqe = entries;
    attributes.channel = told;
    attributes.wc_flags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_FLOW_TAG;
    if (const auto parent = any_domain(context); parent && parent->protection) {
      attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
      attributes.parent_domain = parent->pd;
      queue->parent = parent;
    }
    queue->extended = ibv_create_cq_ex(contexts_[context], &attributes);
    if (queue->extended != nullptr) queue->cq = ibv_cq_ex_to_cq(queue->extended);
  }
  if (!expect("ibv_create_cq", made(queue->cq), {0})) return;
  if (queue->cq->cqe < int(entries)) fail("ibv_create_cq gave fewer entries than asked for");
  if (queue->channel) ++queue->channel->users;
  if (queue->parent) ++queue->parent->users;
  queues_.push_back(queue);
}

void Walker::resize_queue() {
  const auto queue = any(queues_);
  if (!queue) return;
  const auto entries = dice_.once_in(10) ? dice_.between(1, 20) : dice_.between(kRoomy, 400);
  const auto unpolled = most_unpolled(*queue);
  const int answer = ibv_resize_cq(queue->cq, int(entries));
  if (unpolled <= entries || queue->may_overrun)
    expect("ibv_resize_cq", answer, queue->may_overrun ? std::set{0, EINVAL} : std::set{0});
  else
    expect("ibv_resize_cq", answer, {0, EINVAL});
  note_room();
}

std::size_t Walker::most_unpolled(const Queue& queue) const {
  std::size_t most = 0;
  for (const auto& pair : pairs_) {
    if (pair->send_queue.get() == &queue) most += pair->sends.size();
    if (pair->receive_queue.get() == &queue) most += pair->shared ? pair->shared->posted.size() : pair->receives.size();
  }
  for (const auto& pair : work_queues_)
    if (pair->receive_queue.get() == &queue) most += pair->receives.size();
  for (const auto& shared : shared_)
    if (shared->queue.get() == &queue) most += shared->posted.size();
  return most;
}

void Walker::note_room() {
  for (const auto& queue : queues_)
    if (most_unpolled(*queue) > std::size_t(queue->cq->cqe)) queue->may_overrun = true;
}

void Walker::make_shared(const std::shared_ptr<Domain>& domain) {
  auto shared = std::make_shared<SharedQueue>();
  ibv_srq_init_attr attributes{};
  attributes.attr = {dice_.between(1, 40), dice_.between(1, 3), 0};
  const auto asked = attributes.attr;
  shared->srq = ibv_create_srq(domain->pd, &attributes);
  if (!expect("ibv_create_srq", made(shared->srq), {0})) return;
  if (attributes.attr.max_wr < asked.max_wr || attributes.attr.max_sge < asked.max_sge)
    fail("ibv_create_srq gave less than asked for");
  add(shared, domain, attributes.attr);
}

void Walker::add(const std::shared_ptr<SharedQueue>& shared, const std::shared_ptr<Domain>& domain,
                 const ibv_srq_attr& granted) {
  shared->number = shared->srq->handle;
  shared->walker = index_;
  shared->domain = domain;
  shared->max_wr = granted.max_wr;
  shared->max_sge = granted.max_sge;
  ++domain->users;
  shared_.push_back(shared);
}

void Walker::change_shared() {
  const auto shared = any(shared_);
  if (!shared) return;
  ibv_srq_attr attributes{.max_wr = dice_.between(0, 60), .max_sge = 1, .srq_limit = dice_.between(0, 20)};
  const int mask = int(dice_.below(4));
  std::set<int> allowed{0};
  const bool resizes = mask & IBV_SRQ_MAX_WR, limits = mask & IBV_SRQ_LIMIT;
  const bool may_be_dead = shared->queue && shared->queue->may_overrun;
  const auto max_wr = resizes ? attributes.max_wr : shared->max_wr;
  if (mask != 0 && (!limits || may_be_dead)) allowed = {0, EINVAL};  // the armed limit may exceed the new size
  if (resizes && !shared->exact) allowed = {0, EINVAL};
  if (resizes && shared->exact && max_wr < shared->posted.size()) allowed = {EINVAL};
  if ((resizes && max_wr == 0) || (limits && attributes.srq_limit > max_wr)) allowed = {EINVAL};
  const int answer = ibv_modify_srq(shared->srq, &attributes, mask);
  if (!expect("ibv_modify_srq", answer, allowed)) return;
  if (!expect("ibv_query_srq", ibv_query_srq(shared->srq, &attributes), {0})) return;
  if (answer == 0 && resizes && attributes.max_wr < max_wr) fail("ibv_modify_srq: less than asked for");
  if ((answer != 0 || !resizes) && attributes.max_wr != shared->max_wr) fail("ibv_modify_srq changed what it refused");
  shared->max_wr = attributes.max_wr;
}

void Walker::make_pair(std::uint32_t context, ibv_qp_type type) {
  auto pair = std::make_shared<Pair>();
  pair->domain = any_stocked_domain(context);
  pair->send_queue = any_queue(context);
  pair->receive_queue = any_queue(context);
  const auto shared = any(shared_);
  const bool may_share = type == IBV_QPT_RC || type == IBV_QPT_UD;
  const bool fits = shared && !shared->opening && shared->domain->context == context;
  const bool shares = fits && may_share && dice_.once_in(3);
  const bool sends_only = type == IBV_QPT_XRC_SEND;
  if (!pair->domain || !pair->send_queue) return;
  ibv_qp_init_attr_ex attributes{};
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = pair->domain->pd;
  attributes.send_cq = pair->send_queue->cq;
  attributes.recv_cq = pair->receive_queue->cq;
  if (sends_only) {  // receive attributes are ignored
    if (dice_.once_in(2)) attributes.recv_cq = nullptr;
    pair->receive_queue = pair->send_queue;
  }
  attributes.srq = shares ? shared->srq : nullptr;
  attributes.cap = {dice_.once_in(8) ? 0 : dice_.between(1, 12), dice_.once_in(8) ? 0 : dice_.between(1, 12),
                    dice_.between(1, 3), dice_.between(1, 3), dice_.once_in(2) ? 0 : dice_.between(1, 200)};
  attributes.qp_type = type;
  attributes.sq_sig_all = dice_.once_in(3);
  pair->type = type;
  const bool raw = type == IBV_QPT_RAW_PACKET;
  pair->blocks_own = (raw || type == IBV_QPT_UD) && dice_.once_in(3);
  pair->scatters_fcs = raw && dice_.once_in(4);
  if (raw && dice_.once_in(2)) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    attributes.max_tso_header = std::uint16_t(dice_.between(30, 100));
    pair->max_tso_header = attributes.max_tso_header;
  }
  if (pair->blocks_own || pair->scatters_fcs) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attributes.create_flags = (pair->blocks_own ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0) |
                              (pair->scatters_fcs ? IBV_QP_CREATE_SCATTER_FCS : 0);
  }
  if (dice_.once_in(2)) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags = operations_of(*pair);
  }
  const auto asked = attributes.cap;
  pair->qp = ibv_create_qp_ex(contexts_[context], &attributes);
  if (!expect("ibv_create_qp_ex", made(pair->qp), {0})) return;
  if (attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) pair->extended = ibv_qp_to_qp_ex(pair->qp);
  pair->cap = attributes.cap;
  if (pair->cap.max_send_wr < asked.max_send_wr ||
      pair->cap.max_inline_data < (asked.max_send_wr ? asked.max_inline_data : 0))
    fail("ibv_create_qp gave less than asked for");
  if (sends_only && (pair->cap.max_recv_wr != 0 || pair->cap.max_recv_sge != 0))
    fail("ibv_create_qp gave receives to a QP that only sends");
  pair->walker = index_;
  pair->context = context;
  if (shares) pair->shared = shared;
  pair->signals_all = attributes.sq_sig_all != 0;
  pair->number = pair->qp->qp_num;
  pair->psn = std::uint32_t(dice_.bits()) & 0xffffff;
  pair->qkey = 0x1000 + dice_.below(2);
  ++pair->domain->users;
  ++pair->send_queue->users;
  ++pair->receive_queue->users;
  if (shares) ++shared->users;
  pairs_.push_back(pair);
  note_room();
}

void Walker::destroy_something() {
  const auto pick = [&](auto& objects) {
    if (auto object = any(objects)) remove(object);
  };
  switch (dice_.below(13)) {
    case 12: return pick(devices_);
    case 0: return pick(threads_);
    case 1: return pick(domains_);
    case 2: return pick(regions_);
    case 3: return pick(windows_);
    case 4: return pick(ways_);
    case 5: return pick(channels_);
    case 6:
    case 7: return pick(queues_);
    case 8: return pick(shared_);
    default: break;
  }
  if (pairs_.size() > kMostPairs / 2) pick(pairs_);
}

void Walker::remove(const std::shared_ptr<ThreadDomain>& thread) {
  const int wanted = thread->users != 0 ? EBUSY : 0;
  if (!expect("ibv_dealloc_td", ibv_dealloc_td(thread->td), {wanted}) || wanted != 0) return;
  std::erase(threads_, thread);
}

void Walker::remove(const std::shared_ptr<Domain>& domain) {
  const int wanted = domain->users != 0 ? EBUSY : 0;
  if (!expect("ibv_dealloc_pd", ibv_dealloc_pd(domain->pd), {wanted}) || wanted != 0) return;
  if (domain->protection) --domain->protection->users;
  if (domain->thread) --domain->thread->users;
  std::erase(domains_, domain);
}

void Walker::remove(const std::shared_ptr<Region>& region) {
  region->intact = false;
  const int answer = ibv_dereg_mr(region->mr);
  const bool free = answer == 0;
  if (!expect("ibv_dereg_mr", answer, region->may_be_bound ? std::set{0, EBUSY} : std::set{0}) || !free) return;
  --region->domain->users;
  if (region->device) --region->device->users;
  std::erase(regions_, region);
}

void Walker::remove(const std::shared_ptr<Window>& window) {
  if (!expect("ibv_dealloc_mw", ibv_dealloc_mw(window->mw), {0})) return;
  --window->domain->users;
  std::erase(windows_, window);
}

void Walker::remove(const std::shared_ptr<Way>& way) {
  if (!expect("ibv_destroy_ah", ibv_destroy_ah(way->ah), {0})) return;
  --way->domain->users;
  std::erase(ways_, way);
}

void Walker::remove(const std::shared_ptr<Channel>& channel) {
  const int wanted = channel->users != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_comp_channel", ibv_destroy_comp_channel(channel->channel), {wanted}) || wanted != 0) return;
  std::erase(channels_, channel);
}

void Walker::remove(const std::shared_ptr<Queue>& queue) {
  const int wanted = queue->users != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_cq", ibv_destroy_cq(queue->cq), {wanted}) || wanted != 0) return;
  if (queue->channel) --queue->channel->users;
  if (queue->parent) --queue->parent->users;
  std::erase(queues_, queue);
}

void Walker::remove(const std::shared_ptr<SharedQueue>& shared) {
  const int wanted = shared->users != 0 ? EBUSY : 0;
  shared->alive = wanted != 0;
  if (!expect("ibv_destroy_srq", ibv_destroy_srq(shared->srq), {wanted}) || wanted != 0) return;
  for (const auto& [id, receive] : shared->posted) give_back(receive);
  --shared->domain->users;
  leave_domain(*shared);
  std::erase(shared_, shared);
}

void Walker::remove(const std::shared_ptr<Pair>& pair) {
  const int wanted = pair->groups.empty() && pair->rules == 0 ? 0 : EBUSY;
  pair->alive = pair->alive && wanted != 0;
  if (!expect("ibv_destroy_qp", ibv_destroy_qp(pair->qp), {wanted}) || wanted != 0) return;
  reset(*pair);
  pair->peer.reset();
  pair->led.clear();
  --pair->domain->users;
  --pair->send_queue->users;
  --pair->receive_queue->users;
  if (pair->shared) --pair->shared->users;
  std::erase(pairs_, pair);
}

template <class Object>
void Walker::remove_all(std::vector<std::shared_ptr<Object>>& objects) {
  remove_each(objects, [this](const std::shared_ptr<Object>& object) { remove(object); });
}

void Walker::close() {
  if (town_.broken) return;
  for (const auto& domain : std::vector(domains_))
    if (domain->users != 0) remove(domain);
  for (const auto& pair : std::vector(pairs_))
    for (const auto group : std::set(pair->groups)) {
      ibv_gid gid{};
      gid.raw[10] = gid.raw[11] = 0xff;
      gid.raw[12] = 239, gid.raw[13] = gid.raw[14] = 1, gid.raw[15] = group;
      if (expect("ibv_detach_mcast", ibv_detach_mcast(pair->qp, &gid, 0), {0})) pair->groups.erase(group);
    }
  close_frames();
  remove_all(pairs_);
  close_extended();
  remove_all(shared_);
  remove_all(queues_);
  remove_all(channels_);
  remove_all(windows_);
  remove_all(regions_);
  remove_all(devices_);
  remove_all(ways_);
  std::ranges::stable_sort(domains_, {}, [](const auto& domain) { return bool(domain->protection); });  // parents first
  remove_all(domains_);
  remove_all(threads_);
  for (ibv_context* context : contexts_) expect("ibv_close_device", ibv_close_device(context), {0});
  if (!arena_.guard_is_whole()) fail("memory that nobody may write changed");
}

}  // namespace rnicsim::testing
