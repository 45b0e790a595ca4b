#include "model/nic/send_wqe_cache.h"

#include <memory>
#include <utility>

namespace rnicsim::nic {

void SendWqeCache::hold(const WqeHeld& wqe) {
  for (std::uint16_t block = 0; block < wqe.blocks; ++block) {
    const auto entry = key(wqe.qpn, static_cast<std::uint16_t>(wqe.index + block));
    if (!tags_.touch(entry)) tags_.insert(entry);
  }
}

void SendWqeCache::count(bool here) {
  ++counters_.lookups;
  ++(here ? counters_.hits : counters_.misses);
}

void SendWqeCache::need(const WqeNeeded& wqe) {
  bool here = true;
  for (std::uint16_t block = 0; block < wqe.blocks; ++block)
    here &= tags_.touch(key(wqe.qpn, static_cast<std::uint16_t>(wqe.index + block)));
  count(here);
  if (here) return at_hand(Tag{wqe.tag});
  fetch({wqe.qpn, wqe.pasid, wqe.address, wqe.blocks * abi::kSendBlock, 0, wqe});
}

// True: all of it is here. It is not needed any more.
bool SendWqeCache::take(const WqeRetired& wqe) {
  bool here = true;
  for (std::uint16_t block = 0; block < wqe.blocks; ++block)
    here &= tags_.erase(key(wqe.qpn, static_cast<std::uint16_t>(wqe.index + block)));
  count(here);
  return here;
}

Fifo<SendWqeCache::Waiting>& SendWqeCache::line(Qpn qpn) {
  auto* line = waiting_.find(qpn.value);
  return line != nullptr ? *line : waiting_.put(qpn.value, std::make_unique<Fifo<Waiting>>());
}

void SendWqeCache::retire(WqeRetired&& wqe) {
  const bool here = take(wqe);
  auto& line = this->line(wqe.qpn);
  if (here && line.empty()) {
    if (wqe.cqe) cqe(std::move(*wqe.cqe));
    return;
  }
  const auto ticket = ++tickets_;
  const Fetch wanted{wqe.qpn, wqe.pasid, wqe.address, wqe.blocks * abi::kSendBlock, ticket, std::nullopt};
  if (wqe.cqe) wqe.cqe->behind_payload = false;
  line.push_back({std::move(wqe), here, ticket});
  if (!here) fetch(wanted);
}

void SendWqeCache::fetch(const Fetch& wanted) {
  if (!slots_.take([this, wanted] { start(wanted); })) ++counters_.slot_waits;
}

void SendWqeCache::start(const Fetch& fetch) {
  dma_.read(fetch.pasid, fetch.address, fetch.bytes,
            [this, kept = std::make_unique<Fetch>(fetch), resets = resets_](AccessResult, const Payload&) {
              if (resets == resets_) fetched(*kept);
            });
}

// What the ring says now is not looked at: the engine knows the WQE.
void SendWqeCache::fetched(const Fetch& fetch) {
  slots_.give_back();
  if (!fetch.needed) return complete(fetch.qpn, fetch.ticket);
  hold({fetch.qpn, fetch.needed->index, fetch.needed->blocks});
  at_hand(Tag{fetch.needed->tag});
}

void SendWqeCache::complete(Qpn qpn, std::uint64_t ticket) {
  auto& line = this->line(qpn);
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line[i].ticket == ticket) line[i].here = true;
  while (!line.empty() && line.front().here) {
    auto done = std::move(line.front().wqe.cqe);
    line.pop_front();
    if (done) cqe(std::move(*done));
  }
}

void SendWqeCache::forget_qp(Qpn qpn) { line(qpn).clear(); }

void SendWqeCache::reset() {
  ++resets_;
  tags_.clear();
  waiting_.clear();
  slots_.clear();
}

}  // namespace rnicsim::nic
