// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/ipc/ipc_object.h"

#include <unistd.h>

#include <cerrno>

namespace rnicsim::sim {

IpcOwner::IpcOwner(key_t key, int mode, const IpcCaller& maker) {
  told_.__key = key;
  told_.uid = told_.cuid = maker.user;
  told_.gid = told_.cgid = ::getegid();
  told_.mode = mode & 0777;
}

int IpcOwner::may(int wanted, const IpcCaller& caller) const {
  const bool is_owner = caller.user == told_.uid || caller.user == told_.cuid;
  const int granted = int(told_.mode) >> (is_owner ? 6 : 0);
  return caller.user == 0 || (wanted & 7 & ~granted) == 0 ? 0 : EACCES;
}

int IpcOwner::may_change(const IpcCaller& caller) const {
  return caller.user == 0 || caller.user == told_.uid || caller.user == told_.cuid ? 0 : EPERM;
}

void IpcOwner::change(const ipc_perm& wanted) {
  told_.uid = wanted.uid;
  told_.gid = wanted.gid;
  told_.mode = wanted.mode & 0777;
}

}  // namespace rnicsim::sim
