// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/tcp_stream.h"

#include <lwip/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "sim/guest/wire/lwip_address.h"
#include "sim/guest/wire/transient_error.h"

namespace rnicsim::sim {
namespace {

err_t on_connected(void* stream, tcp_pcb*, err_t) {
  static_cast<TcpStream*>(stream)->connected();
  return ERR_OK;
}

err_t on_received(void* stream, tcp_pcb*, pbuf* bytes, err_t) {
  static_cast<TcpStream*>(stream)->came(bytes);
  return ERR_OK;
}

void on_error(void* stream, err_t error) { static_cast<TcpStream*>(stream)->failed(error); }

constexpr std::size_t kWindow = TCP_WND;

}  // namespace

TcpStream::TcpStream(tcp_pcb* connection) : connection_(connection) {
  tcp_arg(connection_, this);
  tcp_recv(connection_, on_received);
  tcp_err(connection_, on_error);
}

TcpStream::~TcpStream() { reset(); }

void TcpStream::connect(const abi::NetAddress& to) {
  const auto address = to_lwip(to);
  if (tcp_connect(connection_, &address, to.port, on_connected) == ERR_OK) return;
  reset();
  failed(ERR_ABRT);
}

void TcpStream::join(Descriptor end) { end_ = std::move(end); }

void TcpStream::watch(std::vector<pollfd>& watched) const {
  if (!end_) return;
  const bool reads = connection_ != nullptr && !program_ended_ && to_peer_.empty() && tcp_sndbuf(connection_) > 0;
  const int events = (reads ? POLLIN : 0) | (to_program_.empty() ? 0 : POLLOUT);
  if (events != 0) watched.push_back({end_.get(), static_cast<short>(events), 0});
}

void TcpStream::work() {
  if (over_) return;
  if (broken_) return end();
  if (!end_) return;
  give_to_program();
  if (connection_ == nullptr) {
    // The connection was reset: bytes that came before the reset still go to the program.
    if (to_program_.empty()) end();
    return;
  }
  take_from_program();
  if (peer_told_ && program_told_ && is_acknowledged()) end();
}

bool TcpStream::is_acknowledged() const {
  return connection_ == nullptr || (connection_->unsent == nullptr && connection_->unacked == nullptr);
}

bool TcpStream::has_outstanding() const { return end_ && !over_ && !(peer_told_ && is_acknowledged()); }

void TcpStream::connected() {
  if (auto call = std::exchange(answered, nullptr)) call(0);
}

void TcpStream::came(pbuf* bytes) {
  if (bytes == nullptr) {
    peer_ended_ = true;
    return;
  }
  const auto before = to_program_.size();
  to_program_.resize(before + bytes->tot_len);
  pbuf_copy_partial(bytes, to_program_.data() + before, bytes->tot_len, 0);
  pbuf_free(bytes);
}

void TcpStream::failed(int error) {
  connection_ = nullptr;
  if (auto call = std::exchange(answered, nullptr)) {
    over_ = true;
    return call(error == ERR_RST ? ECONNREFUSED : ETIMEDOUT);
  }
  if (!end_) over_ = true;
}

// The TCP window opens by the bytes that the program's socket has taken.
void TcpStream::give_to_program() {
  std::size_t done = 0;
  while (done < to_program_.size()) {
    const ssize_t sent =
        ::send(end_.get(), to_program_.data() + done, to_program_.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && is_transient(errno)) break;
    if (sent < 0) {
      broken_ = true;
      return;
    }
    done += static_cast<std::size_t>(sent);
  }
  to_program_.erase(to_program_.begin(), to_program_.begin() + static_cast<std::ptrdiff_t>(done));
  if (connection_ != nullptr && done != 0) tcp_recved(connection_, static_cast<u16_t>(std::min(done, kWindow)));
  if (!peer_ended_ || program_told_ || !to_program_.empty()) return;
  ::shutdown(end_.get(), SHUT_WR);
  program_told_ = true;
}

void TcpStream::take_from_program() {
  send_pending();
  while (to_peer_.empty() && !program_ended_ && tcp_sndbuf(connection_) > 0) {
    std::array<std::byte, 16384> buffer;
    const auto most = std::min<std::size_t>(buffer.size(), tcp_sndbuf(connection_));
    const ssize_t came = ::recv(end_.get(), buffer.data(), most, MSG_DONTWAIT);
    if (came < 0 && is_transient(errno)) break;
    if (came < 0) {
      broken_ = true;
      return;
    }
    program_ended_ = came == 0;
    to_peer_.assign(buffer.begin(), buffer.begin() + came);
    send_pending();
  }
  if (program_ended_ && to_peer_.empty() && !peer_told_) peer_told_ = tcp_shutdown(connection_, 0, 1) == ERR_OK;
}

void TcpStream::send_pending() {
  if (to_peer_.empty()) return;
  const auto bytes = std::min<std::size_t>(to_peer_.size(), tcp_sndbuf(connection_));
  if (bytes == 0 || tcp_write(connection_, to_peer_.data(), static_cast<u16_t>(bytes), TCP_WRITE_FLAG_COPY) != ERR_OK)
    return;
  to_peer_.erase(to_peer_.begin(), to_peer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  tcp_output(connection_);
}

void TcpStream::end() {
  if (connection_ != nullptr && !broken_) {
    auto* const closing = connection_;
    detach();
    if (tcp_close(closing) != ERR_OK) tcp_abort(closing);
  }
  reset();
  end_.reset();
  over_ = true;
}

void TcpStream::reset() {
  if (connection_ == nullptr) return;
  auto* const connection = connection_;
  detach();
  tcp_abort(connection);
}

void TcpStream::detach() {
  tcp_arg(connection_, nullptr);
  tcp_recv(connection_, nullptr);
  tcp_err(connection_, nullptr);
  connection_ = nullptr;
}

}  // namespace rnicsim::sim
