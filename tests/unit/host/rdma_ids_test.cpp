// SPDX-License-Identifier: Apache-2.0
// The rdma_cm commands lose no state that must be kept, whatever a program asks for.
#include <gtest/gtest.h>
#include <rdma/rdma_user_cm.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "model/host/cm/address_header.h"
#include "model/host/cm/rdma_ids.h"
#include "model/host/cm/user_commands.h"
#include "model/host/gids.h"
#include "tests/support/network_interface.h"

namespace rnicsim::host::rdma_ids_test {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr UserChannel kChannel{7, 1};
constexpr UserChannel kOther{7, 2};

class Ids : public ::testing::Test {
 protected:
  static RdmaIds::Host parameters() {
    RdmaIds::Host host;
    host.devices = {{.interface = testing::network_interface(1)}};
    host.fabric = Neighbours({testing::network_interface(1), testing::network_interface(2)});
    return host;
  }
  static IpAddress address_of(std::uint8_t host) {
    return IpAddress::of_gid(gids_of(testing::network_interface(host))[kIpv4GidIndex], false, kPort);
  }

  template <class Command>
  int ask(const UserChannel& channel, std::uint32_t number, const Command& command, std::size_t room) {
    output_.assign(room, std::byte{0});
    return execute_user_command(ids, channel, number, std::as_bytes(std::span(&command, 1)), output_);
  }
  template <class Response>
  Response answer() const {
    Response response;
    std::memcpy(static_cast<void*>(&response), output_.data(), sizeof response);
    return response;
  }
  rdma_ucm_event_resp next_event(const UserChannel& channel) {
    EXPECT_EQ(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, sizeof(rdma_ucm_event_resp)), 0);
    return answer<rdma_ucm_event_resp>();
  }
  std::uint32_t create(rdma_ucm_port_space space = RDMA_PS_TCP) {
    rdma_ucm_create_id command{};
    command.ps = std::uint16_t(space);
    EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_CREATE_ID, command, sizeof(rdma_ucm_create_id_resp)), 0);
    return answer<rdma_ucm_create_id_resp>().id;
  }
  // An id with one pending event.
  std::uint32_t create_resolved() {
    const std::uint32_t number = create();
    EXPECT_EQ(ids.resolve_address(*ids.find(kChannel.number, number), std::nullopt, address_of(2), Duration{1}), 0);
    ids.advance(Duration{1});
    EXPECT_EQ(queued[kChannel.number], 1);
    return number;
  }
  // A request of the peer to the listener.
  void request(std::uint32_t local_id = 9, cm::TimeCode ack_timeout = 0) {
    cm::ConnectRequest request{.local_id = local_id, .service_id = std::uint64_t{RDMA_PS_TCP} << 16 | kPort};
    request.local_qpn = local_id;
    request.primary = {.local_gid = address_of(2).bytes, .remote_gid = address_of(1).bytes};
    request.primary.local_ack_timeout = ack_timeout;
    std::ranges::copy(AddressHeader{address_of(2), address_of(1)}.encode(), request.private_data.begin());
    ids.receive({.local = address_of(1).bytes, .remote = address_of(2).bytes}, {1, request});
  }

  std::map<std::uint32_t, int> queued;  // pending events by channel
  RdmaIds ids{parameters(),
              {[this](std::uint32_t channel, std::uint32_t) { ++queued[channel]; },
               [this](std::uint32_t channel, std::uint32_t) { queued[channel] = 0; }}};

 private:
  std::vector<std::byte> output_;
};

// The number of a request's id cannot be used before its event, and a guess must not harm the event.
TEST_F(Ids, ARequestIsNoIdBeforeItsEvent) {
  const std::uint32_t listener = create();
  ASSERT_EQ(ids.bind(*ids.find(kChannel.number, listener), address_of(1)), 0);
  ASSERT_EQ(ids.listen(*ids.find(kChannel.number, listener), 1), 0);
  request();
  ASSERT_EQ(queued[kChannel.number], 1);
  rdma_ucm_destroy_id destroy{};
  destroy.id = listener + 1;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_DESTROY_ID, destroy, sizeof(rdma_ucm_destroy_id_resp)), ENOENT);
  rdma_ucm_accept accept{};
  accept.id = listener + 1;
  accept.conn_param.valid = 1;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_ACCEPT, accept, 0), ENOENT);
  EXPECT_EQ(next_event(kChannel).id, listener + 1);
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_DESTROY_ID, destroy, sizeof(rdma_ucm_destroy_id_resp)), 0);
}

// Accepted connections have the type of service and the local ACK timeout of their listener.
TEST_F(Ids, AnAcceptedIdHasItsListenersOptions) {
  constexpr std::uint8_t kTypeOfService = 0x68, kAckTimeout = 17, kOfRequest = 9;
  for (const bool given : {true, false}) {
    SCOPED_TRACE(given);
    const std::uint32_t listener = create();
    RdmaId& listens = *ids.find(kChannel.number, listener);
    const auto set = [&](std::uint32_t name, std::uint8_t value) {
      return ids.set_option(listens, RDMA_OPTION_ID, name, std::as_bytes(std::span(&value, 1)));
    };
    if (given) {
      ASSERT_EQ(set(RDMA_OPTION_ID_TOS, kTypeOfService), 0);
      ASSERT_EQ(set(RDMA_OPTION_ID_ACK_TIMEOUT, kAckTimeout), 0);
    }
    ASSERT_EQ(ids.bind(listens, address_of(1)), 0);
    ASSERT_EQ(ids.listen(listens, 1), 0);
    request(given ? 9 : 10, kOfRequest);
    const auto number = next_event(kChannel).id;
    RdmaId* accepted = ids.find(kChannel.number, number);
    ASSERT_NE(accepted, nullptr);
    EXPECT_EQ(accepted->traffic_class, given ? kTypeOfService : 0);
    ib_uverbs_qp_attr attributes{};
    constexpr std::uint32_t kReadyToSend = 3;
    ASSERT_EQ(ids.init_qp_attributes(*accepted, kReadyToSend, attributes), 0);
    EXPECT_EQ(attributes.timeout, given ? kAckTimeout : kOfRequest);
    rdma_ucm_destroy_id destroy{};
    for (const auto id : {number, listener}) {
      destroy.id = id;
      ASSERT_EQ(ask(kChannel, RDMA_USER_CM_CMD_DESTROY_ID, destroy, sizeof(rdma_ucm_destroy_id_resp)), 0);
    }
  }
}

TEST_F(Ids, MovedToWhereItIsKeepsItsEvents) {
  rdma_ucm_migrate_id move{};
  move.id = create_resolved();
  move.fd = kChannel.number;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_MIGRATE_ID, move, sizeof(rdma_ucm_migrate_resp)), 0);
  EXPECT_EQ(queued[kChannel.number], 1);
  EXPECT_EQ(next_event(kChannel).id, move.id);
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_MIGRATE_ID, move, sizeof(rdma_ucm_migrate_resp)), 0);
  EXPECT_EQ(answer<rdma_ucm_migrate_resp>().events_reported, 1u);
}

TEST_F(Ids, ACommandWithoutRoomForItsAnswerIsNotDone) {
  const std::uint32_t number = create_resolved();
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, sizeof(rdma_ucm_event_resp) - 1), EINVAL);
  EXPECT_EQ(next_event(kChannel).id, number);

  rdma_ucm_create_id create_command{};
  create_command.ps = RDMA_PS_TCP;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_CREATE_ID, create_command, 0), EINVAL);
  EXPECT_EQ(ids.size(), 1u);
  rdma_ucm_migrate_id move{};
  move.id = number;
  move.fd = kChannel.number;
  EXPECT_EQ(ask(kOther, RDMA_USER_CM_CMD_MIGRATE_ID, move, 0), EINVAL);
  rdma_ucm_destroy_id destroy{};
  destroy.id = number;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_DESTROY_ID, destroy, 0), EINVAL);
  EXPECT_NE(ids.find(kChannel.number, number), nullptr);
}

TEST_F(Ids, AGroupWithoutRoomForItsAnswerIsNotJoined) {
  const std::uint32_t number = create(RDMA_PS_UDP);
  ASSERT_EQ(ids.bind(*ids.find(kChannel.number, number), address_of(1)), 0);
  rdma_ucm_join_ip_mcast join{};
  join.id = number;
  IpAddress group = address_of(1);
  group.bytes[12] = 224;
  const auto storage = group.to_sockaddr();
  std::memcpy(&join.addr, &storage, sizeof join.addr);
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join, 0), EINVAL);
  EXPECT_EQ(ids.next_deadline(), std::nullopt);
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join, sizeof(rdma_ucm_create_id_resp)), 0);
  rdma_ucm_destroy_id leave{};
  leave.id = answer<rdma_ucm_create_id_resp>().id;
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, 0), EINVAL);
  EXPECT_EQ(ask(kChannel, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, sizeof(rdma_ucm_destroy_id_resp)), 0);
}

// --- Several devices: this host has 10.0.0.1 and 10.0.3.1, the peer 10.0.0.2 and 10.0.3.2; each pair shares a subnet.

class TwoDevices : public ::testing::Test {
 protected:
  static abi::NetworkInterface interface(std::uint8_t number, std::uint8_t device) {
    auto made = testing::network_interface(number);
    made.device = device;
    made.ipv4[2] = made.mac[4] = made.ipv6[7] = std::uint8_t(3 * device);
    return made;
  }
  static RdmaIds::Host parameters() {
    RdmaIds::Host host;
    for (std::uint8_t device = 0; device < 2; ++device) host.devices.push_back({.interface = interface(1, device)});
    std::vector<abi::NetworkInterface> fabric;
    for (std::uint8_t number = 1; number <= 2; ++number)
      for (std::uint8_t device = 0; device < 2; ++device) fabric.push_back(interface(number, device));
    host.fabric = Neighbours(std::move(fabric));
    return host;
  }
  static IpAddress address_of(std::uint8_t number, std::uint8_t device, std::uint16_t port = kPort) {
    return IpAddress::of_gid(gids_of(interface(number, device))[kIpv4GidIndex], false, port);
  }
  RdmaId& create() {
    rdma_ucm_create_id command{};
    command.ps = RDMA_PS_TCP;
    std::uint32_t number = 0;
    EXPECT_EQ(ids.create(kChannel.process, kChannel.number, command, number), 0);
    return *ids.find(kChannel.number, number);
  }
  CmEventType resolve(RdmaId& id, const std::optional<IpAddress>& source, const IpAddress& destination) {
    EXPECT_EQ(ids.resolve_address(id, source, destination, Duration{1'000'000}), 0);
    ids.advance(now_ = now_ + Duration{2'000'000});
    rdma_ucm_event_resp event{};
    EXPECT_EQ(ids.next_event(kChannel.number, event), 0);
    return CmEventType(event.event);
  }
  // A request from the peer's device to the same device of this host, for the address of `to`.
  int request(std::uint8_t by_device, const IpAddress& to, std::uint32_t qpn) {
    cm::ConnectRequest request{.local_id = qpn, .service_id = std::uint64_t{RDMA_PS_TCP} << 16 | kPort};
    request.local_qpn = qpn;
    const auto from = address_of(2, by_device);
    const Gid local = address_of(1, by_device).bytes;
    request.primary = {.local_gid = from.bytes, .remote_gid = local};
    std::ranges::copy(AddressHeader{from, to}.encode(), request.private_data.begin());
    ids.receive({.local = local, .remote = from.bytes}, {qpn, request});
    rdma_ucm_event_resp event{};
    return ids.next_event(kChannel.number, event);
  }

  Duration now_;
  RdmaIds ids{parameters(), {[](std::uint32_t, std::uint32_t) {}, [](std::uint32_t, std::uint32_t) {}}};
};

TEST_F(TwoDevices, AnIdGoesByTheDeviceInWhoseSubnetItsPeerIs) {
  for (std::uint8_t device = 0; device < 2; ++device) {
    RdmaId& id = create();
    EXPECT_EQ(resolve(id, std::nullopt, address_of(2, device)), CmEventType::address_resolved);
    EXPECT_EQ(id.device, device);
    EXPECT_EQ(id.source.bytes, address_of(1, device).bytes);
    ASSERT_EQ(ids.resolve_route(id), 0);
    ids.advance(now_ = now_ + Duration{2'000'000});
    rdma_ucm_event_resp event{};
    ASSERT_EQ(ids.next_event(kChannel.number, event), 0);
    rdma_ucm_conn_param parameters{};
    ASSERT_EQ(ids.connect(id, parameters), 0);
    const auto outgoing = ids.next_message();
    ASSERT_TRUE(outgoing);
    EXPECT_EQ(outgoing->route.local, address_of(1, device).bytes);
    EXPECT_EQ(std::get<cm::ConnectRequest>(outgoing->envelope.message).local_ca_guid,
              abi::node_guid_of(interface(1, device)));
  }
}

TEST_F(TwoDevices, FromOneToTheSubnetOfTheOtherIsNoRoute) {
  RdmaId& id = create();
  EXPECT_EQ(ids.resolve_address(id, address_of(1, 0, 0), address_of(2, 1), Duration{1}), ENETUNREACH);
  EXPECT_EQ(id.state, IdState::address_bound);
  EXPECT_EQ(resolve(id, std::nullopt, address_of(2, 0)), CmEventType::address_resolved);
}

TEST_F(TwoDevices, ItsOwnAddressIsThatOfItsDevice) {
  RdmaId& id = create();
  EXPECT_EQ(resolve(id, std::nullopt, address_of(1, 1)), CmEventType::address_resolved);
  EXPECT_EQ(id.device, 1u);
}

TEST_F(TwoDevices, AWildcardHearsOfEach) {
  RdmaId& id = create();
  ASSERT_EQ(ids.bind(id, IpAddress::of_gid(IpAddress{}.bytes, false, kPort)), 0);
  ASSERT_EQ(ids.listen(id, 8), 0);
  EXPECT_EQ(request(0, address_of(1, 0), 5), 0);
  EXPECT_EQ(request(1, address_of(1, 1), 6), 0);
}

TEST_F(TwoDevices, ARequestForTheAddressOfTheOtherIsNone) {
  RdmaId& id = create();
  ASSERT_EQ(ids.bind(id, IpAddress::of_gid(IpAddress{}.bytes, false, kPort)), 0);
  ASSERT_EQ(ids.listen(id, 8), 0);
  EXPECT_EQ(request(0, address_of(1, 1), 5), EAGAIN);
  EXPECT_EQ(request(1, address_of(1, 0), 6), EAGAIN);
}

TEST_F(TwoDevices, APortIsTheHosts) {
  RdmaId& first = create();
  RdmaId& second = create();
  EXPECT_EQ(ids.bind(first, address_of(1, 0)), 0);
  EXPECT_EQ(ids.bind(second, address_of(1, 1)), 0);
  EXPECT_EQ(ids.bind(create(), IpAddress::of_gid(IpAddress{}.bytes, false, kPort)), EADDRNOTAVAIL);
  EXPECT_EQ(ids.bind(create(), address_of(1, 1)), EADDRINUSE);
  EXPECT_EQ(second.device, 1u);
}

}  // namespace
}  // namespace rnicsim::host::rdma_ids_test
