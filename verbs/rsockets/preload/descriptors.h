// SPDX-License-Identifier: Apache-2.0
// Descriptors of the program that stand for a socket with another number. A placeholder keeps the program's number;
// the socket behind it may change from an rsocket to an ordinary socket. Copies made by dup2() share the socket.
#pragma once

namespace rnicsim::rsockets::preload {

enum class Kind { ordinary, rsocket };

struct Behind {
  Kind kind = Kind::ordinary;
  int fd = -1;
};

// A descriptor that is no placeholder stands for itself. Takes no lock, since every read() and write() calls it.
Behind behind(int fd);
bool is_placeholder(int fd);

// Returns the new placeholder, or -1 and errno.
int open_placeholder(Behind target, bool close_on_exec);
// Changes the target of `fd` and of all its copies.
void replace(int fd, Behind target);
// From now on `copy`, an open descriptor, has the same target as `fd`.
void share(int fd, int copy);
// Removes a placeholder, whose own descriptor stays open. True: it was the last one for the target `last`, which the
// caller must close.
bool drop(int fd, Behind& last);

}  // namespace rnicsim::rsockets::preload
