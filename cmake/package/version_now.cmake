# SPDX-License-Identifier: Apache-2.0
# cpack reads this file for each package. Debian splits a version at the last hyphen, so the hyphens of git's version
# become plus and dots.
include(${CPACK_RNICSIM_SOURCES}/cmake/version.cmake)
rnicsim_version(version commit ${CPACK_RNICSIM_SOURCES} ${CPACK_RNICSIM_VERSION})
string(REGEX REPLACE "^([0-9.]+)-" "\\1+" version "${version}")
string(REPLACE "-" "." version "${version}")
set(CPACK_PACKAGE_VERSION ${version})
set(CPACK_DEBIAN_PACKAGE_VERSION ${version})
