// UNIX stream sockets that have a name in the file system.
#pragma once

#include <string>

#include "sim/descriptor.h"

namespace rnicsim::sim {

// Not open: errno says why.
Descriptor connect_to_path(const std::string& path);

// Listens at a path, for this user alone, and removes it in the end. ConfigError: somebody listens there, or it cannot
// be made.
class PathListener {
 public:
  explicit PathListener(const std::string& path);
  ~PathListener();
  PathListener(const PathListener&) = delete;
  PathListener& operator=(const PathListener&) = delete;

  int descriptor() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  Descriptor accept() const;  // not open: nobody waits

 private:
  const std::string path_;
  Descriptor socket_;
};

}  // namespace rnicsim::sim
