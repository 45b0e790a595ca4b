// Paths as a program of a simulated host gives them, and where they lead: files that the host has of its own lie in a
// tree that the simulator made (sim/attached/host_files.cpp); all else is this machine's.
#pragma once

#include <fcntl.h>
#include <limits.h>

#include <cstddef>

#include "verbs/clock/path_walk.h"

namespace rnicsim::clock {

// Once attached, and again in a forked child.
void find_host_files(const char* socket_name, const char* host);

// Where a path really leads, whatever words, links and descriptors it goes through. No memory is allocated: a program's
// heap must not depend on it.
class HostPath {
 public:
  explicit HostPath(const char* given, Last last = Last::followed) : HostPath(AT_FDCWD, given, last) {}
  // From an open folder, to which the path stays relative where that leads to the same file.
  HostPath(int folder, const char* given, Last last = Last::followed);
  HostPath(const HostPath&) = delete;
  HostPath& operator=(const HostPath&) = delete;

  const char* get() const { return path_; }
  // Without links and relative parts, where the path could be followed.
  const char* absolute() const { return absolute_; }
  bool is_own() const { return is_own_; }  // a file of the host
  bool is_other() const { return path_ != given_; }

 private:
  const char* const given_;
  const char* path_;
  const char* absolute_;
  bool is_own_ = false;
  char buffer_[PATH_MAX];
};

// The text of a symbolic link that lies at `place`. In a folder of the host's, which goes with the run, the text leads
// there outside, too, for whoever follows links without asking us.
class LinkText {
 public:
  LinkText(const char* given, const HostPath& place);
  const char* get() const { return text_; }

 private:
  const char* text_;
  char buffer_[PATH_MAX];
};

// A path that the real kernel told, as the program knows it; the same place may hold both. Returns the new length.
std::size_t hide_host_path(char* path, std::size_t length);

// The same for names that are no files: what distinguishes this host of this run from all others.
const char* host_tag();  // empty: there is none

}  // namespace rnicsim::clock
