// Our communication manager in the place of the one of a capture, and above it a host that decides what the host of the
// capture did, when it did: connects, accepts, rejects, disconnects. What the manager sends follows from that and from
// what it gets.
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
  std::uint32_t frame = 0;  // of the message that brought it about
  bool again = false;       // by a timer
  roce::Gid peer{};
  cm::Envelope envelope;  // with our IDs
};

class CmHost {
 public:
  // Keeps pointers into `traffic`.
  CmHost(const CmTraffic& traffic, const roce::Gid& address);

  void advance(Duration captured);
  void receive(const CmMessage& message);
  // Does what makes a manager send that message. False: nothing that a host could do now.
  bool act(const CmMessage& message);
  // A receipt that the port gave: an answer is not owed any more.
  void acknowledged(const CmMessage& receipt);
  // What is owed whatever a host decides, and not left open by the capture's end.
  void finish();

  std::vector<CmSent> take() { return std::exchange(sent_, {}); }
  // Requests that nothing answered; of use after finish().
  const std::vector<const CmMessage*>& unanswered() const { return unanswered_; }
  // Until our manager would send that message again, if it waits for that.
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
  // A manager gives one by itself when the peer asks again: a host only lets it.
  bool decide(const CmMessage&, const cm::MessageReceiptAck&) { return false; }
  bool decide(const CmMessage&, const cm::LoadAlternatePath&) { return false; }
  bool decide(const CmMessage&, const cm::AlternatePathResponse&) { return false; }

  // The connection in one of those states that most of the message's names agree with.
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
  std::set<Id> acknowledged_;                                  // by an MRA of the port's
  std::map<Id, const CmMessage*> causes_;                      // the peer's last message for it
  std::map<std::pair<roce::Gid, std::uint32_t>, Id> by_peer_;  // its own communication ID
  std::map<std::pair<roce::Gid, std::uint64_t>, Id> by_transaction_;
  std::map<std::pair<roce::Gid, std::uint32_t>, const CmMessage*> last_words_;  // of the peer's communication ID
  std::vector<CmSent> sent_;
  std::vector<const CmMessage*> unanswered_;
};

}  // namespace rnicsim::sim::replay
