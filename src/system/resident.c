// SPDX-License-Identifier: Apache-2.0
#include "system/resident.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

double cleave_resident_peak(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024.0 : 0.0;
}

/* Counts the resident pages from `start` up to `end`: /proc/self/pagemap has 64 bits for each,
 * and in the highest one if it is there. */
static uint64_t count_resident(int pagemap, uint64_t start, uint64_t end, uint64_t page) {
  uint64_t entries[512];
  uint64_t count = 0;
  for (uint64_t at = start / page; at < end / page;) {
    uint64_t rest = end / page - at;
    size_t wanted = (rest < 512 ? (size_t)rest : 512) * sizeof entries[0];
    ssize_t got = pread(pagemap, entries, wanted, (off_t)(at * sizeof entries[0]));
    if (got < (ssize_t)sizeof entries[0]) {
      return count;
    }
    for (size_t k = 0; k < (size_t)got / sizeof entries[0]; k++, at++) {
      count += entries[k] >> 63;
    }
  }
  return count;
}

/* The mappings of one file, which follow each other. */
typedef struct mapped_file {
  char path[512];
  bool is_code; /* one of them holds code */
  size_t count;
  uint64_t starts[16];
  uint64_t ends[16];
} mapped_file_t;

static uint64_t count_code(const mapped_file_t *file, int pagemap, uint64_t page) {
  uint64_t pages = 0;
  for (size_t k = 0; file->is_code && k < file->count; k++) {
    pages += count_resident(pagemap, file->starts[k], file->ends[k], page);
  }
  return pages;
}

/* One line of /proc/self/maps. Returns the pages of the file before, if this is another one. */
static uint64_t add_mapping(mapped_file_t *file, const char *line, int pagemap, uint64_t page) {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t pages = 0;
  char permissions[8] = "";
  char path[512] = "";
  (void)sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*s %*u %511s", &start, &end, permissions, path);
  if (strcmp(path, file->path) != 0) {
    pages = count_code(file, pagemap, page);
    *file = (mapped_file_t){.count = 0};
    memcpy(file->path, path, sizeof path);
  }
  if (file->count < sizeof file->starts / sizeof file->starts[0]) {
    file->starts[file->count] = start;
    file->ends[file->count++] = end;
    file->is_code = file->is_code || (path[0] == '/' && strchr(permissions, 'x') != NULL);
  }
  return pages;
}

/* Only the mappings of programs and libraries are looked through: smaps, which has the same numbers, walks
 * through all memory of the process. */
double cleave_resident_code(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t pages = 0;
  mapped_file_t file = {.count = 0};
  char line[1024];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    pages += add_mapping(&file, line, pagemap, page);
  }
  pages += count_code(&file, pagemap, page);
  if (maps != NULL) {
    (void)fclose(maps);
  }
  if (pagemap >= 0) {
    (void)close(pagemap);
  }
  return (double)pages * (double)page / (1 << 20);
}
