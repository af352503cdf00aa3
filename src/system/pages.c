// SPDX-License-Identifier: Apache-2.0
// Some pages at a time, because other threads that map memory wait meanwhile.
#include "system/pages.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"

static const size_t AT_ONCE = (size_t)2 << 20;

struct cleave_page_reader {
  pthread_t thread;
  char *begin; /* of a page */
  size_t bytes;
  atomic_bool stops;
};

static void *read_pages(void *context) {
  cleave_page_reader_t *reader = context;
#ifdef MADV_POPULATE_READ
  for (size_t at = 0; at < reader->bytes && !atomic_load(&reader->stops); at += AT_ONCE) {
    size_t rest = reader->bytes - at;
    if (madvise(reader->begin + at, rest < AT_ONCE ? rest : AT_ONCE, MADV_POPULATE_READ) != 0) {
      break;
    }
  }
#else
  (void)reader;
#endif
  return NULL;
}

cleave_page_reader_t *cleave_pages_read(const void *data, size_t bytes) {
  cleave_page_reader_t *reader = cleave_allocate_zeroed(1, sizeof *reader);
  if (reader == NULL) {
    return NULL;
  }
  size_t before = (size_t)((uintptr_t)data % (size_t)sysconf(_SC_PAGESIZE));
  reader->begin = (char *)(uintptr_t)data - before;
  reader->bytes = bytes + before;
  sigset_t all; /* signals are for the program's own threads */
  sigset_t own;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &own);
  bool is_started = pthread_create(&reader->thread, NULL, read_pages, reader) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &own, NULL);
  if (!is_started) {
    cleave_free(reader);
    reader = NULL;
  }
  return reader;
}

void cleave_pages_read_end(cleave_page_reader_t *reader) {
  if (reader != NULL) {
    atomic_store(&reader->stops, true);
    (void)pthread_join(reader->thread, NULL);
    cleave_free(reader);
  }
}
