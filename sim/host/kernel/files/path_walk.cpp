// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {
namespace {

constexpr int kMostLinks = 40;  // Linux's limit
constexpr std::string_view kProc = "/proc";
constexpr std::string_view kSelf = "/proc/self";
constexpr std::string_view kThreadSelf = "/proc/thread-self";

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char each) { return each >= '0' && each <= '9'; });
}

// True: "/proc/self", "/proc/1000" and the like.
bool is_process(std::string_view name) {
  if (name == kSelf || name == kThreadSelf) return true;
  return name.starts_with("/proc/") && is_number(name.substr(kProc.size() + 1));
}

// True: a link in a process's folder. It leads to a file and not to a name: its text need not be a path.
bool is_magic(std::string_view name) {
  if (!name.starts_with("/proc/")) return false;
  const std::size_t slash = name.find('/', kProc.size() + 1);
  return slash != name.npos && is_process(name.substr(0, slash));
}

bool is_same(const OwnFolder& one, const OwnFolder& other) {
  return one.root == other.root && one.stripped == other.stripped;
}

}  // namespace

// Takes the next component; empty: the end.
std::string_view PathWalk::take() {
  const std::size_t slashes = std::min(rest().find_first_not_of('/'), rest().size());
  ends_in_slash_ = slashes != 0 && slashes == rest().size();
  rest_ += slashes;
  const std::string_view component = rest().substr(0, rest().find('/'));
  rest_ += component.size();
  return component;
}

// Writes the real path of the name. False: too long.
bool PathWalk::put() {
  const OwnFolder own = outside_ != 0 ? OwnFolder{} : tree_.holding(name());
  const std::string_view below = name().substr(own.stripped);
  if (own.root.size() + below.size() + sizeof "/./" > sizeof result_) return false;
  char* end = std::ranges::copy(own.root, result_).out;
  end = std::ranges::copy(below, end).out;
  *end = 0;
  put_ = std::size_t(end - result_);
  return true;
}

bool PathWalk::append(std::string_view component) {
  if (length_ + 1 + component.size() > rest_) return false;
  const OwnFolder before = outside_ != 0 ? OwnFolder{} : tree_.holding(name());
  memmove(work_ + length_ + 1, component.data(), component.size());
  work_[length_] = '/';
  length_ += 1 + component.size();
  if (outside_ == 0 && !is_same(before, tree_.holding(name()))) agrees_ = false;
  return true;
}

// Appends the number in "/proc/1000": of the process with that number on this host, else of one of this machine.
bool PathWalk::append_process(std::string_view number) {
  pid_t wanted = 0;
  std::from_chars(number.data(), number.data() + number.size(), wanted);
  const auto self = pid_t(raw_call(SYS_getpid));
  const auto real = tree_.find(wanted);
  if (real) agrees_ = false;
  if (real.value_or(wanted) == self) return append("self");
  if (!real) return append(number);
  char text[16];
  return append({text, std::size_t(snprintf(text, sizeof text, "%d", *real))});
}

void PathWalk::shorten(std::size_t length) {
  const OwnFolder before = outside_ != 0 ? OwnFolder{} : tree_.holding(name());
  length_ = length;
  if (outside_ != 0) {
    if (length_ >= outside_) return;
    outside_ = 0;
    agrees_ = false;
  } else if (!is_same(before, tree_.holding(name()))) {
    agrees_ = false;
  }
}

// Follows ".."; false: the name before it is not a folder.
bool PathWalk::leave() {
  if (!put()) return false;
  memcpy(result_ + put_, "/.", sizeof "/.");
  const bool is_folder = raw_call(SYS_access, result_, F_OK) == 0;
  result_[put_] = 0;
  if (is_folder && length_ != 0) shorten(name().rfind('/'));
  return is_folder;
}

// The rest is an absolute path: one that the program gave, or a real path that a link in an own folder holds.
void PathWalk::begin_at_root() {
  outside_ = 0;
  length_ = 0;
  const auto inside = tree_.inside(rest());
  if (!inside) return;
  rest_ += inside->length;
  std::ranges::copy(inside->name, work_);
  length_ = inside->name.size();
}

// The first `length` bytes of work_ are the kernel's path of a folder. False: the folder has no path.
bool PathWalk::settle(std::size_t length) {
  std::string_view text(work_, length);
  if (!text.starts_with('/') || text.ends_with(" (deleted)")) return false;
  if (text == "/") text = {};
  outside_ = 0;
  length_ = text.size();
  if (const auto inside = tree_.inside(text)) {
    text.remove_prefix(inside->length);
    memmove(work_ + inside->name.size(), text.data(), text.size());
    std::ranges::copy(inside->name, work_);
    length_ = inside->name.size() + text.size();
    return true;
  }
  char self[32];
  const auto bytes = std::size_t(snprintf(self, sizeof self, "/proc/%ld", raw_call(SYS_getpid)));
  if (text.starts_with(self) && (text.size() == bytes || text[bytes] == '/') && bytes >= kSelf.size()) {
    memmove(work_ + kSelf.size(), work_ + bytes, length_ - bytes);
    std::ranges::copy(kSelf, work_);
    length_ -= bytes - kSelf.size();
  }
  const OwnFolder own = tree_.holding(name());
  if (own.is_machines()) return true;
  if (own.shows_machine && length_ > own.name.size()) {
    outside_ = length_;
  } else {
    agrees_ = false;
  }
  return true;
}

bool PathWalk::stand_in(int folder) {
  long length;
  if (folder == AT_FDCWD) {
    length = raw_call(SYS_getcwd, work_, rest_) - 1;  // the kernel counts the terminating zero
  } else {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    length = raw_call(SYS_readlinkat, AT_FDCWD, link, work_, rest_);
  }
  return length > 0 && std::size_t(length) < rest_ && settle(std::size_t(length));
}

// Follows the name if it is a link.
PathWalk::Step PathWalk::follow(Last last, bool is_last, bool with_slash) {
  // These links lead to the machine's numbers, and are not followed.
  if (name() == kSelf || name() == kThreadSelf) return Step::on;
  const bool magic = is_magic(name());
  if (magic && is_last && !with_slash) return Step::on;
  if (!put()) return Step::lost;
  char* const text = magic ? work_ : work_ + length_;
  const std::size_t room = std::size_t(work_ + rest_ - text);
  const long bytes = raw_call(SYS_readlinkat, AT_FDCWD, result_, text, room);
  if (bytes == -EINVAL) return Step::on;  // not a link
  if (bytes <= 0 || std::size_t(bytes) >= room) return Step::stop;
  const std::string_view target(text, std::size_t(bytes));
  if (magic) return settle(target.size()) ? Step::on : Step::end;
  const OwnFolder own = outside_ != 0 ? OwnFolder{} : tree_.holding(name());
  if (own.shows_machine && target == name()) {
    outside_ = length_;
    agrees_ = false;
    return Step::on;
  }
  if (is_last && last == Last::seen && !with_slash) return Step::on;
  if (++links_ > kMostLinks) return Step::stop;
  rest_ -= target.size();
  memmove(work_ + rest_, target.data(), target.size());
  if (rest().starts_with('/')) {
    begin_at_root();
  } else {
    shorten(name().rfind('/'));
  }
  return Step::on;
}

PathWalk::Step PathWalk::enter(std::string_view component, Last last) {
  const bool is_last = rest().find_first_not_of('/') == rest().npos;
  const bool with_slash = is_last && !rest().empty();
  ends_in_dot_ = is_last && (component == "." || component == "..");
  if (component == ".") return Step::on;
  if (component == "..") {
    if (leave()) return Step::on;
    rest_ -= component.size();
    return Step::stop;
  }
  if (name() == kProc && is_number(component)) {
    if (!append_process(component)) return Step::lost;
  } else {
    // All processes of a host share its network: /proc/<pid>/net is /proc/net.
    if (component == "net" && is_process(name())) {
      length_ = kProc.size();
      agrees_ = false;
    }
    if (!append(component)) return Step::lost;
  }
  if (is_last && last == Last::itself) return Step::on;
  return follow(last, is_last, with_slash);
}

// `stopped`: the name is not known any more, and result_ holds the real path that the rest follows.
PathWalk::Led PathWalk::finish(bool stopped) {
  is_own_ = !stopped && outside_ == 0 && !tree_.holding(name()).is_machines();
  if (!stopped && !put()) return agrees_ ? Led::nowhere : Led::too_far;
  std::string_view tail = rest();
  if (tail.empty()) tail = ends_in_dot_ ? "/." : ends_in_slash_ || put_ == 0 ? "/" : "";
  const bool needs_slash = !tail.empty() && tail[0] != '/';
  if (put_ + needs_slash + tail.size() >= sizeof result_) return agrees_ ? Led::nowhere : Led::too_far;
  char* end = result_ + put_;
  if (needs_slash) *end++ = '/';
  *std::ranges::copy(tail, end).out = 0;
  return agrees_ ? Led::as_given : Led::elsewhere;
}

PathWalk::Led PathWalk::lead(int folder, std::string_view given, Last last) {
  if (given.empty() || given.size() > sizeof work_) return Led::nowhere;
  rest_ = sizeof work_ - given.size();
  std::ranges::copy(given, work_ + rest_);
  if (given[0] == '/') {
    begin_at_root();
  } else if (!stand_in(folder)) {
    return Led::nowhere;
  }
  for (;;) {
    const std::string_view component = take();
    if (component.empty()) return finish(false);
    switch (enter(component, last)) {
      case Step::on: break;
      case Step::stop: return finish(false);
      case Step::end: return finish(true);
      case Step::lost: return agrees_ ? Led::nowhere : Led::too_far;
    }
  }
}

}  // namespace rnicsim::clock
