// The program's descriptors that stand for a socket of another number: a placeholder keeps the program's number, and
// what is behind it may change from an rsocket to an ordinary one. Copies (dup2) share it.
#pragma once

namespace rnicsim::rsockets::preload {

enum class Kind { ordinary, rsocket };

struct Behind {
  Kind kind = Kind::ordinary;
  int fd = -1;
};

// A descriptor that is no placeholder stands for itself. Takes no lock: read and write of everything come here.
Behind behind(int fd);
bool is_placeholder(int fd);

// A new placeholder; -1 and errno.
int open_placeholder(Behind target, bool close_on_exec);
// Of all copies.
void replace(int fd, Behind target);
// `copy`, which is open, stands for the same as `fd` from now on.
void share(int fd, int copy);
// True: it was the last, and its target (in `last`) is to be closed. The placeholder's own descriptor stays open.
bool drop(int fd, Behind& last);

}  // namespace rnicsim::rsockets::preload
