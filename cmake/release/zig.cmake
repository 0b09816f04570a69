# The toolchain of released files: zig's clang with its own libc++, against a glibc of choice or static with musl.
#     ASCEND_FUSE_COMPILERS: the folder with <target>-cc and <target>-c++, which tools/release/compilers.py writes
#     ASCEND_FUSE_TARGET: "aarch64-linux-gnu.2.28"
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ASCEND_FUSE_COMPILERS ASCEND_FUSE_TARGET)
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${ASCEND_FUSE_TARGET}")
set(CMAKE_C_COMPILER ${ASCEND_FUSE_COMPILERS}/${ASCEND_FUSE_TARGET}-cc)
set(CMAKE_CXX_COMPILER ${ASCEND_FUSE_COMPILERS}/${ASCEND_FUSE_TARGET}-c++)
set(CMAKE_AR ${ASCEND_FUSE_COMPILERS}/ar)
set(CMAKE_RANLIB ${ASCEND_FUSE_COMPILERS}/ranlib)
# Nothing of the machine's.
set(CMAKE_FIND_ROOT_PATH /nonexistent)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Abseil's own system calls name off64_t, which musl has only then.
if(ASCEND_FUSE_TARGET MATCHES musl)
  set(CMAKE_CXX_FLAGS_INIT -D_LARGEFILE64_SOURCE)
endif()
