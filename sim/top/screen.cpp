// SPDX-License-Identifier: Apache-2.0
#include "sim/top/screen.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>

#include "sim/config/config_error.h"

// ncurses' macros have common names that would collide with others.
#define NCURSES_NOMACROS
#include <ncurses.h>

namespace rnicsim::sim::top {
namespace {

volatile sig_atomic_t ended = 0;

void on_end(int) { ended = 1; }

// Without SA_RESTART, so that a signal ends the wait for a key.
void note_signals() {
  struct sigaction action {};
  action.sa_handler = on_end;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

Key key_of(int code) {
  switch (code) {
    case 'q': return Key::quit;
    case 'h':
    case '?': return Key::help;
    case 's': return Key::order;
    case KEY_UP:
    case 'k': return Key::up;
    case KEY_DOWN:
    case 'j': return Key::down;
    case KEY_PPAGE: return Key::page_up;
    case KEY_NPAGE:
    case ' ': return Key::page_down;
    case KEY_HOME: return Key::home;
    case KEY_END: return Key::end;
    case KEY_RESIZE: return Key::resized;
    default: return Key::none;
  }
}

}  // namespace

struct Screen::Terminal {
  SCREEN* screen;
};

Screen::Screen() {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1)
    throw ConfigError("standard output is not a terminal; --once prints the state as text, --json as JSON");
  std::setlocale(LC_ALL, "");
  const char* kind = std::getenv("TERM");
  SCREEN* screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr)
    throw ConfigError(fmt::format("the terminal '{}' (TERM) is unknown; --once prints the state as text",
                                  kind != nullptr ? shown(kind) : ""));
  terminal_ = std::make_unique<Terminal>(screen);
  note_signals();
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(25);
  ::curs_set(0);
  if (::has_colors()) {
    ::start_color();
    ::use_default_colors();
    ::init_pair(1, COLOR_RED, -1);
  }
}

Screen::~Screen() {
  ::endwin();
  ::delscreen(terminal_->screen);
}

std::size_t Screen::width() const { return std::size_t(std::max(1, COLS)); }
std::size_t Screen::height() const { return std::size_t(std::max(1, LINES)); }

void Screen::put(std::size_t row, const Line& line) {
  const attr_t look = line.kind == Line::Kind::heading   ? A_BOLD
                      : line.kind == Line::Kind::trouble ? (::has_colors() ? A_BOLD | COLOR_PAIR(1) : A_BOLD)
                                                         : A_NORMAL;
  ::attrset(int(look));
  ::mvaddnstr(int(row), 0, line.text.c_str(), int(width()));
  ::attrset(A_NORMAL);
}

std::size_t Screen::show(const Page& page, std::size_t offset, const std::string& foot) {
  const std::size_t rows = height() - std::min<std::size_t>(height(), page.head.size() + 1);
  offset = std::min(offset, page.body.size() - std::min(page.body.size(), rows));
  ::erase();
  std::size_t row = 0;
  for (const Line& line : page.head)
    if (row + 1 < height()) put(row++, line);
  for (std::size_t i = offset; i < page.body.size() && i < offset + rows; ++i) put(row++, page.body[i]);
  const std::size_t left = page.body.size() - std::min(page.body.size(), offset + rows);
  // Leave the last corner empty: writing there scrolls some terminals.
  std::string text = left > 0 ? fmt::format("{}  {} more lines", foot, left) : foot;
  text.resize(std::min(text.size(), width() - 1));
  put(height() - 1, {text, Line::Kind::heading});
  ::refresh();
  return offset;
}

Key Screen::key() { return key_of(::getch()); }

bool Screen::was_ended() { return ended != 0; }

}  // namespace rnicsim::sim::top
