// SPDX-License-Identifier: Apache-2.0
// Expected state of XRC: the domains that processes of a host share, the domains' receive QPs, and the shared receive
// queue that each message named.
#pragma once

#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace rnicsim::testing {

struct Pair;

inline constexpr std::uint32_t kXrcFiles = 2;
inline constexpr std::uint32_t kNoSuchQueue = 0x80'0000;  // larger than any SRQ number

inline bool is_reliable(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}
inline bool connects(ibv_qp_type type) { return type == IBV_QPT_UC || is_reliable(type); }
// QP type of the peer.
inline ibv_qp_type counterpart(ibv_qp_type type) {
  return type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND : type;
}

struct XrcDomain {
  std::uint32_t opens = 0;
  std::set<std::uint32_t> receivers;  // numbers of all receive QPs that the domain ever had
};

// A domain as one process has it open.
struct XrcOpening {
  ibv_xrcd* xrcd = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
  std::optional<std::uint32_t> file;
  std::shared_ptr<XrcDomain> domain;
};

// A process's handle of a domain's receive QP. One QP may have several handles.
struct XrcReceiver {
  ibv_qp* qp = nullptr;
  std::shared_ptr<XrcOpening> opening;
  std::shared_ptr<Pair> pair;
};

// State of a domain's file on one host. While a process is within a call on the file, results of other calls are
// uncertain.
struct XrcFile {
  std::shared_ptr<XrcDomain> domain;  // the domain of the last successful open
  std::uint32_t calls = 0;            // calls in progress
  std::uint32_t changes = 0;
};

struct XrcMessage {
  std::uint32_t srqn = 0;
  std::uint32_t receiver = 0;
};

// State that all processes share.
struct XrcTown {
  XrcTown() {
    for (int& fd : descriptors) fd = ::memfd_create("domain", MFD_CLOEXEC);
  }
  ~XrcTown() {
    for (const int fd : descriptors) ::close(fd);
  }
  XrcTown(const XrcTown&) = delete;
  XrcTown& operator=(const XrcTown&) = delete;

  std::array<int, kXrcFiles> descriptors{};
  std::array<std::array<XrcFile, kXrcFiles>, 2> files;  // by host
  std::array<std::vector<std::uint32_t>, 2> gone;       // by host: numbers of destroyed SRQs
  std::vector<std::shared_ptr<Pair>> receivers;         // receive QPs that have a handle
  std::map<std::uint64_t, XrcMessage> messages;         // key: id of the message
};

}  // namespace rnicsim::testing
