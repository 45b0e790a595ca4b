// SPDX-License-Identifier: Apache-2.0
// rnicsim describe: parameters and counters.
#include "sim/describe.h"

#include <memory>

#include "sim/commands/command.h"
#include "sim/commands/options.h"

namespace rnicsim::sim {

Command add_describe(CLI::App& app) {
  struct Arguments {
    DescribeTopic topic = DescribeTopic::everything;
    RunOptions options;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("describe", "print every parameter and counter: unit, default, meaning");
  const std::map<std::string, DescribeTopic> topics{{"nic", DescribeTopic::nic},
                                                    {"host", DescribeTopic::host},
                                                    {"topology", DescribeTopic::topology},
                                                    {"counters", DescribeTopic::counters}};
  add_choice(command, "topic", arguments->topic, topics, "default: all topics");
  add_configuration(command, arguments->options);
  return {&command, [arguments] {
            fmt::print("{}", describe(arguments->topic, arguments->options));
            return 0;
          }};
}

}  // namespace rnicsim::sim
