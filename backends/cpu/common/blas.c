// SPDX-License-Identifier: Apache-2.0
// Loads OpenBLAS once, with the first program that multiplies. If the process may map only so much
// (RLIMIT_AS, RLIMIT_DATA), all buffers that OpenBLAS will ever use are made at that time, as many as there
// is room for, and no more products run at once: it never asks for memory that does not exist. OpenBLAS keeps
// to one thread, in the whole process, so that its pool (if it was built with one) never competes with the
// host's.
#include "cpu/common/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef CPU_HAS_OPENMP
#include <omp.h>
#endif

/* OpenBLAS 0.3 takes 300 MiB for itself, and 128 MiB for a buffer on most processors: with room to spare. */
enum { LIBRARY_MIB = 512, BUFFER_MIB = 256, BUFFER_LIMIT = 256 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cpu_blas_t blas;
static bool is_loaded;
static bool is_limited; /* `buffers` counts those that are free */
static sem_t buffers;
static char trouble[256];
static atomic_bool is_reported;

static bool has_limit(int resource) {
  struct rlimit limit;
  return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* Could this much memory be mapped now? */
static bool has_space(size_t mib) {
  void *probe = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) {
    return false;
  }
  (void)munmap(probe, mib << 20);
  return true;
}

/* ISO C does not convert object pointers to function pointers; POSIX guarantees that they look the same. */
static bool find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* An OpenBLAS that was built with OpenMP takes as many threads as OpenMP would give the caller, and has no
 * number of its own: the caller's is 1 around each product. Returns what to put back. */
static int use_one_thread(void) {
#ifdef CPU_HAS_OPENMP
  int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  return threads;
#else
  return 1;
#endif
}

static void use_threads(int threads) {
#ifdef CPU_HAS_OPENMP
  omp_set_num_threads(threads);
#else
  (void)threads;
#endif
}

/* Makes buffers for as many products at a time as there are processors, or as fit; returns their number. */
static unsigned make_buffers(void *library) {
  void *(*allocate)(int place) = NULL;
  void (*release)(void *buffer) = NULL;
  void *made[BUFFER_LIMIT];
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  long wanted = processors < 1 ? 1 : processors > BUFFER_LIMIT ? BUFFER_LIMIT : processors;
  bool can_allocate =
      find(library, "blas_memory_alloc", &allocate) && find(library, "blas_memory_free", &release);
  unsigned count = 0;
  while (can_allocate && count < wanted && has_space(BUFFER_MIB)) {
    made[count++] = allocate(0);
  }
  for (unsigned k = 0; k < count; k++) {
    release(made[k]);
  }
  return can_allocate ? count : has_space(BUFFER_MIB) ? 1 : 0;
}

/* A first product, so that OpenBLAS has settled on one thread before buffers are counted. */
static void settle(void) {
  static const float one = 1.0f;
  float result = 0.0f;
  int threads = use_one_thread();
  blas.sgemm(CPU_BLAS_ROW_MAJOR, CPU_BLAS_NO_TRANSPOSE, CPU_BLAS_NO_TRANSPOSE, 1, 1, 1, 1.0f, &one, 1, &one,
             1, 0.0f, &result, 1);
  use_threads(threads);
}

static void load(void) {
  is_limited = has_limit(RLIMIT_AS) || has_limit(RLIMIT_DATA);
  if (is_limited && !has_space(LIBRARY_MIB)) {
    (void)snprintf(trouble, sizeof trouble,
                   "cpu: OpenBLAS needs %d MiB of address space, but less is available (ulimit -v): matrix "
                   "products take plain loops, which are slow",
                   LIBRARY_MIB);
    return;
  }
  void *library = dlopen(CPU_OPENBLAS_NAME, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL && CPU_OPENBLAS_PATH[0] != '\0') {
    library = dlopen(CPU_OPENBLAS_PATH, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == NULL) {
    const char *reason = dlerror();
    (void)snprintf(trouble, sizeof trouble,
                   "cpu: OpenBLAS does not load, matrix products use plain loops, which are slow: %.120s",
                   reason == NULL ? CPU_OPENBLAS_NAME : reason);
    return;
  }
  int (*get_parallel)(void) = NULL;
  void (*set_num_threads)(int threads) = NULL;
  bool is_complete = find(library, "cblas_sgemm", &blas.sgemm) && find(library, "cblas_dgemm", &blas.dgemm) &&
                     find(library, "cblas_sgemv", &blas.sgemv) && find(library, "cblas_dgemv", &blas.dgemv) &&
                     find(library, "openblas_get_parallel", &get_parallel) &&
                     find(library, "openblas_set_num_threads", &set_num_threads);
  if (!is_complete) {
    (void)snprintf(trouble, sizeof trouble,
                   "cpu: %.120s is not OpenBLAS: matrix products use plain loops, which are slow",
                   CPU_OPENBLAS_NAME);
    return;
  }
  if (get_parallel() == CPU_BLAS_THREADS) {
    set_num_threads(1);
  }
  if (is_limited) {
    settle();
    unsigned count = make_buffers(library);
    if (count == 0 || sem_init(&buffers, 0, count) != 0) {
      (void)snprintf(trouble, sizeof trouble,
                     "cpu: OpenBLAS needs %d MiB of address space for a product, and there are fewer (ulimit "
                     "-v): matrix products use plain loops, which are slow",
                     BUFFER_MIB);
      return;
    }
  }
  is_loaded = true;
}

void cpu_blas_load(void) {
  (void)pthread_once(&once, load);
}

const cpu_blas_t *cpu_blas_enter(const cleave_host_t *host, int *state) {
  cpu_blas_load();
  if (!is_loaded) {
    if (host != NULL && !atomic_exchange(&is_reported, true)) {
      host->log(host, 1, trouble);
    }
    return NULL;
  }
  while (is_limited && sem_wait(&buffers) != 0) {
    /* a signal came */
  }
  *state = use_one_thread();
  return &blas;
}

void cpu_blas_leave(int state) {
  use_threads(state);
  if (is_limited) {
    (void)sem_post(&buffers);
  }
}
