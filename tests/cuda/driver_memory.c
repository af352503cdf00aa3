// SPDX-License-Identifier: Apache-2.0
// Faults on demand, the lock, and memory. A block of a device ends at a page that nobody can touch.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stand_in.h"

enum { MAX_NAMES = 128, MAX_NAME = 64, ALIGNMENT = 256 };

static struct {
  char wanted[256];
  struct {
    char name[MAX_NAME];
    long calls;
  } counts[MAX_NAMES];
  int32_t lost; /* the error that stays */
} faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- faults ---- */

long stand_in_number(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text == NULL || text[0] == '\0' ? otherwise : strtol(text, NULL, 10);
}

static void begin_anew(const char *wanted) {
  memset(&faults, 0, sizeof faults);
  (void)snprintf(faults.wanted, sizeof faults.wanted, "%s", wanted);
}

static long count_call(const char *name) {
  for (size_t k = 0; k < MAX_NAMES; k++) {
    if (faults.counts[k].name[0] == '\0') {
      (void)snprintf(faults.counts[k].name, MAX_NAME, "%s", name);
    }
    if (strcmp(faults.counts[k].name, name) == 0) {
      return ++faults.counts[k].calls;
    }
  }
  return 0;
}

int32_t stand_in_fault(const char *name) {
  const char *wanted = getenv("CLEAVE_CUDA_FAIL");
  wanted = wanted == NULL ? "" : wanted;
  if (strncmp(wanted, faults.wanted, sizeof faults.wanted - 1) != 0) {
    begin_anew(wanted);
  }
  long call = count_call(name);
  size_t length = strlen(name);
  for (const char *at = wanted; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
    if (strncmp(at, name, length) != 0 || (at[length] != '=' && at[length] != ':')) {
      continue;
    }
    char *end = NULL;
    long number = at[length] == ':' ? strtol(at + length + 1, &end, 10) : call;
    const char *code = at[length] == ':' ? end : at + length;
    if (number == call && *code == '=') {
      return (int32_t)strtol(code + 1, NULL, 10);
    }
  }
  return 0;
}

int32_t stand_in_algorithm(const char *name, int algorithm, double *out_milliseconds) {
  const char *times = getenv("CLEAVE_CUDA_TIMES");
  char own[MAX_NAME];
  int length = snprintf(own, sizeof own, "%s=", name);
  const char *at = times == NULL ? NULL : strstr(times, own);
  at = at == NULL ? NULL : at + length;
  for (int k = 0; k < algorithm && at != NULL; k++) {
    at += strcspn(at, "/,");
    at = *at == '/' ? at + 1 : NULL;
  }
  *out_milliseconds = at != NULL ? strtod(at, NULL) : algorithm == 0 ? 2.0 : 6.0;
  (void)snprintf(own, sizeof own, "%s.%d", name, algorithm);
  return stand_in_fault(own);
}

void stand_in_lose(int32_t error) {
  faults.lost = faults.lost == 0 ? error : faults.lost;
}

int32_t stand_in_enter(const char *name) {
  (void)pthread_mutex_lock(&lock);
  int32_t fault = stand_in_fault(name);
  if (fault >= CUDA_ILLEGAL_ADDRESS || fault == CUDA_DEVICE_UNAVAILABLE) {
    stand_in_lose(fault);
  }
  return faults.lost != 0 ? faults.lost : fault;
}

int32_t stand_in_leave(int32_t result) {
  (void)pthread_mutex_unlock(&lock);
  return result;
}

/* ---- blocks ---- */

typedef struct block {
  unsigned char *mapping;
  size_t mapped; /* without the last page */
  cuda_address_t address;
  size_t bytes;
  int32_t device; /* -1: of the host */
  struct block *next;
} block_t;

static block_t *blocks;
static size_t used[STAND_IN_MAX_DEVICES];
static unsigned opened[STAND_IN_MAX_DEVICES];

static void protect(const block_t *block) {
  (void)mprotect(block->mapping, block->mapped,
                 opened[block->device] > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

int32_t stand_in_allocate(int32_t device, size_t bytes, cuda_address_t *out_address) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t limit = (size_t)stand_in_number("CLEAVE_CUDA_MEMORY", 1L << 34);
  if (bytes == 0) {
    return CUDA_INVALID_VALUE;
  }
  if (bytes > limit || used[device] > limit - bytes) {
    return CUDA_OUT_OF_MEMORY;
  }
  size_t aligned = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t mapped = (aligned + page - 1) / page * page;
  block_t *block = calloc(1, sizeof *block);
  void *mapping = block == NULL ? MAP_FAILED
                                : mmap(NULL, mapped + page, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    free(block);
    return CUDA_OUT_OF_MEMORY;
  }
  *block = (block_t){.mapping = mapping,
                     .mapped = mapped,
                     .address = (cuda_address_t)(uintptr_t)mapping + mapped - aligned,
                     .bytes = bytes,
                     .device = device,
                     .next = blocks};
  /* Nobody may count on zeros; most of a large block is never looked at. */
  memset((void *)(uintptr_t)block->address, 0xa5, bytes < 1 << 20 ? bytes : 1 << 20);
  (void)mprotect(block->mapping + mapped, page, PROT_NONE);
  protect(block);
  blocks = block;
  used[device] += bytes;
  *out_address = block->address;
  return CUDA_SUCCESS_;
}

static block_t **find(cuda_address_t address) {
  block_t **at = &blocks;
  while (*at != NULL && (*at)->address != address) {
    at = &(*at)->next;
  }
  return at;
}

int32_t stand_in_free(cuda_address_t address) {
  block_t **at = find(address);
  block_t *block = *at;
  if (block == NULL || block->device < 0) {
    return CUDA_INVALID_VALUE;
  }
  *at = block->next;
  used[block->device] -= block->bytes;
  (void)munmap(block->mapping, block->mapped + (size_t)sysconf(_SC_PAGESIZE));
  free(block);
  return CUDA_SUCCESS_;
}

bool stand_in_holds(int32_t device, cuda_address_t address, size_t bytes) {
  for (const block_t *block = blocks; block != NULL; block = block->next) {
    if (block->device == device && address >= block->address && address - block->address <= block->bytes &&
        bytes <= block->bytes - (address - block->address)) {
      return true;
    }
  }
  return false;
}

size_t stand_in_live_blocks(void) {
  size_t count = 0;
  for (const block_t *block = blocks; block != NULL; block = block->next) {
    count++;
  }
  return count;
}

static void protect_all(int32_t device) {
  for (const block_t *block = blocks; block != NULL; block = block->next) {
    if (block->device == device) {
      protect(block);
    }
  }
}

void stand_in_open(int32_t device) {
  if (opened[device]++ == 0) {
    protect_all(device);
  }
}

void stand_in_close(int32_t device) {
  if (--opened[device] == 0) {
    protect_all(device);
  }
}

/* ---- pinned memory of the host ---- */

void *stand_in_pin(size_t bytes) {
  block_t *block = calloc(1, sizeof *block);
  void *memory = NULL;
  if (block == NULL || posix_memalign(&memory, ALIGNMENT, bytes) != 0) {
    free(block);
    return NULL;
  }
  *block =
      (block_t){.address = (cuda_address_t)(uintptr_t)memory, .bytes = bytes, .device = -1, .next = blocks};
  blocks = block;
  return memory;
}

bool stand_in_unpin(void *memory) {
  block_t **at = find((cuda_address_t)(uintptr_t)memory);
  block_t *block = *at;
  if (block == NULL || block->device >= 0) {
    return false;
  }
  *at = block->next;
  free(memory);
  free(block);
  return true;
}

bool stand_in_is_pinned(const void *memory, size_t bytes) {
  return stand_in_holds(-1, (cuda_address_t)(uintptr_t)memory, bytes);
}
