// SPDX-License-Identifier: Apache-2.0
// What this machine can do, as JSON, for the bounds of tests/bench/compare:
//   bench_machine [THREADS [BYTES]]
// "gflops": multiply-adds of float32 vectors in registers, two operations each, of all threads together.
// "read_gb_per_s": all threads read BYTES (default 256 MiB) again and again, each its own part, so that a
// size that fits a cache is read from it. Both are the best of several rounds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "system/threads.h"

enum { ACCUMULATORS = 10, STEPS = 1 << 18, ROUNDS = 15 };

/* Both loops for one instruction set, whose vectors have WIDTH bytes. */
#define LOOPS(NAME, TARGET, WIDTH)                                                        \
  TARGET static double multiply_add_##NAME(float factor) {                                \
    typedef float vector_t __attribute__((vector_size(WIDTH)));                           \
    vector_t factors = (vector_t){0} + factor;                                            \
    vector_t sums[ACCUMULATORS];                                                          \
    for (int k = 0; k < ACCUMULATORS; k++) {                                              \
      sums[k] = factors * (float)k;                                                       \
    }                                                                                     \
    for (int step = 0; step < STEPS; step++) {                                            \
      _Pragma("GCC unroll 10") for (int k = 0; k < ACCUMULATORS; k++) {                   \
        sums[k] = sums[k] * factors + factors;                                            \
      }                                                                                   \
    }                                                                                     \
    double total = 0.0;                                                                   \
    for (int k = 0; k < ACCUMULATORS; k++) {                                              \
      total += (double)sums[k][0];                                                        \
    }                                                                                     \
    return total;                                                                         \
  }                                                                                       \
  TARGET static uint64_t read_##NAME(const char *data, size_t bytes) {                    \
    typedef uint64_t vector_t __attribute__((vector_size(WIDTH), may_alias));             \
    vector_t sums[4] = {{0}};                                                             \
    for (size_t at = 0; at + 4 * sizeof(vector_t) <= bytes; at += 4 * sizeof(vector_t)) { \
      const vector_t *from = (const vector_t *)(const void *)(data + at);                 \
      _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {                               \
        sums[k] ^= from[k];                                                               \
      }                                                                                   \
    }                                                                                     \
    return (sums[0] ^ sums[1] ^ sums[2] ^ sums[3])[0];                                    \
  }

typedef struct loops {
  const char *name;
  size_t width; /* bytes of a vector */
  double (*multiply_add)(float factor);
  uint64_t (*read)(const char *data, size_t bytes);
} loops_t;

LOOPS(plain, , 16)
static const loops_t plain = {"plain", 16, multiply_add_plain, read_plain};
#if defined(__x86_64__)
LOOPS(avx2, __attribute__((target("avx2,fma"))), 32)
static const loops_t avx2 = {"AVX2", 32, multiply_add_avx2, read_avx2};
LOOPS(avx512, __attribute__((target("avx512f"))), 64)
static const loops_t avx512 = {"AVX-512", 64, multiply_add_avx512, read_avx512};
#endif

static const loops_t *choose(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    return &avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return &avx2;
  }
#endif
  return &plain;
}

static double seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

typedef struct work {
  const loops_t *loops;
  const char *data; /* NULL: multiply-adds */
  size_t part;      /* bytes of a thread's part */
  int passes;       /* over the part */
  volatile double sink;
} work_t;

static void do_part(void *context, int64_t begin, int64_t end) {
  work_t *work = context;
  for (int64_t k = begin; k < end; k++) {
    if (!work->data) {
      work->sink = work->loops->multiply_add(0.999f);
      continue;
    }
    for (int pass = 0; pass < work->passes; pass++) {
      work->sink = (double)work->loops->read(work->data + (size_t)k * work->part, work->part);
    }
  }
}

/* Seconds of the fastest round. */
static double best_time(work_t *work, int32_t threads) {
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    double start = seconds();
    cleave_parallel_for(threads, threads, 1, do_part, work);
    double time = seconds() - start;
    best = time < best ? time : best;
  }
  return best;
}

int main(int argc, char **argv) {
  int32_t threads = argc > 1 ? (int32_t)atoi(argv[1]) : cleave_threads_available();
  long long bytes = argc > 2 ? atoll(argv[2]) : 256ll << 20;
  if (threads < 1 || threads > 1024 || bytes < 1 || bytes > 16ll << 30) {
    fprintf(stderr, "usage: bench_machine [THREADS (1 to 1024) [BYTES (1 to 16 GiB)]]\n");
    return 2;
  }
  work_t work = {.loops = choose()};
  size_t step = 4 * work.loops->width;
  work.part = ((size_t)bytes / (size_t)threads + step - 1) / step * step;
  double flops = 2.0 * ACCUMULATORS * STEPS * (double)(work.loops->width / sizeof(float)) * threads;
  double gflops = flops / best_time(&work, threads) * 1e-9;

  size_t all = work.part * (size_t)threads;
  char *data = aligned_alloc(64, (all + 63) / 64 * 64);
  if (!data) {
    fprintf(stderr, "bench_machine: no memory for %zu bytes\n", all);
    return 1;
  }
  memset(data, 1, all);
  work.data = data;
  work.passes = (int)((64u << 20) / all) + 1;
  double read = (double)all * work.passes / best_time(&work, threads) * 1e-9;
  printf(
      "{\"threads\": %d, \"vectors\": \"%s\", \"gflops\": %.1f, \"read_bytes\": %zu, \"read_gb_per_s\": "
      "%.2f}\n",
      (int)threads, work.loops->name, gflops, all, read);
  free(data);
  return 0;
}
