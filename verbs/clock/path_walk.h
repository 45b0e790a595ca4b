// Where a path leads on a simulated host. The path is followed as Linux follows it, name by name and link by link, in a
// tree in which some folders are the host's own and take the place of this machine's. Between this walk and the call
// that uses its result, another process can change a link; the programs of a run cannot, for one thread runs at a time.
#pragma once

#include <limits.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string_view>

namespace rnicsim::clock {

// What becomes of a symbolic link that is the last name of a path.
enum class Last {
  followed,  // the call is about what the link leads to: open, stat
  itself,    // the call makes, changes or removes the name: mkdir, rename, unlink
  seen,      // the call looks at the link: lstat, readlink. A link to this machine's file of the same name is not seen
};

// The folder of the host's own in which a file lies.
struct OwnFolder {
  std::string_view name{};     // the folder's name on the host
  std::string_view root{};     // where it lies: `root` + the file's name without its first `stripped` bytes
  std::size_t stripped = 0;
  bool shows_machine = false;  // it holds links to what this machine has in its folder of that name

  bool is_machines() const { return root.empty(); }  // none is the host's own
};

// The folders of a host.
class HostTree {
 public:
  // `name` is absolute, without links, "." and ".."; "" is the root.
  virtual OwnFolder holding(std::string_view name) const = 0;

  struct Inside {
    std::string_view name;  // of the own folder, as `stripped` counts it
    std::size_t length;     // of the text that the name takes the place of
  };
  // If a path of this machine lies in an own folder.
  virtual std::optional<Inside> inside(std::string_view path) const = 0;
  // The real number of the process with this number on the host.
  virtual std::optional<pid_t> find(pid_t number) const = 0;

 protected:
  ~HostTree() = default;
};

// No memory is allocated: a program's heap must not depend on it. errno stays.
class PathWalk {
 public:
  PathWalk(const HostTree& tree, char (&result)[PATH_MAX]) : tree_(tree), result_(result) {}

  enum class Led {
    nowhere,    // there is nothing to follow: the kernel has the answer
    as_given,   // the kernel finds the same file by the words that were given; `result` leads there, too
    elsewhere,  // to `result`, which is absolute
    too_far,    // to a path that is too long
  };
  // `folder` is a descriptor, or AT_FDCWD, from which a relative path starts.
  Led lead(int folder, std::string_view given, Last last);
  bool is_own() const { return is_own_; }  // a file of the host

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
  // The name on the host up to here grows at its begin; what is still to be followed lies at its end.
  char work_[PATH_MAX];
  std::size_t length_ = 0;
  std::size_t rest_ = sizeof work_;
  std::size_t put_ = 0;      // bytes in result_
  std::size_t outside_ = 0;  // the first so many bytes of the name are those of a folder of this machine's, seen by a
                             // link in an own folder, or in which the process stands; 0: of none
  int links_ = 0;
  bool agrees_ = true;  // with the kernel, up to here
  bool is_own_ = false;
  bool ends_in_dot_ = false, ends_in_slash_ = false;
};

}  // namespace rnicsim::clock
