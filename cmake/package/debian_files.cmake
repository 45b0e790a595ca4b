# What Debian's policy asks of a package beyond an installation; run by cpack on the files before it packs them.
set(doc ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/rnicsim)
# `copyright` names the licence, which every Debian has.
file(REMOVE ${doc}/LICENSE)

string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${doc}/changelog "rnicsim (${CPACK_DEBIAN_PACKAGE_VERSION}) unstable; urgency=medium

  * See the history of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
execute_process(COMMAND gzip -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)

# Libraries of ours have the names of Debian's: that they need each other is no need of Debian's.
file(WRITE ${CPACK_TEMPORARY_DIRECTORY}/debian/shlibs.local "libibverbs 1\nlibrdmacm 1\n")
