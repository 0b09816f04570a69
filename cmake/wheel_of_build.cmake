# A wheel of what another build folder has made already, in seconds instead of minutes:
#     scripts/build && pip wheel . -Ccmake.define.ASCEND_FUSE_BUILT=$PWD/build
# The module must be of the Python that makes the wheel.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
                OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE suffix COMMAND_ERROR_IS_FATAL ANY)
set(module ${ASCEND_FUSE_BUILT}/python/ascend_fuse/_core${suffix})
set(program ${ASCEND_FUSE_BUILT}/ascend-fuse)
foreach(file IN ITEMS ${module} ${program})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "ASCEND_FUSE_BUILT: there is no ${file}: scripts/build makes it")
  endif()
endforeach()
file(GLOB files CONFIGURE_DEPENDS tools/python/ascend_fuse/*.py tools/python/ascend_fuse/*.pyi tools/python/ascend_fuse/py.typed)
install(FILES ${module} ${files} DESTINATION ascend_fuse COMPONENT python)
include(cmake/bundle_libraries.cmake)
install_bundle(${module})
install(PROGRAMS ${program} DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
install(FILES ${ASCEND_FUSE_BUILT}/sbom/ascend-fuse.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python)
# As `cmake --install --strip` does with what it has built itself.
find_program(CMAKE_STRIP strip REQUIRED)
install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-unneeded \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/ascend_fuse/_core${suffix}\"
                \"\$ENV{DESTDIR}${SKBUILD_SCRIPTS_DIR}/ascend-fuse\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
add_custom_target(_core)  # pyproject.toml names what is built
add_custom_target(ascend-fuse)
