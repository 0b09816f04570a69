# generate_messages (<target> <root> <file>...) adds the C++ of .proto files below <root> to the target; headers come out in
# <build>/generated, by their paths below <root>. protobuf_generate of CMake up to 3.25 (Debian 12's) takes the paths below
# the source folder instead, whatever IMPORT_DIRS says.
include_guard(GLOBAL)
function(generate_messages target root)
  foreach(file IN LISTS ARGN)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${root} OUTPUT_VARIABLE name)
    cmake_path(REMOVE_EXTENSION name LAST_ONLY)
    set(stem ${CMAKE_BINARY_DIR}/generated/${name})
    add_custom_command(OUTPUT ${stem}.pb.cc ${stem}.pb.h
                       COMMAND protobuf::protoc --cpp_out ${CMAKE_BINARY_DIR}/generated -I ${root} ${file}
                       DEPENDS ${file} protobuf::protoc COMMENT "Generating generated/${name}.pb.cc" VERBATIM)
    target_sources(${target} PRIVATE ${stem}.pb.cc ${stem}.pb.h)
  endforeach()
endfunction()
