// SPDX-License-Identifier: Apache-2.0
// The terminal while `top` uses it. The destructor restores it.
#pragma once

#include <memory>
#include <vector>

#include "sim/top/page.h"

namespace rnicsim::sim::top {

enum class Key { none, quit, help, order, up, down, page_up, page_down, home, end, resized };

class Screen {
 public:
  Screen();  // ConfigError: no terminal, or an unknown type
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  // `offset`: first visible line of the body; limited to the body's length, and returned.
  std::size_t show(const Page& page, std::size_t offset, const std::string& foot);
  Key key();                // pressed key; none: no key
  static bool was_ended();  // true: SIGINT, SIGTERM or SIGHUP arrived

 private:
  struct Terminal;
  void put(std::size_t row, const Line& line);
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace rnicsim::sim::top
