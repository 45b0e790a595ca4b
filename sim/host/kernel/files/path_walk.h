// SPDX-License-Identifier: Apache-2.0
// Follows a path on a simulated host as Linux does, name by name and link by link, in a tree in which some folders are
// the host's own and replace this machine's. Another process of this machine can change a link between this walk and
// the call that uses its result. Programs of the run cannot, because one thread runs at a time.
#pragma once

#include <limits.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace rnicsim::clock {

// Treatment of a symbolic link that is the last name of a path.
enum class Last {
  followed,  // the call is about the link's target: open, stat
  itself,    // the call makes, changes or removes the name: mkdir, rename, unlink
  seen,      // the call is about the link: lstat, readlink. A link to this machine's file of the same name counts as
             // that file
};

// The host's own folder in which a file lies.
struct OwnFolder {
  std::string_view name{};  // the folder's name on the host
  std::string_view root{};  // real place of a file: `root` + the file's name without its first `stripped` bytes
  std::size_t stripped = 0;
  bool shows_machine = false;  // the folder holds links to the files of this machine's folder of that name

  bool is_machines() const { return root.empty(); }  // the file is not in one of the host's own folders
};

// The host's own folders, and its processes.
class HostTree {
 public:
  // `name` is absolute, without links, "." and ".."; "" is the root.
  virtual OwnFolder holding(std::string_view name) const = 0;

  struct Inside {
    std::string_view name;  // beginning of the file's name on the host
    std::size_t length;     // length of the real path's beginning, which `name` replaces
  };
  // For a real path in one of the host's own folders; nullopt: another path.
  virtual std::optional<Inside> inside(std::string_view path) const = 0;
  // The real pid of the process with virtual pid `number`; nullopt: none.
  virtual std::optional<pid_t> find(pid_t number) const = 0;

 protected:
  ~HostTree() = default;
};

// One walk. No memory is allocated, so that the addresses in a program's heap do not depend on it. errno stays.
class PathWalk {
 public:
  PathWalk(const HostTree& tree, char (&result)[PATH_MAX]) : tree_(tree), result_(result) {}

  enum class Led {
    nowhere,    // not followed: the kernel answers for the given path
    as_given,   // the kernel finds the same file by the given path; `result` has its absolute path
    elsewhere,  // the path leads to `result`, which is absolute
    too_far,    // the resulting path is too long
  };
  // A relative path starts at `folder`, a descriptor or AT_FDCWD.
  Led lead(int folder, std::string_view given, Last last);
  bool is_own() const { return is_own_; }  // one of the host's own files

 private:
  enum class Step { on, end, stop, lost };
  std::string_view name() const { return {work_, length_}; }
  std::string_view rest() const { return {work_ + rest_, sizeof work_ - rest_}; }
  std::string_view take();
  Step enter(std::string_view component, Last last);
  Step follow(Last last, bool is_last, bool with_slash);
  bool append(std::string_view component);
  bool append_process(std::string_view number);
  bool leave();
  void shorten(std::size_t length);
  void begin_at_root();
  bool stand_in(int folder);
  bool settle(std::size_t length);
  bool put();
  Led finish(bool stopped);

  const HostTree& tree_;
  char (&result_)[PATH_MAX];
  // The beginning holds the name on the host so far, the end the part of the path that is still to be followed.
  char work_[PATH_MAX];
  std::size_t length_ = 0;
  std::size_t rest_ = sizeof work_;
  std::size_t put_ = 0;      // bytes in result_
  std::size_t outside_ = 0;  // length of the first part of the name that is a place of this machine, reached by a link
                             // in one of the host's own folders or as the starting folder; 0: none
  int links_ = 0;
  bool agrees_ = true;  // the kernel finds the same file by the names so far
  bool is_own_ = false;
  bool ends_in_dot_ = false, ends_in_slash_ = false;
};

}  // namespace rnicsim::clock
