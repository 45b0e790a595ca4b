# SPDX-License-Identifier: Apache-2.0
# Additional files that Debian's policy requires; cpack runs this script before packing.
set(doc ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/rnicsim)
# `copyright` refers to the licence's text, which every Debian system has.
file(REMOVE ${doc}/LICENSE)

string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog "rnicsim (${CPACK_DEBIAN_PACKAGE_VERSION}) unstable; urgency=medium

  * See the history of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
execute_process(COMMAND gzip -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)

# The project's libraries have the names of Debian's. dpkg-shlibdeps must not turn their dependencies on each other into
# dependencies on Debian's packages.
file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local "libibverbs 1\nlibrdmacm 1\n")
