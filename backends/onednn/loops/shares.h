// SPDX-License-Identifier: Apache-2.0
/*
 * Units of a step, shared by threads: each has those of its part, one behind the other, because what it reads
 * is in its own cache, and then helps the next ones.
 */
#ifndef ONEDNN_SHARES_H
#define ONEDNN_SHARES_H

#include <stdatomic.h>
#include <stdint.h>

enum { ONEDNN_MAX_SHARES = 64 };

typedef struct onednn_shares {
  int64_t units;
  int64_t count;
  atomic_llong next[ONEDNN_MAX_SHARES]; /* unit of a share */
} onednn_shares_t;

static inline void onednn_shares_init(onednn_shares_t *shares, int64_t units, int64_t threads) {
  int64_t most = threads < ONEDNN_MAX_SHARES ? threads : ONEDNN_MAX_SHARES;
  shares->units = units;
  shares->count = units < most ? units : most;
  for (int64_t k = 0; k < shares->count; k++) {
    atomic_init(&shares->next[k], units * k / shares->count);
  }
}

/* The next unit for the thread of share `own`; -1: none is left. */
static inline int64_t onednn_shares_take(onednn_shares_t *shares, int64_t own) {
  for (int64_t k = 0; k < shares->count; k++) {
    int64_t share = (own + k) % shares->count;
    int64_t unit = atomic_fetch_add(&shares->next[share], 1);
    if (unit < shares->units * (share + 1) / shares->count) {
      return unit;
    }
  }
  return -1;
}

#endif /* ONEDNN_SHARES_H */
