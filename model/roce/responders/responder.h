// SPDX-License-Identifier: Apache-2.0
// The responder of RC and XRC. In XRC each message names its shared receive queue. Judges request packets by the check
// chain of IBTA vol 1, 9.7 (PSN, opcode sequence, opcode, queue, resources, length, rkey), and returns a verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/roce/responders/early_requests.h"
#include "model/roce/verdict.h"

namespace rnicsim::roce {

class Responder {
 public:
  void start(const ResponderAttributes& attributes, Psn expected);
  void update(const ResponderAttributes& attributes) { attributes_ = attributes; }

  Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer);
  // The rest of the chain, for a packet whose verdict was wants_access, that takes no receive and is no duplicate.
  Verdict go_on(const Headers& headers, std::uint32_t payload, const Offer& offer);
  // The value before the atomic of `psn`: kept for duplicates.
  void atomic_done(Psn psn, std::uint64_t original);

  Psn expected_psn() const { return expected_; }
  std::uint32_t msn() const { return msn_; }
  bool in_message() const { return message_.has_value(); }

 private:
  using Kind = Verdict::Kind;

  struct InMessage {
    Operation operation;
    RemoteRange target;  // write
    std::uint32_t received = 0;
    bool has_receive = false;
    std::uint32_t srqn = 0;  // XRC
    Psn first;
    bool restarts = false;  // go-back-0: the first packet of the message comes again
  };
  struct SavedAtomic {
    Psn psn;
    std::optional<std::uint64_t> original;  // nullopt: not executed yet
  };
  struct Packet {
    const Headers& headers;
    const OpcodeInfo& row;
    std::uint32_t payload;
    const Offer& offer;
  };
  // Each check returns true to continue, or sets the verdict and returns false.
  bool check_psn(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] void restart_message();
  bool begins_again(const Packet& packet) const;
  [[gnu::noinline]] bool keep_early(const Packet& packet, Verdict& verdict);
  std::optional<EarlyWrite> begun_early(const Packet& packet) const;
  std::optional<RemoteRange> early_place(const Packet& packet) const;
  bool lose_early(Verdict& verdict);
  void tell_of_gap(Psn came, Verdict& verdict);
  [[gnu::noinline]] void pass_early(Verdict& verdict);
  bool check_opcode_sequence(const Packet& packet, Verdict& verdict) const;
  bool check_opcode_valid(const Packet& packet, Verdict& verdict) const;
  bool check_queue(const Packet& packet, Verdict& verdict) const;
  bool check_resources(const Packet& packet, Verdict& verdict);
  bool check_length(const Packet& packet, Verdict& verdict) const;
  bool check_rkey(const Packet& packet, Verdict& verdict);
  void execute(const Packet& packet, Verdict& verdict);
  void execute_operation(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] void execute_read(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] void execute_atomic_write(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] void execute_atomic(const Packet& packet, Verdict& verdict);

  // Set a verdict that ends the chain; return false.
  [[gnu::noinline]] bool duplicate(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] bool reject(const Packet& packet, std::uint8_t syndrome, Verdict& verdict) const;
  [[gnu::noinline]] bool not_ready(const Packet& packet, Verdict& verdict);
  [[gnu::noinline]] bool invalid(const Packet& packet, Verdict& verdict) const;
  [[gnu::noinline]] bool refuse_access(const Packet& packet, Verdict& verdict) const;

  void duplicate_atomic_write(const Packet& packet, Verdict& verdict) const;
  void duplicate_read(const Packet& packet, Verdict& verdict);
  void duplicate_atomic(const Packet& packet, Verdict& verdict);
  SavedAtomic* saved(Psn psn);
  bool check_atomic_write(const Packet& packet, Verdict& verdict) const;
  bool takes_receive(const Packet& packet) const;
  bool goes_back_0() const { return attributes_.recovery.mode == Recovery::go_back_0; }
  bool of_xrc() const { return attributes_.transport == Transport::xrc_recv; }
  std::optional<RemoteRange> named_range(const Packet& packet) const;
  std::uint32_t received_before(const Packet& packet) const;
  std::uint32_t needed_access(const Packet& packet) const;

  ResponderAttributes attributes_;
  Psn expected_;
  std::uint32_t msn_ = 0;
  std::optional<InMessage> message_;
  std::vector<SavedAtomic> saved_;  // the last max_dest_rd_atomic atomics
  bool nak_sent_ = false;           // at most one NAK for a gap
  EarlyRequests early_;
};

}  // namespace rnicsim::roce
