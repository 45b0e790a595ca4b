// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/linked_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>

#include "model/abi/host_files.h"
#include "sim/host/shim/raw_call.h"

namespace rnicsim::clock {
namespace {

// True: a folder that holds the hosts' files, of this run or another.
bool holds_host_files(std::string_view folder, std::string_view name) {
  std::string_view prefix = abi::kHostFilesPrefix;
  if (!prefix.starts_with(folder)) return false;
  prefix.remove_prefix(folder.size() + 1);
  return name.starts_with(prefix);
}

void link_to(std::string_view folder, const char* name, int own) {
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || holds_host_files(folder, name)) return;
  char target[PATH_MAX];
  const int length = snprintf(target, sizeof target, "%.*s/%s", int(folder.size()), folder.data(), name);
  if (length < int(sizeof target)) raw_call(SYS_symlinkat, target, own, name);
}

void link_to_all_of(std::string_view folder, int real, int own) {
  alignas(dirent64) char entries[4096];
  long bytes;
  while ((bytes = raw_call(SYS_getdents64, real, entries, sizeof entries)) > 0)
    for (const char* at = entries; at < entries + bytes; at += reinterpret_cast<const dirent64*>(at)->d_reclen)
      link_to(folder, reinterpret_cast<const dirent64*>(at)->d_name, own);
}

class Folder {
 public:
  explicit Folder(const char* path) : number_(int(raw_call(SYS_open, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))) {}
  ~Folder() {
    if (number_ >= 0) raw_call(SYS_close, number_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

}  // namespace

bool fill_linked_folder(std::string_view root, std::string_view name) {
  char own[PATH_MAX - sizeof ".filled"], filled[PATH_MAX], real[PATH_MAX];
  const int length =
      snprintf(own, sizeof own, "%.*s%.*s", int(root.size()), root.data(), int(name.size()), name.data());
  if (length >= int(sizeof own)) return false;
  snprintf(filled, sizeof filled, "%s.filled", own);
  if (raw_call(SYS_access, filled, F_OK) == 0) return true;
  snprintf(real, sizeof real, "%.*s", int(name.size()), name.data());
  const Folder from(real), to(own);
  if (from.number() < 0 || to.number() < 0) return false;
  link_to_all_of(name, from.number(), to.number());
  return raw_call(SYS_mkdir, filled, 0700) == 0;
}

}  // namespace rnicsim::clock
