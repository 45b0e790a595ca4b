// A TCP connection of the IP stack, joined to one end of a pair of stream sockets: what comes from one goes to the
// other, both ends of the stream too.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/abi/attach.h"
#include "sim/descriptor.h"

struct pbuf;
struct tcp_pcb;

namespace rnicsim::sim {

class TcpStream {
 public:
  // `connection` is open, or is to be opened by connect(). The stream takes its callbacks.
  explicit TcpStream(tcp_pcb* connection);
  ~TcpStream();
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  // Runs once, with 0 or errno, when connect() has an answer. Set before connect().
  std::function<void(int error)> answered;
  void connect(const abi::NetAddress& to);

  // From now on bytes go to and come from `end`, which does not block. Until then, what comes is kept.
  void join(Descriptor end);
  void watch(std::vector<pollfd>& watched) const;
  // Moves what is there.
  void work();
  // Resets the connection, in the next work().
  void abandon() { broken_ = true; }
  // Both sides have ended, or the connection was reset.
  bool is_over() const { return over_; }
  // Bytes of the program, or its end, are not acknowledged by the peer yet.
  bool owes() const;

  // --- The library's callbacks.
  void connected();
  void came(pbuf* bytes);  // nullptr: the peer's end
  void failed(int error);  // the library has forgotten the connection

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
  bool program_told_ = false;   // of the peer's end
  bool program_ended_ = false;
  bool peer_told_ = false;      // of the program's end
  bool broken_ = false;
  bool over_ = false;
};

}  // namespace rnicsim::sim
