// SPDX-License-Identifier: Apache-2.0
// A queue pair with the objects that it needs: device, PD, CQ, MR, buffer. The destructor destroys all of them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace rnicsim::testing {

struct EndpointOptions {
  ibv_qp_type type = IBV_QPT_RC;
  std::size_t buffer_bytes = 1 << 16;
  int cq_entries = 64;
  std::uint32_t max_wr = 32;
  std::uint32_t max_sge = 4;
  std::uint32_t max_inline = 64;
  std::uint32_t shared_wr = 0;       // not 0: the QP uses an SRQ of this many receives
  std::uint32_t inline_receive = 0;  // longest SEND, in bytes, that the CQE contains
  int mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  unsigned qp_access =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  ibv_mtu mtu = IBV_MTU_1024;
  std::uint32_t psn = 0x123456;
  std::uint8_t timeout = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 1;
  std::uint8_t max_rd_atomic = 16;
  std::uint8_t gid_index = 1;
  std::uint32_t qkey = 0x1234567;  // UD only
  bool signal_all = true;
  bool channel = false;
};

// Connection data that one end gives the other outside of the simulated network.
struct EndpointAddress {
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;
  ibv_gid gid{};
  std::uint64_t buffer = 0;
  std::uint32_t rkey = 0;
};

class Endpoint {
 public:
  explicit Endpoint(const EndpointOptions& options = {});
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // A QP with the options of the endpoint's own QP, on the same CQ and SRQ.
  ibv_qp* create_qp();
  EndpointAddress address() const;
  void to_init();
  void to_rtr(const EndpointAddress& remote);
  void to_rts();
  void connect(const EndpointAddress& remote);  // INIT, RTR and RTS; UD: `remote` receives the requests
  ibv_qp_state state();

  // Work request: local range [offset, offset + length) of the buffer, remote range from remote_offset.
  ibv_send_wr request(ibv_wr_opcode opcode, std::uint32_t offset, std::uint32_t length,
                      std::uint32_t remote_offset = 0);
  // Atomics of 8 bytes.
  ibv_send_wr fetch_add(std::uint32_t offset, std::uint64_t add, std::uint32_t remote_offset = 0);
  ibv_send_wr compare_swap(std::uint32_t offset, std::uint64_t compare, std::uint64_t swap,
                           std::uint32_t remote_offset = 0);
  int post(ibv_send_wr request);
  // Posts to the SRQ, if there is one.
  int receive(std::uint32_t offset, std::uint32_t length, std::uint64_t wr_id = 0);
  // Polls until a completion arrives.
  ibv_wc completion();

  EndpointOptions options;
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  ibv_ah* ah = nullptr;  // UD only: address of the remote end
  std::vector<std::uint8_t> buffer;

 private:
  EndpointAddress remote_;
  ibv_sge sge_{};
};

}  // namespace rnicsim::testing
