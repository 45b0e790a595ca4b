// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/session.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {

constinit Session the_session;
constinit thread_local abi::ThreadSlot* slot_of_thread = nullptr;

namespace {

Tool the_tool = Tool::none;

// Copies of the variables in kVariables; empty: not set.
char variables[std::size(kVariables)][PATH_MAX];

}  // namespace

Tool tool() { return the_tool; }

void find_tool() {
  const char* name = ::getenv("RNICSIM_TOOL");
  if (name == nullptr) return;
  the_tool = strcmp(name, "gdb") == 0 ? Tool::gdb : Tool::valgrind;
}

void keep_variables() {
  for (std::size_t i = 0; i < std::size(kVariables); ++i) {
    const char* value = ::getenv(kVariables[i]);
    if (value != nullptr) snprintf(variables[i], sizeof variables[i], "%s", value);
  }
}

const char* variable(const char* name) {
  for (std::size_t i = 0; i < std::size(kVariables); ++i)
    if (strcmp(kVariables[i], name) == 0 && variables[i][0] != 0) return variables[i];
  return nullptr;
}

bool send_descriptors(std::span<const int> descriptors) {
  abi::DescriptorMessage announcement;
  announcement.count = std::uint32_t(descriptors.size());
  announcement.slot = std::uint32_t(own_slot() - &the_session.slot(0));
  iovec part{&announcement, sizeof announcement};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int) * abi::kMaxDescriptors)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  ssize_t sent;
  do sent = checked_call(SYS_sendmsg, the_session.socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == ssize_t(sizeof announcement);
}

int receive_descriptor() {
  abi::DescriptorMessage announcement;
  iovec part{&announcement, sizeof announcement};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t got;
  do got = checked_call(SYS_recvmsg, the_session.socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (got != ssize_t(sizeof announcement) || rights == nullptr) return -1;
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(rights), sizeof descriptor);
  return descriptor;
}

void die(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char line[640];
  const int length = snprintf(line, sizeof line, "rnicsim: %s: %s\n", program_invocation_short_name, text);
  [[maybe_unused]] const auto written = checked_call(SYS_write, 2, line, length);
  checked_call(SYS_exit_group, 125);
  __builtin_unreachable();
}

}  // namespace rnicsim::clock
