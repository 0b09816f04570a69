# A wheel carries the libraries of Abseil, protobuf and fmt that its module was linked with, in ascend_fuse/lib: a machine that
# installs it has others, or none. The C++ library is the machine's own. Debian's archives of protobuf are of no use in a module.

# The build tree has no such folder, and finds the machine's libraries then.
function(searches_bundle target folders)
  # The same in the build tree: CMake would fill up a second one with empty entries, which mean the current folder.
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${folders}")
  # Of the older kind, which holds for the libraries of libraries too.
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endfunction()

# module: its path when the wheel is made
function(install_bundle module)
  install(CODE "set(module \"${module}\")" COMPONENT python)
  install(CODE [[
    file(GET_RUNTIME_DEPENDENCIES MODULES "${module}" RESOLVED_DEPENDENCIES_VAR found
         POST_INCLUDE_REGEXES "libprotobuf\\.so" "libabsl_" "libfmt\\.so" POST_EXCLUDE_REGEXES ".")
    foreach(library IN LISTS found)
      get_filename_component(name "${library}" NAME)
      get_filename_component(file "${library}" REALPATH)
      file(MAKE_DIRECTORY "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/ascend_fuse/lib")
      file(COPY_FILE "${file}" "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/ascend_fuse/lib/${name}")
    endforeach()
  ]] COMPONENT python)
endfunction()
