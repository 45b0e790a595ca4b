// A program of librdmacm on a host inside the test's process: one event channel, the ids on it, and what was told of
// them, with its times.
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
  // To be made and used by threads of that process.
  explicit CmProgram(host::SoftwareProcess& process);
  ~CmProgram();              // gives everything back, unless it was left behind
  CmProgram(const CmProgram&) = delete;
  CmProgram& operator=(const CmProgram&) = delete;

  // The process is going to end as it is.
  void leave_behind() { left_ = true; }

  rdma_cm_id* make(rdma_port_space space = RDMA_PS_TCP);
  void destroy(rdma_cm_id* id);  // its QP, too
  // At a port of every IPv4 address of the host.
  rdma_cm_id* listen(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP, int backlog = 0);
  void make_qp(rdma_cm_id* id);
  static int try_qp(rdma_cm_id* id);  // 0, or -1 and errno
  // Address and route.
  void resolve(rdma_cm_id* id, sockaddr_in to);
  // All of that, and asks for the connection.
  rdma_cm_id* connect(sockaddr_in to, rdma_port_space space = RDMA_PS_TCP);
  static int accept(rdma_cm_id* id);

  // Events are acknowledged when the handler has seen them.
  CmEvent next();
  CmEvent await(rdma_cm_event_type type);  // what comes before is handled, too
  void run_until(Duration time);
  void sleep_to(Duration time);
  bool readable() const;
  rdma_event_channel* channel() const { return channel_; }

  std::function<void(rdma_cm_event&)> handler;
  std::vector<CmEvent> seen;

  static sockaddr_in ipv4(std::uint8_t host, std::uint16_t port);  // of the topology "back-to-back"

 private:
  host::SoftwareProcess& process_;
  rdma_event_channel* channel_;
  std::set<rdma_cm_id*> ids_;
  bool left_ = false;
};

}  // namespace rnicsim::testing
