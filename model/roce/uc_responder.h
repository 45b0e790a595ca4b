// The responder of UC (IBTA vol 1, 9.8.2): as that of RC without a word to the requester. A message of which a packet
// is lost, or that can't be carried out, comes to nothing; the receive that it took is the next one's.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/verdict.h"

namespace rnicsim::roce {

class UcResponder {
 public:
  void start(const ResponderAttributes& attributes, Psn expected);
  void update(const ResponderAttributes& attributes) { attributes_ = attributes; }

  [[gnu::noinline]] Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer);
  // The rest of the chain, for the packet that wanted access and takes no receive.
  [[gnu::noinline]] Verdict go_on(const Headers& headers, std::uint32_t payload, const Offer& offer);

  Psn expected_psn() const { return expected_; }
  std::uint32_t msn() const { return msn_; }

 private:
  using Kind = Verdict::Kind;

  struct InMessage {
    Operation operation;
    RemoteRange target;                  // write
    std::uint32_t received = 0;
  };
  struct Packet {
    const Headers& headers;
    const OpcodeInfo& row;
    std::uint32_t payload;
    const Offer& offer;
    const InMessage* message;            // that it goes on with
  };

  std::optional<DropCause> check(const Packet& packet) const;
  bool length_fits(const Packet& packet) const;
  bool uses_receive(const Packet& packet) const;
  Verdict drop(const Packet& packet, DropCause cause);
  Verdict execute(const Packet& packet);

  ResponderAttributes attributes_;
  Psn expected_;
  std::uint32_t msn_ = 0;                // messages; nobody is told
  std::optional<InMessage> message_;
  bool holds_receive_ = false;           // taken, and not filled by a whole message yet
};

}  // namespace rnicsim::roce
