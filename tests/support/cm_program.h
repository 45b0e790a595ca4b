// SPDX-License-Identifier: Apache-2.0
// A librdmacm program on a host inside the test's process: one event channel, the ids on it, and the events received,
// with their times.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "model/host/software_process.h"

namespace rnicsim::testing {

struct CmEvent {
  rdma_cm_event_type type;
  Duration at;
  int status = 0;
  rdma_cm_id* id = nullptr;

  friend std::ostream& operator<<(std::ostream& out, const CmEvent& event) {
    return out << rdma_event_str(event.type) + 14 << ' ' << event.status << " at " << event.at.ps / 1'000'000 << " us";
  }
};

class CmProgram {
 public:
  // Create and use the object in threads of `process`.
  explicit CmProgram(host::SoftwareProcess& process);
  ~CmProgram();  // destroys all ids and the channel, unless leave_behind() was called
  CmProgram(const CmProgram&) = delete;
  CmProgram& operator=(const CmProgram&) = delete;

  // The process will end without destroying its objects.
  void leave_behind() { left_ = true; }

  rdma_cm_id* make(rdma_port_space space = RDMA_PS_TCP);
  void destroy(rdma_cm_id* id);  // destroys the id's QP, too
  // Listens at a port on every IPv4 address of the host.
  rdma_cm_id* listen(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP, int backlog = 0);
  void make_qp(rdma_cm_id* id);
  static int try_qp(rdma_cm_id* id);  // 0; -1: failed, errno is set
  // Resolves address and route.
  void resolve(rdma_cm_id* id, sockaddr_in to);
  // Makes an id, resolves address and route, makes the QP and asks for the connection.
  rdma_cm_id* connect(sockaddr_in to, rdma_port_space space = RDMA_PS_TCP);
  static int accept(rdma_cm_id* id);

  // Reads an event, calls the handler and acknowledges the event.
  CmEvent next();
  CmEvent await(rdma_cm_event_type type);  // earlier events are handled, too
  void run_until(Duration time);
  void sleep_to(Duration time);
  bool readable() const;
  rdma_event_channel* channel() const { return channel_; }

  std::function<void(rdma_cm_event&)> handler;
  std::vector<CmEvent> seen;

  static sockaddr_in ipv4(std::uint8_t host, std::uint16_t port);  // addresses of the topology "back-to-back"

 private:
  host::SoftwareProcess& process_;
  rdma_event_channel* channel_;
  std::set<rdma_cm_id*> ids_;
  bool left_ = false;
};

}  // namespace rnicsim::testing
