// The terminal while a run is shown on it. It is as it was when the object is gone.
#pragma once

#include <memory>
#include <vector>

#include "sim/top/page.h"

namespace rnicsim::sim::top {

enum class Key { none, quit, help, order, up, down, page_up, page_down, home, end, resized };

class Screen {
 public:
  Screen();  // ConfigError: there is no terminal, or none that is known
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  std::size_t width() const;
  std::size_t height() const;
  // `offset`: of the first line of the body, as far as the body has lines; returns what it became.
  std::size_t show(const Page& page, std::size_t offset, const std::string& foot);
  Key key();                // pressed, or none
  static bool was_ended();  // by SIGINT, SIGTERM or SIGHUP

 private:
  struct Terminal;
  void put(std::size_t row, const Line& line);
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace rnicsim::sim::top
