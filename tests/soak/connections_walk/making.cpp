// SPDX-License-Identifier: Apache-2.0
// Creates, migrates and destroys ids and channels.
#include <fcntl.h>
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/base/kernel.h"
#include "tests/soak/connections_walk/walker.h"

namespace rnicsim::testing {

void ConnectionWalker::adopt(const Known& ident, rdma_cm_id* id) {
  ident->id = id;
  ident->host = host_;
  ident->token = ++next_token_;
  ident->space = id->ps;
  ident->datagram = id->qp_type == IBV_QPT_UD;
  ident->synchronous = synchronous_;
  ident->first_cell = free_cell_;
  free_cell_ = (free_cell_ + kDepth) % (kCells - kDepth);
  town_.by_token[ident->token] = ident;
  idents_.push_back(ident);
}

void ConnectionWalker::make_ident() {
  constexpr rdma_port_space kSpaces[] = {RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB};
  const auto space = dice_.once_in(20) ? rdma_port_space(dice_.below(0x200)) : kSpaces[dice_.below(6)];
  const bool exists = std::ranges::find(kSpaces, space) != std::end(kSpaces);
  const std::size_t channel = dice_.below(kChannels);
  rdma_cm_id* id = nullptr;
  const int answer = errno_of(rdma_create_id(synchronous_ ? nullptr : channels_[channel], &id, this, space));
  if (!expect("rdma_create_id", answer, {exists ? 0 : EINVAL}) || answer != 0) return;
  const auto ident = std::make_shared<Ident>(Shape{});
  ident->channel = channel;
  adopt(ident, id);
  if (id->context != this || id->ps != space || id->qp != nullptr) fail("rdma_create_id: not what was asked for");
}

// Passive endpoints only: active ones equal rdma_resolve_addr and the calls behind it.
void ConnectionWalker::make_endpoint() {
  if (!synchronous_ || idents_.size() >= kMostIdents) return;
  const bool datagram = dice_.once_in(4);
  const Place place = draw_local();
  rdma_addrinfo info{};
  info.ai_flags = RAI_PASSIVE;
  info.ai_qp_type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
  info.ai_port_space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
  info.ai_src_addr = written(place);
  info.ai_src_len = sizeof(sockaddr_storage);
  const Binding binding{place, false, !place.ipv6, false};
  std::set<int> allowed;
  rdma_cm_id* id = nullptr;
  int answer = 0;
  {
    const Ports::Change change(ports());
    allowed = ports().answers(rdma_port_space(info.ai_port_space), nullptr, binding);
    answer = errno_of(rdma_create_ep(&id, &info, nullptr, nullptr));
    if (!place.usable() || place.kind == Place::Kind::link_local)
      allowed = {EINVAL};
    else if (!place.wildcard() && place.kind != Place::Kind::own)
      allowed = {EADDRNOTAVAIL};
    else if (!change.undisturbed())
      allowed = {0, EADDRINUSE, EADDRNOTAVAIL};
    if (answer == 0) {
      const auto ident = std::make_shared<Ident>(Shape{.stage = Shape::Stage::bound});
      adopt(ident, id);
      ident->device = ident->bound_to_device = !place.wildcard();
      ident->ipv6 = place.ipv6;
      Binding bound = binding;
      bound.place.port = ntohs(rdma_get_src_port(id));
      ports().add(ident->space, ident.get(), bound);
    }
  }
  expect("rdma_create_ep at " + place.text(), answer, allowed);
}

std::vector<ConnectionWalker::Known> ConnectionWalker::on_channel(std::size_t channel) const {
  std::vector<Known> found;
  for (const Known& ident : idents_)
    if (ident->channel == channel) found.push_back(ident);
  return found;
}

void ConnectionWalker::destroy(const Known& ident) {
  // Destroys the ids of pending requests first: the listener waits for an event that such an id still holds.
  for (std::size_t i = 0; i < idents_.size(); ++i) {
    const rdma_cm_event* last = idents_[i]->id->event;
    if (last != nullptr && last->listen_id == ident->id && idents_[i] != ident) return destroy(idents_[i]);
  }
  ident->ended = true;
  const Ports::Change change(ports());
  ports().remove(ident.get());
  destroy_qp(ident);
  if (ident->shares_receives) rdma_destroy_srq(ident->id);
  // Another thread acknowledges the id's last event later; rdma_destroy_id must wait for it.
  auto acknowledged = std::make_shared<bool>(true);
  const auto last = std::ranges::find_if(held_, [&](const Held& held) { return held.owner == ident.get(); });
  if (last != held_.end() && dice_.once_in(3)) {
    rdma_cm_event* event = last->event;
    held_.erase(last);
    *acknowledged = false;
    process_->spawn("acknowledges", [this, event, acknowledged] {
      process_->port().settle();
      sleep_until(now() + Duration{50'000'000});
      *acknowledged = true;
      rdma_ack_cm_event(event);
    });
  }
  acknowledge_all_of(*ident);
  rdma_cm_id* id = ident->id;
  std::erase(idents_, ident);
  expect("rdma_destroy_id of " + name(*ident), errno_of(rdma_destroy_id(id)), {0});
  if (!*acknowledged) fail("rdma_destroy_id did not wait for an event that was not acknowledged");
}

void ConnectionWalker::migrate(const Known& ident) {
  if (ident->synchronous) {
    expect("rdma_migrate_id to nothing", errno_of(rdma_migrate_id(ident->id, nullptr)), {EINVAL});
    return;
  }
  acknowledge_all_of(*ident);
  const std::size_t to = dice_.below(kChannels);
  if (!expect("rdma_migrate_id", errno_of(rdma_migrate_id(ident->id, channels_[to])), {0})) return;
  ident->channel = to;
  if (ident->id->channel != channels_[to]) fail("rdma_migrate_id: it is not there");
}

void ConnectionWalker::make_channel(rdma_event_channel*& channel) {
  channel = rdma_create_event_channel();
  if (expect("rdma_create_event_channel", channel == nullptr, {0})) ::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
}

// Replaces a channel that no id uses.
void ConnectionWalker::renew_channel() {
  const std::size_t channel = dice_.below(kChannels);
  if (synchronous_ || !on_channel(channel).empty()) return;
  rdma_destroy_event_channel(channels_[channel]);
  make_channel(channels_[channel]);
}

void ConnectionWalker::set_option(const Known& ident) {
  using Stage = Shape::Stage;
  constexpr int kNames[] = {RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_REUSEADDR, RDMA_OPTION_ID_AFONLY,
                            RDMA_OPTION_ID_ACK_TIMEOUT, 77};
  const int option = kNames[dice_.below(5)];
  const bool byte = option == RDMA_OPTION_ID_TOS || option == RDMA_OPTION_ID_ACK_TIMEOUT;
  const bool right_size = !dice_.once_in(5), right_level = !dice_.once_in(10);
  int value = byte ? int(dice_.below(40)) : int(dice_.below(2));
  const std::size_t bytes = (byte ? 1u : 4u) + (right_size ? 0u : 1u);
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (!right_level || option == 77) return {{ENOSYS, shape}};
    bool allowed = right_size;
    if (option == RDMA_OPTION_ID_REUSEADDR)
      allowed &= shape.stage == Stage::idle || (value != 0 && shape.stage != Stage::listen);
    if (option == RDMA_OPTION_ID_AFONLY) allowed &= shape.stage == Stage::idle || shape.stage == Stage::bound;
    if (option == RDMA_OPTION_ID_ACK_TIMEOUT) allowed &= ident->id->qp_type == IBV_QPT_RC && value <= 31;
    return {{allowed ? 0 : EINVAL, shape}};
  };
  std::uint8_t wide[8]{};
  std::memcpy(wide, &value, sizeof value);
  const Ports::Change change(ports());
  const int answer = errno_of(rdma_set_option(ident->id, right_level ? RDMA_OPTION_ID : 7, option, wide, bytes));
  if (!validate(*ident, "rdma_set_option " + std::to_string(option), answer, rule) || answer != 0) return;
  if (option == RDMA_OPTION_ID_REUSEADDR) ident->reuse = value != 0;
  if (option == RDMA_OPTION_ID_AFONLY) ident->family_only = value != 0;
  Binding* bound = ports().find(ident.get());
  if (bound == nullptr) return;
  bound->reuse = ident->reuse;
  bound->family_only = ident->family_only.value_or(!bound->place.ipv6);
}

}  // namespace rnicsim::testing
