// SPDX-License-Identifier: Apache-2.0
// A TCP connection of the IP stack, joined to one end of a pair of stream sockets: bytes and the end of the stream pass
// in both directions.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/abi/attach.h"
#include "sim/os/descriptor.h"

struct pbuf;
struct tcp_pcb;

namespace rnicsim::sim {

class TcpStream {
 public:
  // `connection` is open, or connect() opens it. The stream sets the connection's callbacks.
  explicit TcpStream(tcp_pcb* connection);
  ~TcpStream();
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  // Called once, with 0 or errno, when connect() has an answer. Set before connect().
  std::function<void(int error)> answered;
  void connect(const abi::NetAddress& to);

  // Exchanges bytes with `end`, which does not block, from now on. Bytes that arrived before are kept for `end`.
  void join(Descriptor end);
  void watch(std::vector<pollfd>& watched) const;
  // Moves the bytes that are available.
  void work();
  // Resets the connection in the next work().
  void abandon() { broken_ = true; }
  // Both directions have ended, or the connection was reset.
  bool is_over() const { return over_; }
  // True: the peer has not acknowledged all bytes of the program, or its end.
  bool has_outstanding() const;

  // --- The library's callbacks.
  void connected();
  void came(pbuf* bytes);  // nullptr: the peer has ended its direction
  void failed(int error);  // lwIP has freed the connection

 private:
  void give_to_program();
  void take_from_program();
  void send_pending();
  void end();
  void reset();
  void detach();
  bool is_acknowledged() const;

  tcp_pcb* connection_;
  Descriptor end_;
  std::vector<std::byte> to_program_;
  std::vector<std::byte> to_peer_;
  bool peer_ended_ = false;
  bool program_told_ = false;  // shutdown() passed on the peer's end
  bool program_ended_ = false;
  bool peer_told_ = false;  // tcp_shutdown() passed on the program's end
  bool broken_ = false;
  bool over_ = false;
};

}  // namespace rnicsim::sim
