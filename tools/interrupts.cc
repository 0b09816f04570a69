#include "tools/interrupts.h"

#include <atomic>
#include <cstddef>

namespace ascend_fuse {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> came = 0;  // the signal; threads ask for it
static_assert(std::atomic<int>::is_always_lock_free);

void Keep(int signal) { came = signal; }

}  // namespace

Interrupts::Interrupts() {
  came = 0;
  for (size_t i = 0; i < 3; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_DFL) continue;  // nohup: who ignores it goes on
    struct sigaction keep = {};
    keep.sa_handler = &Keep;
    sigaction(kSignals[i], &keep, nullptr);
  }
}

Interrupts::~Interrupts() {
  for (size_t i = 0; i < 3; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  if (came != 0) std::raise(came);
}

bool Interrupts::Came() const { return came != 0; }

}  // namespace ascend_fuse
