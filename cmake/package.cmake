# SPDX-License-Identifier: Apache-2.0
# The Debian package: `cmake --build build/release --target deb` (or ./rnicsim package) makes
# build/release/rnicsim_VERSION_amd64.deb from the files of `cmake --install`, and builds no tests.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rnicsim)
set(CPACK_PACKAGE_VENDOR "the rnicsim maintainers")
set(RNICSIM_MAINTAINER "the rnicsim maintainers <maintainers@rnicsim.invalid>" CACHE STRING
  "Maintainer of the Debian package: a name and an address")
set(CPACK_PACKAGE_CONTACT "${RNICSIM_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
# Reads the version when the package is made; the build may have been configured earlier.
set(CPACK_RNICSIM_SOURCES ${PROJECT_SOURCE_DIR})
set(CPACK_RNICSIM_VERSION ${PROJECT_VERSION})
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package/version_now.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package/debian_files.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
# Recommended: the usual first programs, without which the simulator runs only a user's own. Python is for the device in
# Python, the -dev packages for programs with librnicsim. The packages from QEMU on are for `rnicsim vm`.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "perftest, ibverbs-utils, rdmacm-utils, qperf, python3")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gdb, valgrind, wireshark, bash-completion, libsystemc-dev, libboost-dev, \
qemu-system-x86, binutils, cpio, kmod, zstd")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "full-system simulator of an RDMA NIC")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Stock, unmodified RDMA programs run in simulated time on simulated hosts, with
no kernel module, no virtual machine and no root. Below them is a model of the
NIC in SystemC whose every latency is a parameter, and which software reaches
only as it reaches hardware: MMIO, DMA and interrupts.")
include(CPack)

add_custom_target(deb COMMAND ${CMAKE_CPACK_COMMAND} VERBATIM)
add_dependencies(deb installed)
