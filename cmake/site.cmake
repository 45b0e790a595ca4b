# SPDX-License-Identifier: Apache-2.0
# `cmake --build build/release --target site` builds the documents as HTML with search in build/release/site. MkDocs is
# looked for by the target, not here: nothing else needs MkDocs.
add_custom_target(site VERBATIM
  COMMAND python3 -B ${PROJECT_SOURCE_DIR}/cmake/site/build_site.py ${CMAKE_BINARY_DIR}/site)
