// SPDX-License-Identifier: Apache-2.0
// Management datagrams of a hostile peer, and commands of hostile programs, for a host's connection manager. Each event
// must be possible for its program. After all ids are destroyed and time has passed, nothing is left.
#include <arpa/inet.h>
#include <rdma/rdma_user_cm.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <type_traits>

#include "model/host/cm/address_header.h"
#include "model/host/cm/rdma_ids.h"
#include "model/host/cm/user_commands.h"
#include "model/host/gids.h"
#include "tests/soak/fuzz/fuzz.h"
#include "tests/support/network_interface.h"

namespace rnicsim::fuzz {
namespace {

using host::CmEventType;

enum Step : std::uint8_t { datagram, message, command, pass_time, get_events, close_channel, close_process, kinds };

// Parts of a message or command that stay as the input gives them.
constexpr std::uint8_t kMended = 0;
constexpr std::uint8_t kRawIds = 1;
constexpr std::uint8_t kRawFields = 2;
constexpr std::uint8_t kRawLength = 4;

constexpr std::uint16_t kPort = 7471;
constexpr std::uint64_t kPeerGuid = 0xb2;
constexpr std::size_t kOutputBytes = 1024;  // more than any answer

const abi::NetworkInterface kSelf = testing::network_interface(1);
const abi::NetworkInterface kPeer = testing::network_interface(2);

host::IpAddress ipv4_of(const abi::NetworkInterface& entry, std::uint16_t port) {
  return host::IpAddress::of_gid(host::gids_of(entry)[host::kIpv4GidIndex], false, port);
}
std::uint64_t service_of(rdma_ucm_port_space space) { return std::uint64_t(space) << 16 | kPort; }

// Commands, with the offset of the id.
struct CommandForm {
  std::uint32_t number;
  std::size_t bytes;
  std::size_t id;
};
constexpr std::size_t kNowhere = 1 << 20;
template <class Command>
constexpr CommandForm form(std::uint32_t number) {
  return {number, sizeof(Command), offsetof(Command, id)};
}
constexpr CommandForm kForms[] = {
    {RDMA_USER_CM_CMD_CREATE_ID, sizeof(rdma_ucm_create_id), kNowhere},
    form<rdma_ucm_destroy_id>(RDMA_USER_CM_CMD_DESTROY_ID),
    form<rdma_ucm_bind_ip>(RDMA_USER_CM_CMD_BIND_IP),
    form<rdma_ucm_resolve_ip>(RDMA_USER_CM_CMD_RESOLVE_IP),
    form<rdma_ucm_resolve_route>(RDMA_USER_CM_CMD_RESOLVE_ROUTE),
    form<rdma_ucm_query>(RDMA_USER_CM_CMD_QUERY_ROUTE),
    form<rdma_ucm_connect>(RDMA_USER_CM_CMD_CONNECT),
    form<rdma_ucm_listen>(RDMA_USER_CM_CMD_LISTEN),
    form<rdma_ucm_accept>(RDMA_USER_CM_CMD_ACCEPT),
    form<rdma_ucm_reject>(RDMA_USER_CM_CMD_REJECT),
    form<rdma_ucm_disconnect>(RDMA_USER_CM_CMD_DISCONNECT),
    form<rdma_ucm_init_qp_attr>(RDMA_USER_CM_CMD_INIT_QP_ATTR),
    form<rdma_ucm_set_option>(RDMA_USER_CM_CMD_SET_OPTION),
    form<rdma_ucm_notify>(RDMA_USER_CM_CMD_NOTIFY),
    form<rdma_ucm_join_ip_mcast>(RDMA_USER_CM_CMD_JOIN_IP_MCAST),
    form<rdma_ucm_destroy_id>(RDMA_USER_CM_CMD_LEAVE_MCAST),
    form<rdma_ucm_migrate_id>(RDMA_USER_CM_CMD_MIGRATE_ID),
    form<rdma_ucm_query>(RDMA_USER_CM_CMD_QUERY),
    form<rdma_ucm_bind>(RDMA_USER_CM_CMD_BIND),
    form<rdma_ucm_resolve_addr>(RDMA_USER_CM_CMD_RESOLVE_ADDR),
    form<rdma_ucm_join_mcast>(RDMA_USER_CM_CMD_JOIN_MCAST),
};

template <class T>
const T* choose(const std::vector<T>& from, std::uint8_t which) {
  return from.empty() ? nullptr : &from[from.size() - 1 - which % from.size()];  // 0: the last element
}

class World {
 public:
  World()
      : ids_(parameters(), {[this](auto channel, auto subject) { queued(channel, subject); },
                            [this](auto channel, auto subject) { forgotten(channel, subject); }}) {
    for (auto& channel : channels_) channel = next_channel_++;
  }

  void take(const Input::Step& step) {
    Input body(step.body);
    switch (step.kind % kinds) {
      case datagram: return receive_bytes(body);
      case message: return receive_message(body);
      case command: return execute(body);
      case pass_time: return pass(Duration{std::int64_t{body.take<std::uint32_t>()} * 1'000'000});
      case get_events: return take_events(channel_at(body.take<std::uint8_t>()));
      case close_channel: return close(body.take<std::uint8_t>());
      default: return close_all_of(body.take<std::uint8_t>() % 2);
    }
  }

  // Destroys everything. Nothing is left, and a new peer is served.
  void finish() {
    for (std::uint8_t i = 0; i < channels_.size(); ++i) close(i);
    expect_an_end();
    serve_a_good_peer();
    for (std::uint8_t i = 0; i < channels_.size(); ++i) close(i);
    expect_an_end();
  }

 private:
  static host::RdmaIds::Host parameters() {
    host::RdmaIds::Host host;
    host.devices = {{.interface = kSelf, .ack_delay = 15}};
    host.fabric = host::Neighbours({kSelf, kPeer});
    host.resolve_known = Duration{4'000'000};
    host.resolve_neighbour = Duration{40'000'000};
    return host;
  }

  // --- Two processes: two channels of the first, one channel of the second.
  static Pasid process_of(std::uint8_t slot) { return slot < 2 ? 7 : 8; }
  host::UserChannel channel_at(std::uint8_t which) const {
    const std::uint8_t slot = which % channels_.size();
    return {process_of(slot), channels_[slot]};
  }
  void close(std::uint8_t which) {
    auto& channel = channels_[which % channels_.size()];
    ids_.close_channel(channel);
    drain();
    require(waiting_[channel].empty(), "a closed channel has events");
    channel = next_channel_++;
  }
  void close_all_of(std::uint8_t process) {
    const Pasid doomed = process_of(process == 0 ? 0 : 2);
    ids_.close_process(doomed);
    drain();
    for (std::uint8_t slot = 0; slot < channels_.size(); ++slot)
      if (process_of(slot) == doomed) close(slot);
  }

  // --- Time.
  void pass(Duration time) {
    now_ += time;
    ids_.advance(now_);
    drain();
    const auto next = ids_.next_deadline();
    require(!next || *next > now_, "what is due is not done");
  }
  void expect_an_end() {
    int steps = 0;
    for (auto next = ids_.next_deadline(); next; next = ids_.next_deadline()) {
      require(++steps < 100'000, "it does not come to an end");
      pass(*next - now_);
    }
    require(ids_.size() == 0, "an id is left");
    require(ids_.manager().connections() == 0, "a connection is left");
    for (const auto& [channel, subjects] : waiting_) require(subjects.empty(), "an event of nobody's");
  }

  // --- Messages of the peer.
  void drain() {
    while (ids_.next_transition()) continue;
    while (const auto out = ids_.next_message()) {
      const auto& envelope = out->envelope;
      require(ids_.device_with(out->route.local) != nullptr, "a message from another's address");
      const auto again = cm::decode(cm::encode(envelope));
      require(again && again->message == envelope.message, "a message is not what was meant");
      std::visit([&](const auto& sent) { learn(sent); }, envelope.message);
    }
  }
  void learn(const auto& sent) {
    if constexpr (requires { sent.local_id; }) ours_.push_back(sent.local_id);
    if constexpr (requires { sent.local_qpn; }) qpns_.push_back(sent.local_qpn);
    if constexpr (std::is_same_v<std::decay_t<decltype(sent)>, cm::ServiceIdRequest>) ours_.push_back(sent.request_id);
    if (ours_.size() > 64) ours_.erase(ours_.begin(), ours_.begin() + 32);
    if (qpns_.size() > 64) qpns_.erase(qpns_.begin(), qpns_.begin() + 32);
  }
  void receive(std::uint8_t from, std::span<const std::byte> mad) {
    const auto envelope = cm::decode(mad);
    if (!envelope) return;
    const auto own = host::gids_of(kSelf), others = host::gids_of(kPeer);
    const std::size_t gid = (from + host::kIpv4GidIndex) % own.size();
    ids_.receive({.local = own[gid], .remote = from < 0x80 ? others[gid] : own[gid], .hop_limit = 64}, *envelope);
    drain();
  }
  void receive_bytes(Input& body) {
    const auto from = body.take<std::uint8_t>();
    const auto bytes = body.take_span(2 * cm::kMadBytes);
    receive(from, std::as_bytes(bytes));
  }
  // A valid header with the input's fields; most fields are corrected unless the flags say otherwise.
  void receive_message(Input& body) {
    const auto from = body.take<std::uint8_t>();
    const auto flags = body.take<std::uint8_t>();
    const auto kind = body.take<std::uint8_t>() % std::variant_size_v<cm::Message>;
    const auto which = body.take<std::array<std::uint8_t, 2>>();
    cm::Mad mad = cm::encode({0, cm::ReadyToUse{}});
    mad[17] = std::byte(cm::ConnectRequest::kAttribute + kind);
    const auto bytes = std::as_bytes(body.take_span(mad.size() - 24));
    std::ranges::copy(bytes, mad.begin() + 24);
    auto envelope = cm::decode(mad);
    require(envelope && envelope->message.index() == kind, "a message with a right head is none");
    std::visit([&](auto& sent) { mend(sent, flags, which); }, envelope->message);
    receive(from, cm::encode(*envelope));
  }
  void mend(auto& sent, std::uint8_t flags, const std::array<std::uint8_t, 2>& which) {
    using Sent = std::decay_t<decltype(sent)>;
    constexpr bool connects = std::is_same_v<Sent, cm::ConnectRequest>;
    constexpr bool looks_up = std::is_same_v<Sent, cm::ServiceIdRequest>;
    if ((flags & kRawIds) == 0) {
      const auto* ours = choose(ours_, which[0]);
      if constexpr (requires { sent.remote_id; })
        if (ours != nullptr) sent.remote_id = *ours;
      if constexpr (std::is_same_v<Sent, cm::ServiceIdReply>)
        if (ours != nullptr) sent.request_id = *ours;
      if constexpr (requires { sent.local_id; }) sent.local_id = 1 + which[1] % 8;
      if constexpr (requires { sent.local_qpn; }) sent.local_qpn = 2 + which[1] % 16;
      if constexpr (requires { sent.local_ca_guid; }) sent.local_ca_guid = kPeerGuid + which[1] / 128;
      if constexpr (connects) sent.service_id = service_of(RDMA_PS_TCP);
      if constexpr (looks_up) sent.service_id = service_of(RDMA_PS_UDP);
      if constexpr (requires { sent.remote_qpn; })
        if (const auto* qpn = choose(qpns_, which[0] / 8)) sent.remote_qpn = *qpn;
    }
    if ((flags & kRawFields) != 0) return;
    if constexpr (connects) {
      sent.primary.remote_gid = host::gids_of(kSelf)[host::kIpv4GidIndex];
      sent.primary.local_gid = host::gids_of(kPeer)[host::kIpv4GidIndex];
    }
    if constexpr (connects || looks_up) {
      const auto header = host::AddressHeader{ipv4_of(kPeer, 99), ipv4_of(kSelf, kPort)}.encode();
      std::ranges::copy(header, sent.private_data.begin());
    }
  }

  // --- Commands of the programs.
  void execute(Input& body) {
    const auto channel = channel_at(body.take<std::uint8_t>());
    const auto flags = body.take<std::uint8_t>();
    const auto which = body.take<std::uint8_t>();
    const auto number = body.take<std::uint8_t>();
    const auto given = body.take_span(1024);
    // Buffers of exact size, so that a sanitizer sees an access beyond the end.
    Bytes input(given.begin(), given.end());
    std::vector<std::byte> output((flags & kRawLength) != 0 ? which % 64 : kOutputBytes);
    const auto form = std::ranges::find(kForms, number, &CommandForm::number);
    if (form != std::end(kForms)) {
      if ((flags & kRawLength) == 0) input.resize(std::max(input.size(), form->bytes));
      const auto* id = choose(numbers_, which);
      if ((flags & kRawIds) == 0 && id != nullptr && input.size() >= form->id + sizeof *id)
        std::memcpy(input.data() + form->id, id, sizeof *id);
      if (number == RDMA_USER_CM_CMD_MIGRATE_ID && (flags & kRawFields) == 0 && input.size() >= form->bytes) {
        const std::uint32_t from = channel_at(input[offsetof(rdma_ucm_migrate_id, fd)]).number;
        std::memcpy(input.data() + offsetof(rdma_ucm_migrate_id, fd), &from, sizeof from);
      }
    }
    const int error = host::execute_user_command(ids_, channel, number, std::as_bytes(std::span(input)), output);
    require(error >= 0 && error < 134, "an answer that is no errno");
    require(error != 0 || number <= RDMA_USER_CM_CMD_JOIN_MCAST, "a command that there is not is done");
    if (error == 0) answered(channel, number, output);
    drain();
  }
  void answered(const host::UserChannel& channel, std::uint32_t number, std::span<const std::byte> output) {
    if (number == RDMA_USER_CM_CMD_GET_EVENT) {
      rdma_ucm_event_resp event;
      std::memcpy(static_cast<void*>(&event), output.data(), sizeof event);
      return heard(channel, event);
    }
    if (number != RDMA_USER_CM_CMD_CREATE_ID && number != RDMA_USER_CM_CMD_JOIN_MCAST &&
        number != RDMA_USER_CM_CMD_JOIN_IP_MCAST)
      return;
    std::uint32_t made = 0;
    std::memcpy(&made, output.data(), sizeof made);
    require(heard_.emplace(made, std::set<CmEventType>{}).second, "a new id is one that there was");
    numbers_.push_back(made);
  }

  // --- Events: as many as the channels announce, in that order, and each must be possible.
  void queued(std::uint32_t channel, std::uint32_t subject) { waiting_[channel].push_back(subject); }
  void forgotten(std::uint32_t channel, std::uint32_t subject) { std::erase(waiting_[channel], subject); }
  void take_events(const host::UserChannel& channel) {
    rdma_ucm_event_resp event;
    std::vector<std::byte> output(sizeof event);
    while (host::execute_user_command(ids_, channel, RDMA_USER_CM_CMD_GET_EVENT, {}, output) == 0) {
      std::memcpy(static_cast<void*>(&event), output.data(), sizeof event);
      heard(channel, event);
    }
    require(waiting_[channel.number].empty(), "an event that was told of does not come");
    drain();
  }
  void heard(const host::UserChannel& channel, const rdma_ucm_event_resp& event) {
    const auto type = CmEventType(event.event);
    auto& waiting = waiting_[channel.number];
    require(!waiting.empty(), "an event that nobody was told of");
    const std::uint32_t subject = waiting.front();
    waiting.pop_front();
    if (type == CmEventType::connect_request) {
      require(ids_.find(channel.number, subject) != nullptr, "a request for no listener");
      require(heard_.emplace(event.id, std::set<CmEventType>{}).second, "the id of a request is one that there was");
      numbers_.push_back(event.id);
    } else {
      require(subject == event.id, "an event of another id");
    }
    const auto known = heard_.find(event.id);
    require(known != heard_.end(), "an event of an id that the program does not know");
    require(type == CmEventType::multicast_join || ids_.find(channel.number, event.id) != nullptr,
            "an event of an id that has gone");
    const bool again = type == CmEventType::address_resolved || type == CmEventType::address_error;
    require(!known->second.contains(CmEventType::timewait_exit), "an event after the last");
    require(known->second.insert(type).second || again, "an event twice");
    require(type <= CmEventType::timewait_exit, "an event of no kind");
  }

  void serve_a_good_peer() {
    const host::UserChannel channel = channel_at(0);
    std::uint32_t number = 0;
    require(ids_.create(channel.process, channel.number, {.ps = RDMA_PS_TCP}, number) == 0, "no new id");
    heard_.emplace(number, std::set<CmEventType>{});
    host::RdmaId* id = ids_.find(channel.number, number);
    require(id != nullptr && ids_.bind(*id, ipv4_of(kSelf, kPort)) == 0, "a port is left taken");
    require(ids_.listen(*id, 0) == 0, "nobody can listen any more");
    cm::ConnectRequest request{
        .local_id = 0x1000, .service_id = service_of(RDMA_PS_TCP), .local_ca_guid = 0xc3, .local_qpn = 0x1000};
    mend(request, kRawIds, {});
    receive(0, cm::encode({1, request}));
    rdma_ucm_event_resp event{};
    require(ids_.next_event(channel.number, event) == 0, "a good request is not told of");
    heard(channel, event);
    require(CmEventType(event.event) == CmEventType::connect_request, "a good request is told of as something else");
  }

  std::array<std::uint32_t, 3> channels_;
  std::uint32_t next_channel_ = 1;
  std::map<std::uint32_t, std::deque<std::uint32_t>> waiting_;  // by channel: subjects of pending events
  std::map<std::uint32_t, std::set<CmEventType>> heard_;        // by id known to a program: events received
  std::vector<std::uint32_t> numbers_;                          // ids and groups
  std::vector<std::uint32_t> ours_{1}, qpns_{0};                // IDs and QPNs of the host that the peer knows
  Duration now_;
  host::RdmaIds ids_;
};

// --- Seeds.

// Input reads missing bytes as 0: without trailing zeros, most mutations hit relevant bytes.
Bytes trimmed(std::span<const std::byte> bytes) {
  while (!bytes.empty() && bytes.back() == std::byte{0}) bytes = bytes.first(bytes.size() - 1);
  Bytes copy;
  for (const auto byte : bytes) copy.push_back(std::to_integer<std::uint8_t>(byte));
  return copy;
}
template <class Command>
void say(Script& script, std::uint32_t number, const Command& what, std::uint8_t which = 0, std::uint8_t channel = 0,
         std::uint8_t flags = kMended) {
  script.step(command, channel, flags, which, static_cast<std::uint8_t>(number),
              trimmed(std::as_bytes(std::span(&what, 1))));
}
void answer(Script& script, auto kind, std::uint8_t which = 0, std::uint8_t flags = kMended) {
  constexpr auto number = static_cast<std::uint8_t>(decltype(kind)::kAttribute - cm::ConnectRequest::kAttribute);
  const auto mad = cm::encode({0, kind});
  script.step(message, std::uint8_t{0}, flags, number, which, which, trimmed(std::span(mad).subspan(24)));
}
void create(Script& script, rdma_ucm_port_space space) {
  say(script, RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{.uid = 5, .ps = std::uint16_t(space)});
}
template <class Command>
Command with_address(const abi::NetworkInterface& entry, auto Command::*field, std::uint16_t port = kPort) {
  Command command{};
  const auto storage = ipv4_of(entry, port).to_sockaddr();
  std::memcpy(&(command.*field), &storage, sizeof(sockaddr_in));
  return command;
}
template <class Command>
Command with_params(std::uint8_t valid, std::uint8_t private_data) {
  Command command{};
  command.conn_param.valid = valid;
  command.conn_param.qp_num = 0x17;
  command.conn_param.private_data_len = private_data;
  command.conn_param.retry_count = command.conn_param.rnr_retry_count = 7;
  return command;
}
const Script& wait(Script& script, std::uint32_t microseconds = 100) {
  return script.step(pass_time, microseconds).step(get_events, std::uint8_t{0});
}

Script listening(rdma_ucm_port_space space) {
  Script script;
  create(script, space);
  auto bind = with_address<rdma_ucm_bind>(kSelf, &rdma_ucm_bind::addr);
  bind.addr_size = sizeof(sockaddr_in);
  say(script, RDMA_USER_CM_CMD_BIND, bind);
  say(script, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{.backlog = 3});
  return script;
}
Script accepting(rdma_ucm_port_space space) {
  Script script = listening(space);
  if (space == RDMA_PS_TCP)
    answer(script, cm::ConnectRequest{.local_response_timeout = 20, .max_cm_retries = 15});
  else
    answer(script, cm::ServiceIdRequest{.request_id = 4});
  wait(script);
  say(script, RDMA_USER_CM_CMD_QUERY_ROUTE, rdma_ucm_query{});
  for (std::uint32_t state = 1; state <= 3; ++state)
    say(script, RDMA_USER_CM_CMD_INIT_QP_ATTR, rdma_ucm_init_qp_attr{.qp_state = state});
  say(script, RDMA_USER_CM_CMD_ACCEPT, with_params<rdma_ucm_accept>(1, 20));
  return script;
}
Script resolving(rdma_ucm_port_space space) {
  Script script;
  create(script, space);
  auto resolve = with_address<rdma_ucm_resolve_addr>(kPeer, &rdma_ucm_resolve_addr::dst_addr);
  resolve.dst_size = sizeof(sockaddr_in);
  resolve.timeout_ms = 2000;
  say(script, RDMA_USER_CM_CMD_RESOLVE_ADDR, resolve);
  wait(script);
  say(script, RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{.timeout_ms = 2000});
  wait(script);
  return script;
}
Script connecting(rdma_ucm_port_space space) {
  Script script = resolving(space);
  for (std::uint32_t option = 0; option < 3; ++option)
    say(script, RDMA_USER_CM_CMD_QUERY, rdma_ucm_query{.option = option});
  say(script, RDMA_USER_CM_CMD_CONNECT, with_params<rdma_ucm_connect>(1, 20));
  return script;
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto add = [&](Script script) { all.push_back(wait(script)); };
  const auto add_in_vain = [&](Script script) { all.push_back(wait(script, 2'000'000'000)); };
  const auto disconnect = [](Script script) {
    say(script, RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{});
    return script;
  };
  const auto after = [](Script script, const auto& said) {
    answer(script, said);
    wait(script);
    return script;
  };
  // The accepting side.
  const Script replied = accepting(RDMA_PS_TCP);
  add_in_vain(replied);
  add(after(replied, cm::ConnectReject{.subject = cm::Subject::reply, .reason = cm::RejectReason::consumer}));
  add(after(replied, cm::MessageReceiptAck{.subject = cm::Subject::reply, .service_timeout = 24}));
  const Script served = after(replied, cm::ReadyToUse{});
  add_in_vain(disconnect(served));
  add(disconnect(after(served, cm::DisconnectRequest{})));
  add(after(disconnect(served), cm::DisconnectReply{}));
  add(after(served, cm::LoadAlternatePath{}));
  add(accepting(RDMA_PS_UDP));
  // The connecting side.
  const Script requested = connecting(RDMA_PS_TCP);
  add_in_vain(requested);
  add_in_vain(connecting(RDMA_PS_UDP));
  add(after(requested, cm::ConnectReject{.reason = cm::RejectReason::stale_connection}));
  Script connected = after(requested, cm::ConnectReply{.responder_resources = 1, .initiator_depth = 1});
  say(connected, RDMA_USER_CM_CMD_ACCEPT, with_params<rdma_ucm_accept>(0, 0));
  add(disconnect(after(connected, cm::DisconnectRequest{})));
  add(after(disconnect(connected), cm::DisconnectReply{}));
  add(after(connecting(RDMA_PS_UDP), cm::ServiceIdReply{.qpn = 9, .qkey = 8}));
  // Refusals, and messages before their time.
  Script refused = listening(RDMA_PS_TCP);
  answer(refused, cm::ConnectRequest{});
  wait(refused);
  say(refused, RDMA_USER_CM_CMD_REJECT, rdma_ucm_reject{.private_data_len = 100, .reason = 28});
  add(refused);
  Script guessed = listening(RDMA_PS_TCP);
  for (std::uint8_t i = 0; i < 5; ++i) answer(guessed, cm::ConnectRequest{}, i);
  for (std::uint32_t id = 2; id < 6; ++id) {
    auto accept = with_params<rdma_ucm_accept>(1, 0);
    accept.id = id;
    say(guessed, RDMA_USER_CM_CMD_ACCEPT, accept, 0, 0, kRawIds);
  }
  add(guessed);
  // Groups, options, other channels.
  Script group = resolving(RDMA_PS_UDP);
  create(group, RDMA_PS_UDP);
  say(group, RDMA_USER_CM_CMD_BIND_IP, with_address<rdma_ucm_bind_ip>(kSelf, &rdma_ucm_bind_ip::addr));
  auto join = rdma_ucm_join_ip_mcast{};
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(0xe0010101);
  std::memcpy(&join.addr, &address, sizeof address);
  say(group, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join);
  wait(group);
  add(group);
  say(group, RDMA_USER_CM_CMD_LEAVE_MCAST, rdma_ucm_destroy_id{});
  add(group);
  Script moved = resolving(RDMA_PS_TCP);
  for (const auto& [from, to] : {std::array<std::uint8_t, 2>{0, 1}, {1, 1}, {1, 2}, {1, 0}})
    say(moved, RDMA_USER_CM_CMD_MIGRATE_ID, rdma_ucm_migrate_id{.fd = from}, 0, to);
  struct [[gnu::packed]] SetTos {
    rdma_ucm_set_option option;
    std::uint8_t value;
  };
  say(moved, RDMA_USER_CM_CMD_SET_OPTION, SetTos{{.optname = RDMA_OPTION_ID_TOS, .optlen = 1}, 32});
  moved.step(close_channel, std::uint8_t{1}).step(close_process, std::uint8_t{0});
  add(moved);
  const auto mad = cm::encode({1, cm::ConnectRequest{}});
  all.push_back(Script().step(datagram, std::uint8_t{0}, mad).step(datagram, std::uint8_t{0}, Bytes(100)));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim::fuzz;
  World world;
  Input input(data, size);
  for (int steps = 0; !input.empty() && steps < 300; ++steps) world.take(input.take_step());
  world.finish();
  return 0;
}
