// SPDX-License-Identifier: Apache-2.0
// Work queues, tables, rules and counters: created, changed, destroyed. Objects in use are busy.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::size_t kMostOfFrames = 5;  // objects of a kind
constexpr std::size_t kMostRules = 10;

// Flow attributes, followed by specs.
class RuleBytes {
 public:
  RuleBytes() : bytes_(sizeof(ibv_flow_attr)) {
    attributes().size = sizeof(ibv_flow_attr);
    attributes().port = 1;
  }
  ibv_flow_attr& attributes() { return *reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
  template <class Spec>
  void add(ibv_flow_spec_type type, Spec spec) {
    spec.type = type;
    spec.size = sizeof spec;
    const auto* at = reinterpret_cast<const std::byte*>(&spec);
    bytes_.insert(bytes_.end(), at, at + sizeof spec);
    ++attributes().num_of_specs;
  }

 private:
  std::vector<std::byte> bytes_;
};

RuleBytes bytes_of(const Rule& rule) {
  RuleBytes bytes;
  bytes.attributes().type = rule.kind;
  bytes.attributes().priority = rule.priority;
  bytes.attributes().flags = rule.passes_on ? IBV_FLOW_ATTR_FLAGS_DONT_TRAP : 0;
  if (rule.kind == IBV_FLOW_ATTR_NORMAL) {
    ibv_flow_spec_eth ethernet{};
    std::ranges::copy(address_of(rule.station), ethernet.val.dst_mac);
    std::ranges::fill(ethernet.mask.dst_mac, std::uint8_t{0xff});
    bytes.add(IBV_FLOW_SPEC_ETH, ethernet);
  }
  if (rule.port) {
    ibv_flow_spec_tcp_udp udp{};
    udp.val.dst_port = __builtin_bswap16(*rule.port);
    udp.mask.dst_port = 0xffff;
    bytes.add(IBV_FLOW_SPEC_UDP, udp);
  }
  if (rule.tag)
    bytes.add(IBV_FLOW_SPEC_ACTION_TAG, ibv_flow_spec_action_tag{.type = {}, .size = 0, .tag_id = *rule.tag});
  if (rule.drops) bytes.add(IBV_FLOW_SPEC_ACTION_DROP, ibv_flow_spec_action_drop{});
  if (rule.counters)
    bytes.add(IBV_FLOW_SPEC_ACTION_COUNT,
              ibv_flow_spec_counter_action{.type = {}, .size = 0, .counters = rule.counters->counters});
  return bytes;
}

template <class Object>
std::shared_ptr<Object> one_in(Dice& dice, const std::vector<std::shared_ptr<Object>>& objects, std::uint32_t context) {
  std::vector<std::shared_ptr<Object>> ours;
  for (const auto& object : objects)
    if (object->context == context) ours.push_back(object);
  return ours.empty() ? nullptr : dice.one_of(ours);
}

// Draws header fields that the device can hash.
std::uint64_t draw_fields(Dice& dice) {
  constexpr std::uint64_t kAll =
      IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;
  return dice.once_in(3) ? dice.bits() & kAll : kAll;
}

}  // namespace

// Results of creating one more object: another process of the host may be within such a call.
template <class Objects>
std::set<int> Walker::room_for(Objects Walker::*objects, std::size_t most) const {
  std::size_t made = 0, others = 0;
  for (const Walker* walker : town_.walkers) {
    if (walker->host() != host()) continue;
    made += (walker->*objects).size();
    others += walker != this;
  }
  if (made + others < most) return {0};
  return others == 0 ? std::set{ENOMEM} : std::set{0, ENOMEM};
}

// Creates an object of each kind, so that frames find receivers.
void Walker::make_frame_objects(std::uint32_t context) {
  make_pair(context, IBV_QPT_RAW_PACKET);
  for (int i = 0; i < 2; ++i) make_work_queue(context);
  make_table(context);
  make_spread(context);
  for (int i = 0; i < 3; ++i) make_rule(context);
}

void Walker::make_of_frames() {
  const auto context = dice_.below(kContexts);
  switch (dice_.below(10)) {
    case 0:
    case 1: return work_queues_.size() < kMostOfFrames ? make_work_queue(context) : void();
    case 2: return tables_.size() < kMostOfFrames ? make_table(context) : void();
    case 3: return spreads_.size() < kMostOfFrames ? make_spread(context) : void();
    case 4: return counters_.size() < kMostOfFrames ? make_counters(context) : read_counters();
    case 5: return read_counters();
    default: return rules_.size() < kMostRules ? make_rule(context) : void();
  }
}

void Walker::destroy_of_frames() {
  const auto pick = [&](auto& objects) {
    if (auto object = any(objects)) remove(object);
  };
  switch (dice_.below(8)) {
    case 0:
    case 1: {
      if (const auto queue = any(work_queues_)) remove_work_queue(queue);
      return;
    }
    case 2: return pick(tables_);
    case 3: return pick(spreads_);
    case 4: return pick(counters_);
    default: return pick(rules_);
  }
}

void Walker::make_work_queue(std::uint32_t context) {
  auto pair = std::make_shared<Pair>();
  pair->domain = any_domain(context);
  pair->send_queue = pair->receive_queue = any_queue(context);
  if (!pair->domain || !pair->receive_queue) return;
  ibv_wq_init_attr wanted{};
  wanted.wq_type = IBV_WQT_RQ;
  wanted.max_wr = dice_.between(1, 12);
  wanted.max_sge = dice_.between(1, 3);
  wanted.pd = pair->domain->pd;
  wanted.cq = pair->receive_queue->cq;
  if (dice_.once_in(4)) {
    wanted.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
    wanted.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
    pair->scatters_fcs = true;
  }
  const auto asked = wanted;
  pair->wq = ibv_create_wq(contexts_[context], &wanted);
  if (!expect("ibv_create_wq", made(pair->wq), {0})) return;
  if (wanted.max_wr < asked.max_wr || wanted.max_sge < asked.max_sge) fail("ibv_create_wq gave less than asked for");
  pair->cap.max_recv_wr = wanted.max_wr;
  pair->cap.max_recv_sge = wanted.max_sge;
  pair->walker = index_;
  pair->context = context;
  pair->type = IBV_QPT_RAW_PACKET;
  pair->number = pair->wq->wq_num;
  ++pair->domain->users;
  ++pair->receive_queue->users;
  work_queues_.push_back(pair);
  if (!dice_.once_in(4)) move_work_queue(pair, IBV_WQS_RDY);
}

// The library uses the last state that it knows: it does not know that a queue has failed.
void Walker::move_work_queue(const std::shared_ptr<Pair>& pair, ibv_wq_state to) {
  ibv_wq_attr wanted{};
  wanted.attr_mask = IBV_WQ_ATTR_STATE;
  wanted.wq_state = to;
  wanted.curr_wq_state = pair->wq->state;
  int answer = to == IBV_WQS_RDY && pair->wq->state == IBV_WQS_ERR ? EINVAL : 0;
  if (dice_.once_in(4)) wanted.attr_mask |= IBV_WQ_ATTR_CURR_STATE;
  if (dice_.once_in(12)) {
    switch (dice_.below(4)) {
      case 0: wanted.attr_mask |= 1u << dice_.between(3, 31), answer = EINVAL; break;
      case 1: wanted.wq_state = ibv_wq_state(dice_.between(3, 9)), answer = EINVAL; break;
      case 2:
        wanted.attr_mask |= IBV_WQ_ATTR_CURR_STATE;
        wanted.curr_wq_state = ibv_wq_state((pair->wq->state + 1) % 3), answer = EINVAL;
        break;
      default:
        wanted.attr_mask |= IBV_WQ_ATTR_FLAGS;
        wanted.flags = wanted.flags_mask = IBV_WQ_FLAGS_SCATTER_FCS;
        if (answer == 0) answer = EOPNOTSUPP;
    }
  }
  const bool was_reset = pair->told == IBV_QPS_RESET;
  const auto before = pair->wq->state;
  std::set<int> allowed{answer};
  if (pair->vague() && to == IBV_WQS_RDY) allowed.insert(EINVAL);  // the CQ may fail within the call
  const int given = ibv_modify_wq(pair->wq, &wanted);
  const std::string call = "ibv_modify_wq from " + std::to_string(before) + " to " + std::to_string(wanted.wq_state);
  if (!expect(call, given, allowed)) return;
  if (given != 0) {
    if (pair->wq->state != before) fail("ibv_modify_wq changed what it refused");
    return;
  }
  if (to == IBV_WQS_RESET) {
    reset(*pair);
    pair->told = IBV_QPS_RESET;
  } else if (to == IBV_WQS_ERR) {
    pair->told = IBV_QPS_ERR;
  } else if (was_reset) {
    pair->told = IBV_QPS_RTR;
  }
}

void Walker::make_table(std::uint32_t context) {
  auto table = std::make_shared<IndirectionTable>();
  table->context = context;
  std::vector<ibv_wq*> queues;
  ibv_rwq_ind_table_init_attr wanted{};
  wanted.log_ind_tbl_size = dice_.below(4);
  for (std::size_t i = 0; i < std::size_t{1} << wanted.log_ind_tbl_size; ++i) {
    const auto queue = one_in(dice_, work_queues_, context);
    if (!queue) return;
    table->queues.push_back(queue);
    queues.push_back(queue->wq);
  }
  wanted.ind_tbl = queues.data();
  // Tables are counted by context: neither kernel nor device knows tables.
  const auto its = std::size_t(std::ranges::count(tables_, context, [](const auto& one) { return one->context; }));
  const int allowed = its < town_.few.spreads ? 0 : ENOMEM;
  table->table = ibv_create_rwq_ind_table(contexts_[context], &wanted);
  if (!expect("ibv_create_rwq_ind_table", made(table->table), {allowed}) || table->table == nullptr) return;
  for (const auto& queue : table->queues) ++queue->users;
  tables_.push_back(table);
}

void Walker::make_spread(std::uint32_t context) {
  auto spread = std::make_shared<Spread>();
  spread->context = context;
  spread->domain = any_domain(context);
  spread->table = one_in(dice_, tables_, context);
  if (!spread->domain || !spread->table) return;
  std::array<std::uint8_t, 40> key;
  for (auto& byte : key) byte = std::uint8_t(dice_.below(256));
  ibv_qp_init_attr_ex wanted{};
  wanted.qp_type = IBV_QPT_RAW_PACKET;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  wanted.pd = spread->domain->pd;
  wanted.rwq_ind_tbl = spread->table->table;
  wanted.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                         .rx_hash_key_len = 40,
                         .rx_hash_key = key.data(),
                         .rx_hash_fields_mask = draw_fields(dice_)};
  const auto allowed = room_for(&Walker::spreads_, town_.few.spreads);
  spread->qp = ibv_create_qp_ex(contexts_[context], &wanted);
  if (!expect("ibv_create_qp_ex of a table", made(spread->qp), allowed) || spread->qp == nullptr) return;
  ++spread->domain->users;
  ++spread->table->users;
  spreads_.push_back(spread);
}

void Walker::make_counters(std::uint32_t context) {
  auto set = std::make_shared<CounterSet>();
  set->context = context;
  ibv_counters_init_attr none{};
  const auto allowed = room_for(&Walker::counters_, town_.few.counters);
  set->counters = ibv_create_counters(contexts_[context], &none);
  if (!expect("ibv_create_counters", made(set->counters), allowed) || set->counters == nullptr) return;
  counters_.push_back(set);
}

// Attached counters continue. They never fall, and the bytes fit the lengths of the frames that are sent.
void Walker::read_counters() {
  const auto set = any(counters_);
  if (!set) return;
  if (!set->attached || dice_.once_in(6)) {
    const int wanted = set->rules != 0 ? EBUSY : 0;
    ibv_counter_attach_attr packets{.counter_desc = IBV_COUNTER_PACKETS, .index = 0, .comp_mask = 0};
    ibv_counter_attach_attr bytes{.counter_desc = IBV_COUNTER_BYTES, .index = 1, .comp_mask = 0};
    if (set->attached && wanted == 0) return;  // two attached counters with one index return their sum
    for (auto* point : {&packets, &bytes})
      if (!expect("ibv_attach_counters_point_flow", ibv_attach_counters_point_flow(set->counters, point, nullptr),
                  {wanted}))
        return;
    set->attached = wanted == 0;
    return;
  }
  std::array<std::uint64_t, 2> values{};
  const std::uint32_t room = dice_.once_in(8) ? 1 : 2;
  if (!expect("ibv_read_counters", ibv_read_counters(set->counters, values.data(), room, 0), {room == 1 ? EINVAL : 0}))
    return;
  if (room == 1) return;
  const auto packets = values[0] - set->packets, bytes = values[1] - set->bytes;
  if (values[0] < set->packets || values[1] < set->bytes || bytes < kShortestRoce * packets || bytes > 9018 * packets)
    fail("ibv_read_counters: " + std::to_string(bytes) + " bytes more in " + std::to_string(packets) + " frames more");
  set->packets = values[0];
  set->bytes = values[1];
}

void Walker::make_rule(std::uint32_t context) {
  auto rule = std::make_shared<Rule>();
  if (dice_.once_in(2)) rule->spread = one_in(dice_, spreads_, context);
  if (!rule->spread) {
    std::vector<std::shared_ptr<Pair>> raw;
    for (const auto& pair : pairs_)
      if (pair->type == IBV_QPT_RAW_PACKET && pair->context == context) raw.push_back(pair);
    rule->pair = any(raw);
    if (!rule->pair) return;
  }
  constexpr ibv_flow_attr_type kOthers[] = {IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER};
  if (dice_.once_in(8)) rule->kind = kOthers[dice_.below(3)];
  rule->priority = std::uint16_t(dice_.below(3));
  rule->station = std::uint8_t(dice_.below(kStations));
  if (rule->kind == IBV_FLOW_ATTR_NORMAL && dice_.once_in(2))
    rule->port = std::uint16_t(kFirstUdpPort + dice_.below(kUdpPorts));
  if (dice_.once_in(2)) rule->tag = dice_.between(1, 1000);
  rule->drops = dice_.once_in(8);
  rule->passes_on = rule->kind == IBV_FLOW_ATTR_NORMAL && dice_.once_in(8);
  if (dice_.once_in(3)) rule->counters = one_in(dice_, counters_, context);
  // Entered before the call: a frame may match the rule before the call returns.
  for (const auto& queue : receivers_of(*rule)) queue->led.push_back(rule);
  ++town_.rule_changes[host()];
  const auto allowed = room_for(&Walker::rules_, town_.few.rules);
  auto bytes = bytes_of(*rule);
  rule->flow = ibv_create_flow(rule->pair ? rule->pair->qp : rule->spread->qp, &bytes.attributes());
  ++town_.rule_changes[host()];
  if (!expect("ibv_create_flow", made(rule->flow), allowed) || rule->flow == nullptr) return;
  ++(rule->pair ? rule->pair->rules : rule->spread->rules);
  if (rule->counters) ++rule->counters->rules;
  rules_.push_back(rule);
}

std::vector<std::shared_ptr<Pair>> Walker::receivers_of(const Rule& rule) {
  return rule.pair ? std::vector{rule.pair} : rule.spread->table->queues;
}

void Walker::remove_work_queue(const std::shared_ptr<Pair>& pair) {
  const int wanted = pair->users != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_wq", ibv_destroy_wq(pair->wq), {wanted}) || wanted != 0) return;
  reset(*pair);
  pair->alive = false;
  pair->led.clear();
  --pair->domain->users;
  --pair->receive_queue->users;
  std::erase(work_queues_, pair);
}

void Walker::remove(const std::shared_ptr<IndirectionTable>& table) {
  const int wanted = table->users != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_rwq_ind_table", ibv_destroy_rwq_ind_table(table->table), {wanted}) || wanted != 0) return;
  for (const auto& queue : table->queues) --queue->users;
  std::erase(tables_, table);
}

void Walker::remove(const std::shared_ptr<Spread>& spread) {
  const int wanted = spread->rules != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_qp of a table", ibv_destroy_qp(spread->qp), {wanted}) || wanted != 0) return;
  --spread->domain->users;
  --spread->table->users;
  std::erase(spreads_, spread);
}

void Walker::remove(const std::shared_ptr<CounterSet>& set) {
  const int wanted = set->rules != 0 ? EBUSY : 0;
  if (!expect("ibv_destroy_counters", ibv_destroy_counters(set->counters), {wanted}) || wanted != 0) return;
  std::erase(counters_, set);
}

void Walker::remove(const std::shared_ptr<Rule>& rule) {
  ++town_.rule_changes[host()];
  const int answer = ibv_destroy_flow(rule->flow);
  ++town_.rule_changes[host()];
  if (!expect("ibv_destroy_flow", answer, {0})) return;
  --(rule->pair ? rule->pair->rules : rule->spread->rules);
  if (rule->counters) --rule->counters->rules;
  std::erase(rules_, rule);
}

void Walker::break_frames() {
  const auto context = dice_.below(kContexts);
  const auto queue = any(work_queues_);
  const auto rule = any(rules_);
  const auto table = any(tables_);
  ibv_wq_attr to_error{};
  to_error.attr_mask = IBV_WQ_ATTR_STATE;
  to_error.wq_state = IBV_WQS_ERR;
  switch (dice_.below(8)) {
    case 0:
      if (queue) garbled(queue->wq->handle, "ibv_destroy_wq", [&] { return ibv_destroy_wq(queue->wq); });
      return;
    case 1:
      if (queue) garbled(queue->wq->handle, "ibv_modify_wq", [&] { return ibv_modify_wq(queue->wq, &to_error); });
      return;
    case 2:
      if (rule) garbled(rule->flow->handle, "ibv_destroy_flow", [&] { return ibv_destroy_flow(rule->flow); });
      return;
    case 3:
      if (rule) swapped(rule->flow->context, "ibv_destroy_flow", [&] { return ibv_destroy_flow(rule->flow); });
      return;
    case 4: {
      if (!queue || queue->context == context) return;
      ibv_wq* other = queue->wq;
      ibv_rwq_ind_table_init_attr wanted{.log_ind_tbl_size = 0, .ind_tbl = &other, .comp_mask = 0};
      expect("ibv_create_rwq_ind_table of another context's queue",
             made(ibv_create_rwq_ind_table(contexts_[context], &wanted)), {EINVAL});
      return;
    }
    case 5: {
      const auto pair = any(pairs_);
      if (!pair || pair->type == IBV_QPT_RAW_PACKET) return;
      RuleBytes bytes;
      expect("ibv_create_flow to another type", made(ibv_create_flow(pair->qp, &bytes.attributes())),
             {pair->type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL});
      return;
    }
    case 6: {
      const auto spread = any(spreads_);
      if (!spread) return;
      RuleBytes bytes;
      const bool bad_port = dice_.once_in(2);
      if (bad_port)
        bytes.attributes().port = std::uint8_t(dice_.between(2, 255));
      else
        bytes.attributes().flags = 1u << dice_.between(3, 31);
      expect("ibv_create_flow of nonsense", made(ibv_create_flow(spread->qp, &bytes.attributes())), {EINVAL});
      return;
    }
    default: {
      const auto domain = any_domain(context);
      if (!domain || !table || table->context != context) return;
      std::array<std::uint8_t, 40> key{};
      ibv_qp_init_attr_ex wanted{};
      wanted.qp_type = IBV_QPT_RAW_PACKET;
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
      wanted.pd = domain->pd;
      wanted.rwq_ind_tbl = table->table;
      wanted.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                             .rx_hash_key_len = 40,
                             .rx_hash_key = key.data(),
                             .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4};
      switch (dice_.below(4)) {
        case 0: wanted.rx_hash_conf.rx_hash_key_len = std::uint8_t(dice_.below(40)); break;
        case 1: wanted.rx_hash_conf.rx_hash_fields_mask |= IBV_RX_HASH_DST_IPV6; break;
        case 2: wanted.cap.max_recv_wr = 1; break;
        default: wanted.rx_hash_conf.rx_hash_function = 0;
      }
      const int answer = made(ibv_create_qp_ex(contexts_[context], &wanted));
      expect("ibv_create_qp_ex of nonsense beside a table", answer, {EINVAL});
    }
  }
}

void Walker::close_frames() {
  remove_each(rules_, [this](const auto& rule) { remove(rule); });
  remove_each(spreads_, [this](const auto& spread) { remove(spread); });
  remove_each(tables_, [this](const auto& table) { remove(table); });
  remove_each(work_queues_, [this](const auto& queue) { remove_work_queue(queue); });
  remove_each(counters_, [this](const auto& set) { remove(set); });
}

}  // namespace rnicsim::testing
