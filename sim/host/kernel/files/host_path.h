// SPDX-License-Identifier: Apache-2.0
// Paths of a simulated program, and the files that they lead to. The host's own files lie in a tree that the simulator
// made (sim/attached/host_files.cpp); all other files are this machine's.
#pragma once

#include <fcntl.h>
#include <limits.h>

#include <cstddef>

#include "sim/host/kernel/files/path_walk.h"

namespace rnicsim::clock {

// Finds that tree: after attaching, and again in a forked child.
void find_host_files(const char* socket_name, const char* host);

// The file that a path leads to through "..", symbolic links and descriptors. No memory is allocated, so that the
// addresses in a program's heap do not depend on the paths.
class HostPath {
 public:
  explicit HostPath(const char* given, Last last = Last::followed) : HostPath(AT_FDCWD, given, last) {}
  // From the open folder `folder`. A relative path stays relative if the kernel finds the same file by it.
  HostPath(int folder, const char* given, Last last = Last::followed);
  HostPath(const HostPath&) = delete;
  HostPath& operator=(const HostPath&) = delete;

  const char* get() const { return path_; }
  // The path without links and relative parts; the given path if it could not be followed.
  const char* absolute() const { return absolute_; }
  bool is_own() const { return is_own_; }  // one of the host's own files
  bool is_other() const { return path_ != given_; }

 private:
  const char* const given_;
  const char* path_;
  const char* absolute_;
  bool is_own_ = false;
  char buffer_[PATH_MAX];
};

// The text for a symbolic link at `place`. A link in one of the host's own folders gets the real path of its target, so
// that programs outside the simulation find the target, too.
class LinkText {
 public:
  LinkText(const char* given, const HostPath& place);
  const char* get() const { return text_; }

 private:
  const char* text_;
  char buffer_[PATH_MAX];
};

// Turns a path from the real kernel into the path that the program knows, in place. Returns the new length.
std::size_t hide_host_path(char* path, std::size_t length);

// Prefix for names that are not files (sockets, message queues): distinguishes this host of this run from all others.
const char* host_tag();  // empty: no host

}  // namespace rnicsim::clock
