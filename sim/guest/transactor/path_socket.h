// SPDX-License-Identifier: Apache-2.0
// UNIX stream sockets with a path in the file system.
#pragma once

#include <string>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// The descriptor is not open on an error; errno has the reason.
Descriptor connect_to_path(const std::string& path);

// Listens at a path, for connections of this user only. The destructor removes the path. ConfigError: another process
// listens at the path, or the socket cannot be made.
class PathListener {
 public:
  explicit PathListener(const std::string& path);
  ~PathListener();
  PathListener(const PathListener&) = delete;
  PathListener& operator=(const PathListener&) = delete;

  int descriptor() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  Descriptor accept() const;  // not open: no client waits

 private:
  const std::string path_;
  Descriptor socket_;
};

}  // namespace rnicsim::sim
