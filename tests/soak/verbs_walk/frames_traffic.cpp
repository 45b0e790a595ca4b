// SPDX-License-Identifier: Apache-2.0
// Raw packets: drawn together with their expected receivers, and checked when they arrive.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/soak/verbs_walk/walker.h"

namespace rnicsim::testing {

namespace {

constexpr std::uint16_t kNoProtocol = 0x88b5;  // EtherType for local experiments
constexpr std::uint32_t kShortest = 60, kFcsBytes = 4;

void put_be16(std::uint8_t* at, std::uint32_t value) {
  at[0] = std::uint8_t(value >> 8);
  at[1] = std::uint8_t(value);
}
std::uint16_t be16(const std::uint8_t* at) { return std::uint16_t(at[0] << 8 | at[1]); }

// Headers of a frame of `bytes` bytes in all.
std::array<std::uint8_t, kFrameHeaders> headers_of(const Frame& frame, std::uint32_t bytes) {
  std::array<std::uint8_t, kFrameHeaders> headers{};
  std::ranges::copy(address_of(frame.station), headers.begin());
  headers[6] = 2;
  headers[11] = std::uint8_t(frame.walker);
  put_be16(&headers[12], bytes < kShortest ? kNoProtocol : 0x0800);
  headers[14] = 0x45;
  put_be16(&headers[16], bytes - 14);
  headers[22] = 64;
  headers[23] = 17;
  headers[26] = headers[30] = 10;
  headers[29] = std::uint8_t(frame.walker);
  put_be16(&headers[34], 5000);
  put_be16(&headers[36], frame.port);
  put_be16(&headers[38], bytes - 34);
  return headers;
}

}  // namespace

std::array<std::uint8_t, 6> address_of(std::uint8_t station) {
  return {std::uint8_t(is_group(station) ? 0x03 : 0x02), 0x57, 0, 0, 0, station};
}

std::optional<std::uint8_t> station_of(const std::uint8_t* address) {
  for (std::uint8_t station = 0; station < kStations; ++station)
    if (std::ranges::equal(address_of(station), std::span(address, 6))) return station;
  return std::nullopt;
}

bool Rule::may_take(std::optional<std::uint8_t> to, std::optional<std::uint16_t> udp_port) const {
  switch (kind) {
    case IBV_FLOW_ATTR_NORMAL: return to == station && (!port || port == udp_port);
    case IBV_FLOW_ATTR_MC_DEFAULT: return to && is_group(*to);
    default: return true;
  }
}

// Finds the receivers by the host's present rules: all matching rules of the best priority.
void Walker::find_takers(Frame& frame, std::uint32_t on, std::optional<std::uint16_t> udp_port) {
  std::map<std::uint16_t, std::vector<const Rule*>> by_priority;
  std::vector<const Rule*> takers, defaults;
  for (Walker* walker : town_.walkers) {
    if (walker->host() != on) continue;
    for (const auto& rule : walker->rules_) {
      if (!rule->may_take(frame.station, udp_port)) continue;
      if (rule->kind == IBV_FLOW_ATTR_NORMAL)
        by_priority[rule->priority].push_back(rule.get());
      else if (rule->kind == IBV_FLOW_ATTR_SNIFFER)
        takers.push_back(rule.get());
      else
        defaults.push_back(rule.get());
    }
  }
  bool taken = false;
  for (const auto& [priority, rules] : by_priority) {
    takers.insert(takers.end(), rules.begin(), rules.end());
    taken = !std::ranges::all_of(rules, &Rule::passes_on);
    if (taken) break;
  }
  if (!taken) takers.insert(takers.end(), defaults.begin(), defaults.end());
  for (const Rule* rule : takers) {
    if (rule->drops) continue;
    for (const auto& queue : receivers_of(*rule)) {
      const std::pair<const Pair*, Spread*> one{queue.get(), rule->spread.get()};
      if (std::ranges::find(frame.takers[on], one) == frame.takers[on].end()) frame.takers[on].push_back(one);
    }
  }
}

// Raw QPs are drawn more often than their share of all queues.
void Walker::post_frames() {
  std::vector<std::shared_ptr<Pair>> raw;
  for (const auto& pair : pairs_)
    if (pair->type == IBV_QPT_RAW_PACKET) raw.push_back(pair);
  if (const auto queue = any(work_queues_); queue && dice_.once_in(3)) return post_receives(queue);
  const auto pair = any(raw);
  if (!pair) return;
  if (dice_.once_in(3)) return post_receives(pair);
  pair->extended != nullptr&& dice_.once_in(2) ? post_batch(pair) : post_sends(pair);
}

// A send of a raw packet QP.
bool Walker::draw_frame(const std::shared_ptr<Pair>& pair, Request& request) {
  auto& [wr, sges, send, error, inlined, headers, namings] = request;
  const auto cell = arena_.take();
  const auto region = cell ? draw_region(*pair->domain, *cell) : nullptr;
  if (!region) {
    if (cell) arena_.give_back(*cell);
    return false;
  }
  constexpr ibv_wr_opcode kForeign[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
  wr.opcode = dice_.once_in(40) ? kForeign[dice_.below(3)] : dice_.once_in(5) ? IBV_WR_TSO : IBV_WR_SEND;
  send.id = wr.wr_id = ++next_id_ | kSendMark;
  send.opcode = wr.opcode;
  send.cell = *cell;
  send.region = region;
  send.foreign = !pair->does(wr.opcode);
  if (dice_.once_in(2)) wr.send_flags |= IBV_SEND_SIGNALED;
  send.signalled = pair->signals_all || (wr.send_flags & IBV_SEND_SIGNALED);
  const bool segmented = wr.opcode == IBV_WR_TSO;
  inlined = !send.foreign && dice_.once_in(segmented ? 40 : 5);
  if (inlined) wr.send_flags |= IBV_SEND_INLINE;

  Frame frame{.walker = index_, .station = std::uint8_t(dice_.below(kStations))};
  frame.port = std::uint16_t(kFirstUdpPort + dice_.below(kUdpPorts));
  frame.checked = dice_.once_in(2);
  frame.repeated = segmented;
  if (frame.checked) wr.send_flags |= IBV_SEND_IP_CSUM;
  std::uint8_t* bytes = arena_.at(*cell);
  if (segmented) {
    const auto mss = dice_.between(18, 600), segments = dice_.below((Arena::kCell - 64) / mss) + 1;
    send.length = dice_.once_in(20) ? 0 : mss * segments;
    for (std::uint32_t at = 0; at < send.length; at += mss) fill_pattern(bytes + at, mss, send.id);
    headers = headers_of(frame, kFrameHeaders + mss);
    wr.tso = {headers.data(), std::uint16_t(headers.size()), std::uint16_t(dice_.once_in(30) ? 0 : mss)};
    if (!send.foreign && (pair->max_tso_header < headers.size() || wr.tso.mss == 0 || inlined)) error = EINVAL;
  } else {
    send.length = dice_.once_in(20) ? dice_.below(kFrameHeaders) : dice_.between(kShortest, Arena::kCell - 40);
    const auto made_of = headers_of(frame, send.length);
    std::copy_n(made_of.begin(), std::min<std::size_t>(made_of.size(), send.length), bytes);
    if (send.length >= kShortest) fill_pattern(bytes + kFrameHeaders, send.length - kFrameHeaders, send.id);
    if (inlined && send.length > pair->cap.max_inline_data) error = EINVAL;
  }
  const bool covered = region->covers(*cell, Arena::kCell);
  const auto address = covered && !inlined ? region->address(arena_, *cell) : arena_.address(*cell);
  wr.sg_list = sges.data();
  wr.num_sge = cut_in_two(sges.data(), address, send.length, region->mr->lkey, pair->cap.max_send_sge);
  if (wr.num_sge == 0) send.length = 0;
  send.legal = inlined || send.length == 0 || (covered && region->domain->root() == pair->domain->root());
  send.zeros = region->null && !inlined;
  send.odd_length = segmented ? send.length == 0 : send.length < 14;
  if (dice_.once_in(50)) wr.num_sge = dice_.once_in(2) ? -1 : int(pair->cap.max_send_sge) + 1, error = EINVAL;

  const bool short_one = !segmented && send.length < kShortest;
  frame.reaches = {host() != 0, host() != 1};
  if (is_group(frame.station) && !pair->blocks_own) frame.reaches[host()] = true;
  frame.changes = town_.rule_changes;
  for (std::uint32_t on = 0; on < 2; ++on)
    if (frame.reaches[on]) find_takers(frame, on, short_one ? std::nullopt : std::optional(frame.port));
  if (!short_one) town_.frames[send.id] = std::move(frame);
  return true;
}

// Checks a received frame: a rule must lead here, and the frame comes once.
void Walker::check_frame(Pair& pair, const Receive& receive, const ibv_wc& wc, std::optional<std::uint32_t> tag) {
  ++frames_;
  const std::uint32_t fcs = pair.scatters_fcs ? kFcsBytes : 0;
  const bool sniffs = std::ranges::any_of(
      pair.led, [](const std::shared_ptr<Rule>& rule) { return rule->kind == IBV_FLOW_ATTR_SNIFFER; });
  const auto least = sniffs ? kShortestRoce : kShortest;
  if (wc.byte_len < least + fcs || wc.byte_len > receive.length)
    return fail("a frame of " + std::to_string(wc.byte_len) + " bytes into a receive of " +
                std::to_string(receive.length));
  if (!receive.region || !receive.region->intact || receive.region->null) return;
  if (!receive.legal) return fail("a frame went well into memory that it has no right to");
  if (receive.slot) load_slot(*receive.slot, receive.cell, wc.byte_len);
  const auto* bytes = arena_.at(receive.cell);
  const auto length = wc.byte_len - fcs;
  const bool udp = be16(bytes + 12) == 0x0800;
  const auto station = station_of(bytes);
  const std::optional port = udp ? std::optional(be16(bytes + 36)) : std::nullopt;
  const auto leads = [&](const std::shared_ptr<Rule>& rule) { return rule->may_take(station, port) && !rule->drops; };
  if (std::ranges::none_of(pair.led, leads)) return fail("a frame came where no rule ever led it");
  const auto tags = [&](const std::shared_ptr<Rule>& rule) { return leads(rule) && rule->tag.value_or(0) == *tag; };
  if (tag && std::ranges::none_of(pair.led, tags))
    return fail("a frame came with tag " + std::to_string(*tag) + ", which none of its rules has");
  if (!udp || !station || length < kFrameHeaders + sizeof(std::uint64_t)) return;
  std::uint64_t id = 0;
  std::memcpy(&id, bytes + kFrameHeaders, sizeof id);
  if (id == 0 && is_zero(bytes + kFrameHeaders, length - kFrameHeaders)) return;  // TSO data from a null region
  const auto found = town_.frames.find(id);
  if (found == town_.frames.end() || !has_pattern(bytes + kFrameHeaders, length - kFrameHeaders, id))
    return fail("a frame came that nobody sent");
  Frame& frame = found->second;
  if (frame.station != *station || frame.port != *port) return fail("a frame came with another's address");
  if (!frame.reaches[host()]) return fail("a frame came to a host that it was not sent to");
  if (frame.checked && !(wc.wc_flags & IBV_WC_IP_CSUM_OK)) return fail("a frame's checksums are not right");
  if (!frame.repeated && !frame.got.insert(&pair).second) return fail("a frame came twice");
  if (frame.changes[host()] == town_.rule_changes[host()]) check_taker(pair, frame);
}

// Valid only if the rules are unchanged since the frame was posted.
void Walker::check_taker(const Pair& pair, const Frame& frame) {
  const auto& takers = frame.takers[host()];
  const auto is_here = [&](const auto& taker) { return taker.first == &pair; };
  if (std::ranges::none_of(takers, is_here)) return fail("a frame came where another rule was to take it");
  if (std::ranges::count_if(takers, is_here) != 1) return;
  Spread* spread = std::ranges::find_if(takers, is_here)->second;
  if (spread == nullptr) return;
  const auto [way, is_new] = spread->ways.try_emplace({frame.walker, frame.port}, &pair);
  if (!is_new && way->second != &pair) fail("two frames of a flow came by different queues of a table");
}

}  // namespace rnicsim::testing
