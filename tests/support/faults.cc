// A preloaded library that makes calls of a program fail: the disk is full, a signal comes in between, memory runs out, or the
// process is killed there. FAULTS=CALLS:N:HOW in the environment, for example write:2:ENOSPC or any:7:KILL, lets the N-th of
// these calls fail once, counted from main; a program that has the library loaded may call faults_arm as well.
//   CALLS  open, read, write, rename, close, fallocate, unlink, mmap, copy, mkdir, any (all of these), memory, new
//   HOW    EIO, EINTR, ENOSPC, EACCES, ENOMEM; SHORT: one byte of the read or write; KILL: the process ends by SIGKILL
// FAULTS_FIRED=FILE: an empty file that is made when the call failed.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

char wanted[16] = "";
long left = 0;  // calls until the one that fails; 0: none fails
int error = 0;
bool is_short = false;
bool fired = false;

bool Is(const char* a, const char* b) { return strcmp(a, b) == 0; }

int Number(const char* how) {
  return Is(how, "EIO") ? EIO : Is(how, "EINTR") ? EINTR : Is(how, "ENOSPC") ? ENOSPC : Is(how, "EACCES") ? EACCES : ENOMEM;
}

// Whether this call is the one. Needs no memory.
bool Fails(const char* call) {
  if (left == 0) return false;
  const bool any = Is(wanted, "any") && !Is(call, "memory") && !Is(call, "new");
  if ((!any && !Is(wanted, call)) || __atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST) != 0) return false;
  fired = true;
  if (const char* file = getenv("FAULTS_FIRED"))
    syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, file, O_CREAT | O_WRONLY, 0600));
  if (error == 0 && !is_short) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  errno = error;
  return true;
}

using Main = int (*)(int, char**, char**);
Main program = nullptr;

void* Allocate(size_t size, size_t alignment) {
  void* memory = Fails("new")     ? nullptr
                 : alignment == 0 ? malloc(size)
                                  : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory != nullptr) return memory;
  if (const std::new_handler handler = std::get_new_handler(); handler != nullptr) handler();
  throw std::bad_alloc();
}

}  // namespace

extern "C" {

void faults_arm(const char* calls, long number, const char* how) {
  left = 0;
  fired = false;
  strncpy(wanted, calls, sizeof(wanted) - 1);
  is_short = Is(how, "SHORT");
  error = is_short || Is(how, "KILL") ? 0 : Number(how);
  left = number;
}
void faults_disarm(void) { left = 0; }
int faults_fired(void) { return fired ? 1 : 0; }

static int ArmedMain(int argc, char** argv, char** environment) {
  if (const char* faults = getenv("FAULTS")) {
    char calls[16] = "";
    char how[16] = "";
    long number = 0;
    if (sscanf(faults, "%15[^:]:%ld:%15s", calls, &number, how) == 3) faults_arm(calls, number, how);
  }
  const int code = program(argc, argv, environment);
  left = 0;
  return code;
}

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(), void* stack) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  program = main;
  return reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"))(&ArmedMain, argc, argv, init, fini, rtld_fini, stack);
}

void* malloc(size_t size) { return Fails("memory") ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Fails("memory") ? nullptr : __libc_calloc(count, size); }
void* realloc(void* memory, size_t size) { return Fails("memory") ? nullptr : __libc_realloc(memory, size); }
void* aligned_alloc(size_t alignment, size_t size) { return Fails("memory") ? nullptr : __libc_memalign(alignment, size); }

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
  va_end(list);
  return Fails("open") ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
ssize_t read(int fd, void* to, size_t size) {
  if (!Fails("read")) return syscall(SYS_read, fd, to, size);
  return is_short ? syscall(SYS_read, fd, to, 1) : -1;
}
ssize_t pread(int fd, void* to, size_t size, off_t at) {
  if (!Fails("read")) return syscall(SYS_pread64, fd, to, size, at);
  return is_short ? syscall(SYS_pread64, fd, to, 1, at) : -1;
}
ssize_t write(int fd, const void* from, size_t size) {
  if (!Fails("write")) return syscall(SYS_write, fd, from, size);
  return is_short ? syscall(SYS_write, fd, from, 1) : -1;
}
int rename(const char* from, const char* to) { return Fails("rename") ? -1 : static_cast<int>(syscall(SYS_rename, from, to)); }
int close(int fd) {
  const bool fails = Fails("close");
  errno = fails ? error : errno;
  const int code = static_cast<int>(syscall(SYS_close, fd));
  if (fails) errno = error;
  return fails ? -1 : code;
}
int fallocate(int fd, int mode, off_t at, off_t size) {
  return Fails("fallocate") ? -1 : static_cast<int>(syscall(SYS_fallocate, fd, mode, at, size));
}
int unlink(const char* path) { return Fails("unlink") ? -1 : static_cast<int>(syscall(SYS_unlink, path)); }
int mkdir(const char* path, mode_t mode) { return Fails("mkdir") ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode)); }
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  return Fails("mmap") ? reinterpret_cast<void*>(-1)
                       : reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}
ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return Fails("copy") ? -1 : syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
}

}  // extern "C"

void* operator new(size_t size) { return Allocate(size, 0); }
void* operator new[](size_t size) { return Allocate(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) { return Allocate(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return Allocate(size, static_cast<size_t>(alignment)); }
