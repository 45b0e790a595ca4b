// What a walker knows of XRC: the domains that processes of a host share, the queue pairs that receive for them, and
// which shared receive queue each message named.
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
inline constexpr std::uint32_t kNoSuchQueue = 0x80'0000;  // no device has as many

inline bool is_reliable(ibv_qp_type type) {
  return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}
inline bool connects(ibv_qp_type type) { return type == IBV_QPT_UC || is_reliable(type); }
// Whom it is connected with.
inline ibv_qp_type counterpart(ibv_qp_type type) {
  return type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND : type;
}

struct XrcDomain {
  std::uint32_t opens = 0;
  std::set<std::uint32_t> receivers;  // the numbers of its queue pairs, ever
};

// As a process has it open.
struct XrcOpening {
  ibv_xrcd* xrcd = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
  std::optional<std::uint32_t> file;
  std::shared_ptr<XrcDomain> domain;
};

// A process's handle of a queue pair that receives for a domain. There may be more of one pair.
struct XrcReceiver {
  ibv_qp* qp = nullptr;
  std::shared_ptr<XrcOpening> opening;
  std::shared_ptr<Pair> pair;
};

// Of a host. Who is within a call on one makes it uncertain what others are answered.
struct XrcFile {
  std::shared_ptr<XrcDomain> domain;  // of last
  std::uint32_t calls = 0;            // at present
  std::uint32_t changes = 0;
};

struct XrcMessage {
  std::uint32_t srqn = 0;
  std::uint32_t receiver = 0;
};

// What the processes know together.
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
  std::array<std::array<XrcFile, kXrcFiles>, 2> files;       // by host
  std::array<std::vector<std::uint32_t>, 2> gone;            // numbers of SRQs of a host that are no more
  std::vector<std::shared_ptr<Pair>> receivers;              // that somebody has a handle of
  std::map<std::uint64_t, XrcMessage> messages;              // by id
};

}  // namespace rnicsim::testing
