// Paths as a program of a simulated host gives them, and where they lead: files that the host has of its own lie in a
// tree that the simulator made (sim/attached/host_files.cpp); all else is this machine's.
#pragma once

#include <limits.h>
#include <sys/types.h>

#include <cstddef>
#include <string_view>

namespace rnicsim::clock {

// Once attached, and again in a forked child.
void find_host_files(const char* socket_name, const char* host);

// Where a path really leads. No memory is allocated: a program's heap must not depend on it.
class HostPath {
 public:
  explicit HostPath(const char* given);
  const char* get() const { return path_; }
  bool is_own() const { return is_own_; }  // a file of the host
  // What this machine has in its /tmp is a link to its own name in the host's: that is not to be seen of it. Who
  // resolves paths would go round in circles.
  const char* seen();

 private:
  bool lead_to_own(std::string_view text);
  bool lead_below(std::string_view root, std::string_view folder, std::string_view rest);
  void lead_to_process(std::string_view text);

  const char* path_;
  bool is_own_ = false;
  char buffer_[PATH_MAX];
};

// A path that the real kernel told, as the program knows it; the same place may hold both. Returns the new length.
std::size_t hide_host_path(char* path, std::size_t length);

// The same for names that are no files: what distinguishes this host of this run from all others.
const char* host_tag();  // empty: there is none

}  // namespace rnicsim::clock
