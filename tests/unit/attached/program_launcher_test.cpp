// SPDX-License-Identifier: Apache-2.0
// Environment of a program when it starts.
#include "sim/attached/program_launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {
namespace {

// The result must not depend on the number of the simulator's open descriptors.
TEST(ProgramLauncher, LeavesTheLibrariesFolderOpen) {
  const std::string folder = "/proc/self/fd/" + std::to_string(abi::kLibraryDescriptor);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const ProgramLauncher launcher({"nobody", "/", limit});
  std::vector<Descriptor> others;
  for (const int next : {3, abi::kLibraryDescriptor, abi::kLibraryDescriptor + 1}) {
    while (others.empty() || others.back().get() + 1 < next)
      others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(others.back());
    const Launched launched = launcher.launch("h0", "/usr/bin/test", {"test", "-d", folder}, Tool::none);
    int status = -1;
    EXPECT_EQ(::waitpid(launched.pid, &status, 0), launched.pid);
    EXPECT_EQ(status, 0) << next;
  }
}

}  // namespace
}  // namespace rnicsim::sim
