#include "tools/run_briefly.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace ascend_fuse {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

// Until the end of what it prints; false at `end`.
bool ReadUntil(int fd, std::chrono::steady_clock::time_point end, std::string* out) {
  char block[4096];
  while (out->size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    struct pollfd wanted = {fd, POLLIN, 0};
    if (left <= 0) return false;
    if (poll(&wanted, 1, static_cast<int>(left)) <= 0) continue;
    const ssize_t count = read(fd, block, sizeof(block));
    if (count == 0) return true;
    if (count > 0) out->append(block, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) return false;
  }
  return false;
}

// The exit code of the child, -1 where it did not end by itself until `end`.
int WaitUntil(pid_t child, std::chrono::steady_clock::time_point end) {
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (ended < 0 && errno != EINTR) return -1;
    if (std::chrono::steady_clock::now() >= end) break;
    usleep(2000);
  }
  kill(-child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return -1;
}

}  // namespace

std::optional<std::string> RunBriefly(const std::vector<std::string>& words, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // what it starts is killed with it
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  close(ends[1]);
  std::optional<std::string> out;
  if (child > 0) {
    setpgid(child, child);
    std::string text;
    const bool whole = ReadUntil(ends[0], end, &text);
    if (WaitUntil(child, whole ? end : std::chrono::steady_clock::now()) == 0 && whole) out = std::move(text);
  }
  close(ends[0]);
  return out;
}

}  // namespace ascend_fuse
