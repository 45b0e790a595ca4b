// Names of the simulated network: this host's, and those of the others.

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "verbs/clock/next.h"
#include "verbs/clock/session.h"

RNICSIM_NEXT(gethostname);
RNICSIM_NEXT(uname);
RNICSIM_NEXT(getaddrinfo);
RNICSIM_NEXT(gethostbyname);

namespace rnicsim::clock {
namespace {

// The first interface of a host: its name leads there.
const abi::NetworkInterface* find_host(const char* name) {
  if (session() == nullptr || name == nullptr) return nullptr;
  const auto all = session()->interfaces();
  const auto found = std::ranges::find_if(all, [&](const auto& each) { return strcmp(each.name, name) == 0; });
  return found != all.end() ? &*found : nullptr;
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int gethostname(char* name, size_t length) noexcept {
  if (session() == nullptr) return next_gethostname(name, length);
  const char* own = session()->header().host;
  if (strlen(own) >= length) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(name, own);
  return 0;
}

RNICSIM_EXPORT int uname(utsname* result) noexcept {
  const int error = next_uname(result);
  if (error == 0 && session() != nullptr)
    strncpy(result->nodename, session()->header().host, sizeof result->nodename - 1);
  return error;
}

RNICSIM_EXPORT int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  const abi::NetworkInterface* host = find_host(node);
  if (host == nullptr) return next_getaddrinfo(node, service, hints, result);
  char numeric[INET6_ADDRSTRLEN];
  const bool v6 = hints != nullptr && hints->ai_family == AF_INET6;
  ::inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? static_cast<const void*>(host->ipv6) : host->ipv4, numeric, sizeof numeric);
  return next_getaddrinfo(numeric, service, hints, result);
}

RNICSIM_EXPORT hostent* gethostbyname(const char* name) {
  const abi::NetworkInterface* host = find_host(name);
  if (host == nullptr) return next_gethostbyname(name);
  char numeric[INET_ADDRSTRLEN];
  ::inet_ntop(AF_INET, host->ipv4, numeric, sizeof numeric);
  return next_gethostbyname(numeric);
}
