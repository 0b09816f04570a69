#include "tools/interrupts.h"

#include <cstddef>

namespace ascend_fuse {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t came = 0;  // the signal

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
