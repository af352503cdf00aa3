// SPDX-License-Identifier: Apache-2.0
/* Static chunks, so that who computes what does not depend on timing. */
#include "system/threads.h"

#include "system/contention.h"
#include "system/processors.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 };

static pthread_once_t quota_is_read = PTHREAD_ONCE_INIT;
static int32_t quota;

static void read_quota(void) {
  quota = cleave_processor_quota("");
}

static int32_t processors(void) {
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 && count < 4096 ? (int32_t)count : 1;
#endif
}

int32_t cleave_threads_available(void) {
  const char *wanted = getenv("OMP_NUM_THREADS");
  long number = wanted == NULL ? 0 : strtol(wanted, NULL, 10);
  if (number > 0 && number <= MAX_THREADS) {
    return (int32_t)number;
  }
  (void)pthread_once(&quota_is_read, read_quota);
  int32_t count = processors();
  return quota > 0 && quota < count ? quota : count;
}

#ifdef _OPENMP
static void run_chunk(int64_t chunk, int64_t chunks, int64_t count, cleave_parallel_fn_t body,
                      void *context) {
  int64_t rest = count % chunks;
  body(context, chunk * (count / chunks) + (chunk < rest ? chunk : rest),
       (chunk + 1) * (count / chunks) + (chunk + 1 < rest ? chunk + 1 : rest));
}
#endif

void cleave_parallel_for(int32_t threads, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                         void *context) {
  if (count <= 0) {
    return;
  }
  grain = grain < 1 ? 1 : grain;
  int64_t chunks = (count + grain - 1) / grain;
  chunks = chunks > threads ? threads : chunks;
#ifdef _OPENMP
  if (chunks > 1) {
    // Two threads, one of which waits for its processor, are not faster than one. The chunks stay the same.
    bool alone = threads == 2 && cleave_contention_found();
    // The number of threads stays: libgomp ends those that a smaller team leaves out, and starts others
    // later.
#pragma omp parallel for num_threads(alone ? 1 : threads) schedule(static, 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
      run_chunk(chunk, chunks, count, body, context);
    }
    return;
  }
#endif
  body(context, 0, count);
}
