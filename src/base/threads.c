/* SPDX-License-Identifier: Apache-2.0 */
/* Static chunks, so that who computes what does not depend on timing. */
#include "base/threads.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <sched.h>
#include <unistd.h>

int32_t cleave_threads_available(void) {
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 && count < 4096 ? (int32_t)count : 1;
#endif
}

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
#pragma omp parallel for num_threads((int)chunks) schedule(static, 1)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
      body(context, chunk * (count / chunks) + (chunk < count % chunks ? chunk : count % chunks),
           (chunk + 1) * (count / chunks) + (chunk + 1 < count % chunks ? chunk + 1 : count % chunks));
    }
    return;
  }
#endif
  body(context, 0, count);
}
