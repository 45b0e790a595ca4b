// SPDX-License-Identifier: Apache-2.0
// Handles completions: messages of the peer, and the sends that they permit.
#include <arpa/inet.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

void Stream::process() {
  if (!was_connected()) return;
  give_credits();
  std::array<ibv_wc, 16> completions;
  bool any = false;
  // Fewer completions than requested: the CQ is empty. The loop does not poll an empty CQ again, since such a poll may
  // wait for the next completion, and the end of the connection would then be reported together with the data before
  // it.
  for (int count = int(completions.size()); count == int(completions.size());) {
    count = endpoint_->completions().poll(completions);
    if (count < 0) broke(EIO);
    if (count <= 0) break;
    any = true;
    std::uint32_t receives = 0;
    for (const ibv_wc& completion : std::span(completions).first(std::size_t(count))) {
      if ((completion.wr_id & kReceiveWork) == 0) {
        sent(completion);
      } else if (completion.status == IBV_WC_SUCCESS) {
        ++receives;
        received(completion);
      }
    }
    if (state_ == State::connected && endpoint_->post_receives(receives) != 0) broke(EIO);
  }
  if (!any) return;
  waiters_.wake_others();
  give_credits();
}

void Stream::received(const ibv_wc& completion) {
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) return broke(EPROTO);
  const Message message = decode_message(ntohl(completion.imm_data));
  switch (message.op) {
    case Op::data:
      // More messages than places: the peer violates the window.
      if (receive_ring_.messages() >= sizes_.receive_queue || !receive_ring_.arrived(message.value)) broke(EPROTO);
      return;
    case Op::grant:
      window_.granted(std::uint16_t(message.value));
      targets_.look(endpoint_->targets());
      return;
    case Op::iomap: return take_mapping(message.value);
    case Op::control: return take_control(message.value);
    default: return broke(EPROTO);
  }
}

void Stream::take_control(std::uint32_t value) {
  switch (Control(value)) {
    case Control::disconnect: return disconnected();
    case Control::shutdown:
      if (!writable_) return disconnected();
      readable_ = false;
      return;
    default: return;
  }
}

void Stream::sent(const ibv_wc& completion) {
  const Message message = decode_message(std::uint32_t(completion.wr_id));
  switch (message.op) {
    case Op::grant: controls_.done(); break;
    case Op::control:
      controls_.done();
      if (message == control_message(Control::disconnect)) disconnected();
      break;
    case Op::iomap:
      ++send_places_;
      send_ring_.release(sizeof(WireMapping));
      break;
    default:
      ++send_places_;
      send_ring_.release(message.value);
      break;
  }
  if (completion.status != IBV_WC_SUCCESS) broke(EIO);
}

void Stream::disconnected() {
  if (state_ == State::connected) state_ = State::disconnected;
  readable_ = writable_ = false;
}

// Errors after the end of the connection are ignored.
void Stream::broke(int error) {
  if (state_ != State::connected) return;
  state_ = State::broken;
  error_ = error;
  readable_ = writable_ = false;
}

// A peer that ended without a message, for example a killed process: its kernel disconnects. Data sent before has
// arrived.
void Stream::follow_connection() {
  ConnectionEvent event;
  while (connection_.next(event) == 0) {
    if (event.type != RDMA_CM_EVENT_DISCONNECTED && event.type != RDMA_CM_EVENT_DEVICE_REMOVAL) continue;
    process();
    if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) broke(ENODEV);
    disconnected();
    waiters_.wake_others();
  }
}

void Stream::give_credits() {
  if (state_ != State::connected || !controls_.available()) return;
  if (receive_ring_.half_free() || receive_window_.due()) send_grant();
}

void Stream::send_grant() {
  const Message message{Op::grant, receive_window_.grant()};
  const std::uint32_t place = controls_.take();
  if (!receive_ring_.half_free()) return post(message, true, {}, false, {});
  const std::uint32_t half = sizes_.receive_bytes / 2;
  const WireExtent entry = encode(endpoint_->receive_extent(receive_ring_.publish(), half), swapped_);
  std::byte* bytes = endpoint_->control_bytes(place);
  std::memcpy(bytes, &entry, sizeof entry);
  ibv_sge piece = endpoint_->sge(bytes, sizeof entry);
  const Extent target{peer_list_.address + sizeof entry * peer_entry_, peer_list_.key, sizeof entry};
  peer_entry_ = (peer_entry_ + 1) % peer_list_.length;
  post(message, true, {&piece, 1}, sizes_.inline_bytes >= sizeof entry, target);
}

void Stream::post(Message message, bool immediate, std::span<ibv_sge> pieces, bool inlined, const Extent& target) {
  if (const int error = endpoint_->post(message, immediate, pieces, inlined, target)) broke(error);
}

bool Stream::sends_done() const { return controls_.idle() && send_places_ == sizes_.send_queue - kControlPlaces; }

void Stream::arm() {
  if (was_connected()) endpoint_->completions().arm();
}

void Stream::watch(std::vector<pollfd>& descriptors) {
  descriptors.push_back({connection_.fd(), POLLIN, 0});
  if (was_connected()) descriptors.push_back({endpoint_->completions().fd(), POLLIN, 0});
}

void Stream::take_events(std::span<const pollfd> descriptors) {
  if (!was_connected()) return;
  if (descriptors[0].revents != 0) follow_connection();
  if (descriptors.size() > 1 && descriptors[1].revents != 0) endpoint_->completions().take_event();
}

short Stream::look(short events) {
  const Lock lock(mutex_);
  if (opening()) advance();
  if (state_ == State::listening) {
    pollfd descriptor{connection_.fd(), events, 0};
    ::poll(&descriptor, 1, 0);
    return descriptor.revents;
  }
  if (state_ == State::refused) return short((events & (POLLIN | POLLOUT)) | POLLERR);
  if (!was_connected()) return 0;
  process();
  short found = 0;
  if (can_receive()) found |= POLLIN;
  if (can_send() || (!writable_ && !shut_for_sending_)) found |= POLLOUT;
  found &= events;
  if (state_ == State::disconnected) found |= POLLHUP;
  if (state_ == State::broken) found |= POLLERR;
  return found;
}

}  // namespace rnicsim::rsockets
