// SPDX-License-Identifier: Apache-2.0
// Names of the hosts in the simulated network.

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"

RNICSIM_NEXT(gethostname);
RNICSIM_NEXT(uname);
RNICSIM_NEXT(getaddrinfo);
RNICSIM_NEXT(gethostbyname);
RNICSIM_NEXT(gethostbyname2);
RNICSIM_NEXT(gethostbyname_r);
RNICSIM_NEXT(gethostbyname2_r);
RNICSIM_NEXT(gethostbyaddr);
RNICSIM_NEXT(gethostbyaddr_r);
RNICSIM_NEXT(getnameinfo);

namespace rnicsim::clock {
namespace {

// The first interface of a host: the host's name leads to its address.
const abi::NetworkInterface* find_host(const char* name) {
  if (session() == nullptr || name == nullptr) return nullptr;
  const auto all = session()->interfaces();
  const auto found = std::ranges::find_if(all, [&](const auto& each) { return strcasecmp(each.name, name) == 0; });
  return found != all.end() ? &*found : nullptr;
}

// Any interface with this address: the name of its host is its name. `address` is an in_addr or in6_addr.
const abi::NetworkInterface* find_address(const void* address, socklen_t length, int family) {
  if (session() == nullptr || address == nullptr) return nullptr;
  const auto all = session()->interfaces();
  const auto found = std::ranges::find_if(all, [&](const auto& each) {
    if (family == AF_INET) return length == sizeof each.ipv4 && memcmp(each.ipv4, address, sizeof each.ipv4) == 0;
    return family == AF_INET6 && length == sizeof each.ipv6 && memcmp(each.ipv6, address, sizeof each.ipv6) == 0;
  });
  return found != all.end() ? &*found : nullptr;
}
const abi::NetworkInterface* find_address(const sockaddr* address, socklen_t length) {
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    const auto& ip = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return find_address(&ip, sizeof ip, AF_INET);
  }
  if (address->sa_family != AF_INET6 || length < sizeof(sockaddr_in6)) return nullptr;
  const auto& ip = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return find_address(&ip, sizeof ip, AF_INET6);
}

// A host's address as text: the C library answers for a numeric address without a name server.
class Numeric {
 public:
  Numeric(const abi::NetworkInterface& host, int family) {
    ::inet_ntop(family, family == AF_INET6 ? static_cast<const void*>(host.ipv6) : host.ipv4, text_, sizeof text_);
  }
  const char* get() const { return text_; }

 private:
  char text_[INET6_ADDRSTRLEN] = {};
};

hostent* named(hostent* answer, const abi::NetworkInterface& host) {
  if (answer != nullptr) answer->h_name = const_cast<char*>(host.name);
  return answer;
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
  const int flags = hints != nullptr ? hints->ai_flags : 0;
  const abi::NetworkInterface* host = (flags & AI_NUMERICHOST) == 0 ? find_host(node) : nullptr;
  if (host == nullptr) return next_getaddrinfo(node, service, hints, result);
  const bool v6 = hints != nullptr && hints->ai_family == AF_INET6;
  const int error = next_getaddrinfo(Numeric(*host, v6 ? AF_INET6 : AF_INET).get(), service, hints, result);
  if (error != 0 || (flags & AI_CANONNAME) == 0) return error;
  ::free((*result)->ai_canonname);
  (*result)->ai_canonname = ::strdup(host->name);
  return 0;
}

RNICSIM_EXPORT hostent* gethostbyname2(const char* name, int family) {
  const abi::NetworkInterface* host = find_host(name);
  if (host == nullptr) return next_gethostbyname2(name, family);
  return named(next_gethostbyname2(Numeric(*host, family).get(), family), *host);
}
RNICSIM_EXPORT hostent* gethostbyname(const char* name) {
  return find_host(name) != nullptr ? ::gethostbyname2(name, AF_INET) : next_gethostbyname(name);
}
RNICSIM_EXPORT int gethostbyname2_r(const char* name, int family, hostent* answer, char* buffer, size_t bytes,
                                    hostent** result, int* error) {
  const abi::NetworkInterface* host = find_host(name);
  if (host == nullptr) return next_gethostbyname2_r(name, family, answer, buffer, bytes, result, error);
  const Numeric numeric(*host, family);
  const int failed = next_gethostbyname2_r(numeric.get(), family, answer, buffer, bytes, result, error);
  if (failed == 0) named(*result, *host);
  return failed;
}
RNICSIM_EXPORT int gethostbyname_r(const char* name, hostent* answer, char* buffer, size_t bytes, hostent** result,
                                   int* error) {
  if (find_host(name) == nullptr) return next_gethostbyname_r(name, answer, buffer, bytes, result, error);
  return ::gethostbyname2_r(name, AF_INET, answer, buffer, bytes, result, error);
}
RNICSIM_EXPORT hostent* gethostbyaddr(const void* address, socklen_t length, int family) {
  const abi::NetworkInterface* host = find_address(address, length, family);
  if (host == nullptr) return next_gethostbyaddr(address, length, family);
  char numeric[INET6_ADDRSTRLEN];
  return named(next_gethostbyname2(::inet_ntop(family, address, numeric, sizeof numeric), family), *host);
}
RNICSIM_EXPORT int gethostbyaddr_r(const void* address, socklen_t length, int family, hostent* answer, char* buffer,
                                   size_t bytes, hostent** result, int* error) {
  const abi::NetworkInterface* host = find_address(address, length, family);
  if (host == nullptr) return next_gethostbyaddr_r(address, length, family, answer, buffer, bytes, result, error);
  char numeric[INET6_ADDRSTRLEN];
  ::inet_ntop(family, address, numeric, sizeof numeric);
  const int failed = next_gethostbyname2_r(numeric, family, answer, buffer, bytes, result, error);
  if (failed == 0) named(*result, *host);
  return failed;
}
RNICSIM_EXPORT int getnameinfo(const sockaddr* address, socklen_t length, char* name, socklen_t bytes, char* service,
                               socklen_t service_bytes, int flags) {
  const bool wants_name = name != nullptr && bytes != 0 && (flags & NI_NUMERICHOST) == 0;
  const abi::NetworkInterface* host = wants_name && address != nullptr ? find_address(address, length) : nullptr;
  if (host == nullptr) return next_getnameinfo(address, length, name, bytes, service, service_bytes, flags);
  if (strlen(host->name) >= bytes) return EAI_OVERFLOW;
  strcpy(name, host->name);
  if (service == nullptr || service_bytes == 0) return 0;
  return next_getnameinfo(address, length, nullptr, 0, service, service_bytes, flags);
}
