// Timers that the real kernel keeps, on its own clock: a run in which one is set is not reproducible, and says so.

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "verbs/clock/next.h"
#include "verbs/clock/real_calls.h"

RNICSIM_NEXT(timer_settime);
RNICSIM_NEXT(timerfd_settime);

using rnicsim::clock::note_real_call;

RNICSIM_EXPORT int timer_settime(timer_t timer, int flags, const itimerspec* value, itimerspec* old) noexcept {
  note_real_call(SYS_timer_settime);
  return next_timer_settime(timer, flags, value, old);
}

RNICSIM_EXPORT int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  note_real_call(SYS_timerfd_settime);
  return next_timerfd_settime(fd, flags, value, old);
}
