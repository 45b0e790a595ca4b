// SPDX-License-Identifier: Apache-2.0
#include "tests/verbs/rdmacm/scripted_port.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include <algorithm>

#include "model/abi/command.h"
#include "model/abi/device.h"
#include "verbs/provider/commands.h"

namespace rnicsim {

namespace {

constexpr char kCommands[][16] = {"create_id",   "destroy_id",    "bind_ip",     "resolve_ip", "resolve_route",
                                  "query_route", "connect",       "listen",      "accept",     "reject",
                                  "disconnect",  "init_qp_attr",  "get_event",   "get_option", "set_option",
                                  "notify",      "join_ip_mcast", "leave_mcast", "migrate_id", "query",
                                  "bind",        "resolve_addr",  "join_mcast"};

template <class T>
T read_as(std::span<const std::byte> bytes) {
  return provider::decode<T>(bytes);
}
void answer(std::span<std::byte> output, const auto& value) {
  ASSERT_EQ(output.size(), sizeof value);
  std::memcpy(output.data(), &value, sizeof value);
}

}  // namespace

int ScriptedPort::next_event(std::span<std::byte> output) {
  if (events.empty()) return EAGAIN;
  ++reported[events.front().first];
  answer(output, events.front().second);
  events.pop_front();
  return 0;
}

void ScriptedPort::answer_query(std::uint32_t what, std::span<std::byte> output) const {
  if (what == kernel::RDMA_USER_CM_QUERY_PATH) {
    std::memset(output.data(), 0, output.size());
    output[0] = std::byte(1);
    return;
  }
  kernel::rdma_ucm_query_addr_resp address{};
  if (names_device) {
    ibv_device** list = ibv_get_device_list(nullptr);
    address.node_guid = ibv_get_device_guid(list[0]);
    ibv_free_device_list(list);
    address.port_num = 1;
    address.pkey = 0xffff;
  }
  address.src_size = address.dst_size = sizeof(sockaddr_in);
  sockaddr_in source{};
  source.sin_family = AF_INET;
  source.sin_port = htons(7471);
  std::memcpy(&address.src_addr, &source, sizeof source);
  answer(output, address);
}

void ScriptedPort::answer_attributes(ibv_qp_state state, std::span<std::byte> output) const {
  ib_uverbs_qp_attr attributes{};
  attributes.qp_state = state;
  attributes.port_num = 1;
  attributes.qkey = RDMA_UDP_QKEY;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = 77;
  attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 3;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid[0] = 0xfe;
  attributes.ah_attr.grh.hop_limit = 64;
  const int common = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  switch (state) {
    case IBV_QPS_INIT:
      attributes.qp_attr_mask = std::uint32_t(common | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
      break;
    case IBV_QPS_RTR:
      attributes.qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
      break;
    default:
      attributes.qp_attr_mask =
          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  answer(output, attributes);
}

int ScriptedPort::rdma_cm(std::uint32_t channel, std::uint32_t command, std::span<const std::byte> input,
                          std::span<std::byte> output) {
  const std::string name = kCommands[command];
  if (name != "get_event") asked.push_back(name);
  if (refused.contains(name)) return refused[name];
  switch (command) {
    case kernel::RDMA_USER_CM_CMD_CREATE_ID:
      newest_ = channel;
      last_uid = read_as<kernel::rdma_ucm_create_id>(input).uid;
      answer(output, kernel::rdma_ucm_create_id_resp{last_id = next_++});
      break;
    case kernel::RDMA_USER_CM_CMD_JOIN_MCAST:
      last_uid = read_as<kernel::rdma_ucm_join_mcast>(input).uid;
      answer(output, kernel::rdma_ucm_create_id_resp{last_id = next_++});
      break;
    case kernel::RDMA_USER_CM_CMD_DESTROY_ID:
    case kernel::RDMA_USER_CM_CMD_LEAVE_MCAST:
      answer(output, kernel::rdma_ucm_destroy_id_resp{reported[read_as<kernel::rdma_ucm_destroy_id>(input).id]});
      break;
    case kernel::RDMA_USER_CM_CMD_MIGRATE_ID:
      newest_ = channel;
      answer(output, kernel::rdma_ucm_migrate_resp{reported[read_as<kernel::rdma_ucm_migrate_id>(input).id]});
      break;
    case kernel::RDMA_USER_CM_CMD_QUERY: answer_query(read_as<kernel::rdma_ucm_query>(input).option, output); break;
    case kernel::RDMA_USER_CM_CMD_INIT_QP_ATTR:
      answer_attributes(ibv_qp_state(read_as<kernel::rdma_ucm_init_qp_attr>(input).qp_state), output);
      break;
    case kernel::RDMA_USER_CM_CMD_CONNECT: parameters = read_as<kernel::rdma_ucm_connect>(input).conn_param; break;
    case kernel::RDMA_USER_CM_CMD_ACCEPT: parameters = read_as<kernel::rdma_ucm_accept>(input).conn_param; break;
    case kernel::RDMA_USER_CM_CMD_REJECT: rejection = read_as<kernel::rdma_ucm_reject>(input); break;
    case kernel::RDMA_USER_CM_CMD_SET_OPTION:
      option.assign(input.begin() + sizeof(kernel::rdma_ucm_set_option), input.end());
      break;
    case kernel::RDMA_USER_CM_CMD_GET_EVENT: return next_event(output);
    default: break;
  }
  return 0;
}

int ScriptedPort::command(std::uint32_t, std::span<const std::byte> input, std::span<std::byte> output) {
  const auto header = provider::decode<abi::CommandHeader>(input);
  abi::CommandResult result;
  result.object = header.object;
  switch (abi::CommandOpcode(std::uint16_t(header.opcode))) {
    case abi::CommandOpcode::query_device: {
      abi::DeviceCapabilities all;
      all.features = abi::feature::kRc | abi::feature::kUd | abi::feature::kMulticast;
      all.max_qp = all.max_cq = all.max_pd = 100u;
      all.max_qp_wr = 4096u;
      all.max_send_sge = all.max_receive_sge = 16u;
      all.max_cqe = 4096u;
      all.max_inline = 64u;
      all.max_rd_atomic = 16u;
      all.ports = 1u;
      answer(output, all);
      return 0;
    }
    case abi::CommandOpcode::query_port: {
      abi::PortAttributes port;
      port.state = IBV_PORT_ACTIVE;
      port.max_mtu = port.active_mtu = IBV_MTU_4096;
      port.gid_table_length = 4;
      answer(output, port);
      return 0;
    }
    case abi::CommandOpcode::create_cq:
    case abi::CommandOpcode::create_qp: result.object = next_++; break;
    case abi::CommandOpcode::modify_qp: {
      const auto modify = provider::decode<abi::ModifyQp>(input);
      states.push_back(modify.context.state);
      asked.push_back("modify_qp");
      break;
    }
    case abi::CommandOpcode::attach_multicast: ++attached; break;
    case abi::CommandOpcode::detach_multicast: ++detached; break;
    default: break;
  }
  std::memcpy(output.data(), &result, std::min(output.size(), sizeof result));
  return 0;
}

ScriptedPort& scripted_port() {
  static ScriptedPort& port = *new ScriptedPort;
  return port;
}

DevicePort* device_port(std::uint32_t device) { return device == 0 ? &scripted_port() : nullptr; }

}  // namespace rnicsim
