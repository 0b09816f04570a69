// Control-C while a file is written: the writing ends first and nothing half is left behind, then the process ends as it would
// have.
#pragma once

#include <csignal>

namespace ascend_fuse {

// While one lives, SIGINT, SIGTERM and SIGHUP are kept, and `Came` says so; its end does with them what would have been done.
// One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool Came() const;

 private:
  struct sigaction before_[3];
};

}  // namespace ascend_fuse
