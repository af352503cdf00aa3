// SPDX-License-Identifier: Apache-2.0
// Mappings that begin at a large page, so that the system can use large ones.
#include "onednn/weights/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t large_page = (size_t)2 << 20;

static size_t page_size(void) {
  long page = sysconf(_SC_PAGESIZE);
  return page > 0 ? (size_t)page : 4096;
}

bool onednn_pages_map(size_t bytes, bool is_large, onednn_pages_t *out_pages) {
  size_t wanted = (bytes + large_page - 1) / large_page * large_page;
  // One large page more, to begin at one; what lies before and behind goes back at once.
  unsigned char *memory = mmap(NULL, wanted + large_page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *out_pages = (onednn_pages_t){NULL, 0};
  if (memory == MAP_FAILED) {
    return false;
  }
  size_t before = (large_page - (uintptr_t)memory % large_page) % large_page;
  if (before > 0) {
    (void)munmap(memory, before);
  }
  (void)munmap(memory + before + wanted, large_page - before);
  *out_pages = (onednn_pages_t){memory + before, wanted};
#ifdef MADV_HUGEPAGE
  if (is_large) {
    (void)madvise(out_pages->base, wanted, MADV_HUGEPAGE);
  }
#endif
  return true;
}

void onednn_pages_unmap(onednn_pages_t *pages) {
  if (pages->base != NULL && pages->bytes > 0) {
    (void)munmap(pages->base, pages->bytes);
  }
  *pages = (onednn_pages_t){NULL, 0};
}

onednn_pages_t onednn_pages_split(onednn_pages_t *pages, size_t used) {
  onednn_pages_t rest = {NULL, 0};
  // Whole large pages if there are some: the last one would be broken up otherwise.
  size_t unit = used >= large_page ? large_page : page_size();
  size_t kept = (used + unit - 1) / unit * unit;
  if (kept < pages->bytes) {
    rest = (onednn_pages_t){pages->base + kept, pages->bytes - kept};
    pages->bytes = kept;
  }
  return rest;
}

void onednn_pages_clear(const onednn_pages_t *pages, const atomic_bool *stop) {
  volatile unsigned char *memory = pages->base;
  for (size_t at = 0; at < pages->bytes && !atomic_load(stop); at += page_size()) {
    memory[at] = 0;
  }
}
