// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/host/kernel/files/event_descriptors.h"
#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/files/made_files.h"
#include "sim/host/kernel/files/random.h"
#include "sim/host/kernel/processes/affinity.h"
#include "sim/host/kernel/signals/child_signal.h"
#include "sim/host/kernel/signals/handlers.h"
#include "sim/host/kernel/signals/kill.h"
#include "sim/host/kernel/sockets/network.h"
#include "sim/host/kernel/sockets/streams.h"
#include "sim/host/shim/call_trap.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/counter/tsc.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(socket);
RNICSIM_NEXT(connect);
RNICSIM_NEXT(close);
RNICSIM_NEXT(recvmsg);
RNICSIM_NEXT(execve);

namespace rnicsim::clock {

namespace {

char** first_environment = nullptr;  // as the kernel made it
// Above the numbers that programs use, so that a program gets the descriptor numbers that it expects.
constexpr int kSocketDescriptor = 1000;

void receive_welcome(abi::Welcome& welcome, int (&descriptors)[2]) {
  iovec part{&welcome, sizeof welcome};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof descriptors)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t got;
  // A simulator that refuses without reading the hello resets the connection: ECONNRESET comes once, then the reason.
  bool was_reset = false;
  do got = next_recvmsg(the_session.socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))));
  if (got != ssize_t(sizeof welcome)) die("the simulator closed the connection");
  if (welcome.magic != abi::kAttachMagic || welcome.major != abi::kAttachMajor)
    die("the simulator has another version of the attach protocol");
  if (welcome.error != 0) die("%.*s", int(sizeof welcome.message), welcome.message);
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_len != CMSG_LEN(sizeof descriptors)) die("the simulator sent no memory");
  memcpy(descriptors, CMSG_DATA(rights), sizeof descriptors);
}

std::byte* map(int descriptor, std::uint64_t bytes, std::uint64_t address) {
  const int fixed = address != 0 ? MAP_FIXED_NOREPLACE : 0;
  void* memory = ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | fixed, descriptor, 0);
  if (memory == MAP_FAILED) die("cannot map the simulator's memory: %s", strerror(errno));
  next_close(descriptor);
  // A core file would contain the whole region, used or not.
  checked_call(SYS_madvise, memory, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(memory);
}

// Connects the session's socket. False, with errno: no listener.
bool connect_socket(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto length = std::min(strlen(name), sizeof address.sun_path - 1);
  memcpy(address.sun_path + 1, name, length);
  const int fd = next_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  // A forked child with all lower numbers in use gets the parent's former number from socket() itself.
  const int above = fd >= kSocketDescriptor ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, kSocketDescriptor);
  the_session.socket = above >= 0 ? above : fd;
  if (the_session.socket != fd) next_close(fd);
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  return next_connect(the_session.socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
}

// Raises the soft limit of descriptors to the hard limit while the process attaches. Attaching needs a socket and two
// regions of memory, but a program that forks may have used up its descriptors, because fork(2) needs none.
class SpareDescriptors {
 public:
  SpareDescriptors() {
    raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &given_);
    const rlimit all{given_.rlim_max, given_.rlim_max};
    raised_ = given_.rlim_cur < given_.rlim_max && raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &all, nullptr) == 0;
  }
  ~SpareDescriptors() {
    if (raised_) raw_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &given_, nullptr);
  }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

 private:
  rlimit given_{};
  bool raised_ = false;
};

// The listener becomes this program's kernel, but any local user may listen at any name: only this user and root are
// accepted.
void check_listener(const char* name) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (raw_call(SYS_getsockopt, the_session.socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    die("the listener at %s has no credentials", name);
  if (peer.uid != uid_t(raw_call(SYS_geteuid)) && peer.uid != 0)
    die("process %d of user %u listens at %s, not a simulator of this user: set another socket name by %s", peer.pid,
        peer.uid, name, abi::kSocketVariable);
}

// Two runs must see the same addresses. A program that a user's own script started is executed again without address
// randomisation. Where that is refused, only the DMA memory has a fixed address.
void fix_address_layout() {
  const int now = ::personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0 || ::getenv("RNICSIM_KEEP_LAYOUT") != nullptr) return;
  if (::personality(now | ADDR_NO_RANDOMIZE) < 0) return;
  char* arguments[4096];
  char buffer[65536];
  FILE* file = ::fopen("/proc/self/cmdline", "r");
  if (file == nullptr) return;
  const size_t bytes = ::fread(buffer, 1, sizeof buffer - 1, file);
  ::fclose(file);
  size_t count = 0;
  for (size_t at = 0; at < bytes && count + 1 < std::size(arguments); at += strlen(buffer + at) + 1)
    arguments[count++] = buffer + at;
  arguments[count] = nullptr;
  if (bytes == sizeof buffer - 1 || count == 0) return;
  next_execve("/proc/self/exe", arguments, environ);
}

// The shell of `rnicsim shell` is outside the simulation: it keeps real time and its terminal. The programs that it
// starts are on the host, and find the files there that the shell redirects to /tmp.
bool stays_outside(char** environment) {
  constexpr std::string_view kMark = "RNICSIM_OUTSIDE=";
  char** found = environment;
  while (*found != nullptr && !std::string_view(*found).starts_with(kMark)) ++found;
  if (*found == nullptr) return false;
  // Done by hand, because bash has an unsetenv() of its own, for variables that it has not read yet.
  for (; *found != nullptr; ++found) *found = found[1];
  const char* host = ::getenv(abi::kHostVariable);
  if (host != nullptr) find_host_files(::getenv(abi::kSocketVariable), host);
  return true;
}

// The loader runs this constructor before all others (-z initfirst), even the C library's: values that the C library
// would have set are taken from the arguments.
__attribute__((constructor)) void start(int, char** arguments, char** environment) {
  environ = first_environment = environment;
  if (::getenv(abi::kSocketVariable) == nullptr) return;
  if (stays_outside(environment)) return;
  program_invocation_name = arguments[0] != nullptr ? arguments[0] : program_invocation_name;
  const char* slash = strrchr(program_invocation_name, '/');
  program_invocation_short_name = slash != nullptr ? const_cast<char*>(slash) + 1 : program_invocation_name;
  keep_variables();
  fix_address_layout();
  const bool is_exec = ::getenv("RNICSIM_EXEC") != nullptr;
  ::unsetenv("RNICSIM_EXEC");
  attach(is_exec ? abi::Hello::kExec : 0, 0);
}

}  // namespace

// A tool fixes the layout itself.
static bool has_random_addresses() {
  const int now = ::personality(0xffffffff);
  return tool() == Tool::none && (now < 0 || (now & ADDR_NO_RANDOMIZE) == 0);
}

void attach(std::uint32_t hello_flags, std::uint32_t parent_pid) {
  const char* socket_name = variable(abi::kSocketVariable);
  const char* host = variable(abi::kHostVariable);
  if (socket_name == nullptr || host == nullptr) return;
  find_tool();
  raise_signals_by(raise_here);
  take_signals();  // before the simulator knows the process and can signal it
  const SpareDescriptors spare;
  if (!connect_socket(socket_name))
    die(errno == EMFILE || errno == ENFILE ? "no file descriptor is free for the connection to the simulator: %s"
                                           : "no simulator listens: %s",
        strerror(errno));
  check_listener(socket_name);

  abi::Hello hello;
  hello.pid = std::uint32_t(checked_call(SYS_getpid));
  hello.tid = std::uint32_t(checked_call(SYS_gettid));
  hello.parent_pid = parent_pid;
  hello.flags = hello_flags | (has_random_addresses() ? abi::Hello::kRandomAddresses : 0);
  snprintf(hello.host, sizeof hello.host, "%s", host);
  snprintf(hello.program, sizeof hello.program, "%s", program_invocation_short_name);
  // EPIPE, ECONNRESET: the simulator has refused this process before the hello; its welcome says why.
  if (::send(the_session.socket, &hello, sizeof hello, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
    die("the simulator closed the connection");

  abi::Welcome welcome;
  int descriptors[2];
  receive_welcome(welcome, descriptors);
  the_session.control = map(descriptors[0], welcome.control_bytes, 0);
  // memcheck inspects each page, used or not.
  constexpr std::uint64_t kMostUnderValgrind = 1 << 30;
  the_session.memory_bytes =
      tool() == Tool::valgrind ? std::min(welcome.memory_bytes, kMostUnderValgrind) : welcome.memory_bytes;
  the_session.memory = map(descriptors[1], the_session.memory_bytes, abi::kMemoryAddress);
  the_session.attached = true;
  find_host_files(socket_name, the_session.header().host);

  own_slot() = &the_session.slot(0);
  prepare_cancellation(the_session.slot(0));
  begin_cancellation(the_session.slot(0));
  wait_for_turn();  // in real time, too, the first time: before that the slot is not served
  const bool new_image = (hello_flags & abi::Hello::kFork) == 0;
  if (new_image) know_inherited(know_inherited_socket, know_event);
  if (!simulated()) return;
  if (new_image) hide_vdso(first_environment);
  trap_tsc();
  trap_calls();
  if (!new_image) return;
  fix_malloc_arenas();
  redraw_auxiliary_bytes();
  take_standard_input();
  take_streams();
  // Line by line, so that the output of several programs appears in the order of simulated time.
  ::setvbuf(stdout, nullptr, _IOLBF, 4096);
}

void abandon() {
  if (!the_session.attached) return;
  the_session.attached = false;
  own_slot() = nullptr;
  next_close(the_session.socket);
  ::munmap(the_session.control, abi::kControlBytes);
  ::munmap(the_session.memory, the_session.memory_bytes);
  the_session = {};
}

}  // namespace rnicsim::clock
