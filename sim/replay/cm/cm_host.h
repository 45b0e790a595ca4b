// SPDX-License-Identifier: Apache-2.0
// Our communication manager in the place of the captured port's, with a host that repeats the captured host's decisions
// at their times: connect, accept, reject, disconnect. Everything else that the manager sends follows from these
// decisions and from the messages it receives.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/cm/connection_manager.h"
#include "sim/replay/cm/cm_foresight.h"
#include "sim/replay/cm/cm_names.h"
#include "sim/replay/cm/cm_traffic.h"

namespace rnicsim::sim::replay {

struct CmSent {
  std::uint32_t frame = 0;  // frame of the message that caused this one
  bool again = false;       // sent again by a timer
  roce::Gid peer{};
  cm::Envelope envelope;  // has our IDs
};

class CmHost {
 public:
  // Keeps pointers into `traffic`, which must outlive this object.
  CmHost(const CmTraffic& traffic, const roce::Gid& address);

  void advance(Duration captured);
  void receive(const CmMessage& message);
  // Makes the decision that leads a manager to send `message`. False: no decision of a host can do so now.
  bool act(const CmMessage& message);
  // The captured port sent an MRA, so its answer may come later.
  void acknowledged(const CmMessage& receipt);
  // Call at the capture's end: sends the answers that need no decision of the host, and collects unanswered requests.
  // A request whose answer may lie after the capture's end is left out.
  void finish();

  std::vector<CmSent> take() { return std::exchange(sent_, {}); }
  // Requests without an answer; valid after finish().
  const std::vector<const CmMessage*>& unanswered() const { return unanswered_; }
  // Time until our manager retransmits that message; nullopt: it does not wait for an answer.
  std::optional<Duration> until_again(const CmMessage& message) const;
  CmNames& names() { return names_; }

 private:
  using Id = cm::ConnectionId;

  bool decide(const CmMessage& message, const cm::ConnectRequest& request);
  bool decide(const CmMessage& message, const cm::ConnectReject& reject);
  bool decide(const CmMessage& message, const cm::ConnectReply& reply);
  bool decide(const CmMessage& message, const cm::ReadyToUse& ready);
  bool decide(const CmMessage& message, const cm::DisconnectRequest& request);
  bool decide(const CmMessage& message, const cm::DisconnectReply& reply);
  bool decide(const CmMessage& message, const cm::ServiceIdRequest& request);
  bool decide(const CmMessage& message, const cm::ServiceIdReply& reply);
  // A manager sends an MRA by itself when the peer retransmits; a host only permits it.
  bool decide(const CmMessage&, const cm::MessageReceiptAck&) { return false; }
  bool decide(const CmMessage&, const cm::LoadAlternatePath&) { return false; }
  bool decide(const CmMessage&, const cm::AlternatePathResponse&) { return false; }

  // The connection in one of `states` that shares the most IDs with the message; nullopt: none.
  std::optional<Id> meant(const CmMessage& message, std::initializer_list<cm::State> states) const;
  Id create(const CmMessage& message);
  void retire(Id id);
  void take_events(const CmMessage* cause);
  void take_messages(const CmMessage* cause, bool again);
  void listen_as_foreseen(const CmMessage& request, std::uint64_t service_id);
  void promise_as_foreseen(Id id, const CmMessage& received);

  bool is_open(const CmMessage& request) const;

  const roce::Gid address_;
  const Duration end_;
  const CmForesight foresight_;
  cm::ConnectionManager manager_;
  CmNames names_;
  Duration now_{};
  std::set<Id> live_;
  std::set<Id> acknowledged_;                                  // connections for which the port sent an MRA
  std::map<Id, const CmMessage*> causes_;                      // last message of the peer for each connection
  std::map<std::pair<roce::Gid, std::uint32_t>, Id> by_peer_;  // by the peer's communication ID
  std::map<std::pair<roce::Gid, std::uint64_t>, Id> by_transaction_;
  // Last message of a peer, by the peer's communication ID.
  std::map<std::pair<roce::Gid, std::uint32_t>, const CmMessage*> last_words_;
  std::vector<CmSent> sent_;
  std::vector<const CmMessage*> unanswered_;
};

}  // namespace rnicsim::sim::replay
