# A wheel of what another build folder has made already, in seconds instead of minutes:
#     scripts/build && pip wheel . -Ccmake.define.ASCEND_FUSE_BUILT=$PWD/build
set(library ${ASCEND_FUSE_BUILT}/libascend_fuse.so)
set(program ${ASCEND_FUSE_BUILT}/ascend-fuse)
foreach(file IN ITEMS ${library} ${program})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "ASCEND_FUSE_BUILT: there is no ${file}: scripts/build makes it")
  endif()
endforeach()
get_filename_component(library ${library} REALPATH)
file(GLOB files CONFIGURE_DEPENDS tools/python/ascend_fuse/*.py tools/python/ascend_fuse/py.typed)
install(FILES ${files} DESTINATION ascend_fuse COMPONENT python)
install(PROGRAMS ${library} DESTINATION ascend_fuse RENAME libascend_fuse.so COMPONENT python)
include(cmake/bundle_libraries.cmake)
install_bundle(${library})
install(PROGRAMS ${program} DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
install(FILES ${ASCEND_FUSE_BUILT}/sbom/ascend-fuse.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python)
# As `cmake --install --strip` does with what it has built itself.
find_program(CMAKE_STRIP strip REQUIRED)
install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/ascend_fuse/libascend_fuse.so\"
                \"\$ENV{DESTDIR}${SKBUILD_SCRIPTS_DIR}/ascend-fuse\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
add_custom_target(ascend_fuse)  # pyproject.toml names what is built
add_custom_target(ascend-fuse)
