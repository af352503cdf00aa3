// SPDX-License-Identifier: Apache-2.0
// Address space costs nothing: every buffer has GUARD bytes before and behind it that nobody can touch, so
// that a loop which runs too far faults long before it reaches something else.
#include "worker/worker.h"

#include <string.h>
#include <sys/mman.h>

#define GUARD ((size_t)1 << 20)

static unsigned char *reserve(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* ---- buffers ---- */

static bool place(worker_area_t *area, const worker_buffer_t *buffers, size_t *out_total) {
  size_t total = 0;
  for (uint32_t k = 0; k < area->count; k++) {
    size_t span = 0;
    if (!cleave_area_place(&buffers[k].bytes, 1, &area->parts[k], &span) ||
        !cleave_size_add(total, span, &span) || span > SIZE_MAX / 4) {
      return false;
    }
    area->parts[k].offset = total;
    total = span;
  }
  *out_total = total;
  return true;
}

cleave_status_t worker_area_map(worker_area_t *area, int fd, const worker_buffer_t *buffers, uint32_t count,
                                cleave_error_t *error) {
  size_t total = 0;
  *area = (worker_area_t){.count = count};
  area->parts = cleave_allocate_zeroed(count, sizeof *area->parts);
  area->data = cleave_allocate_zeroed(count, sizeof *area->data);
  area->ranges = cleave_allocate_zeroed(count, sizeof *area->ranges);
  CLEAVE_TRY_MEMORY(area->parts != NULL && area->data != NULL && area->ranges != NULL, error);
  if (!place(area, buffers, &total)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "buffers are too large");
  }
  area->reserved = total + ((size_t)count + 1) * GUARD;
  area->memory = reserve(area->reserved);
  CLEAVE_TRY_MEMORY(area->memory, error);
  unsigned char *at = area->memory + GUARD;
  for (uint32_t k = 0; k < count; k++) {
    const cleave_area_part_t *part = &area->parts[k];
    bool is_input = buffers[k].is_input;
    if (mmap(at, part->span, is_input ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)part->offset) == MAP_FAILED) {
      return cleave_error_out_of_memory(error);
    }
    area->data[k] = at + part->lead;
    area->ranges[k] = (worker_range_t){.guard = at - GUARD,
                                       .data = area->data[k],
                                       .bytes = part->bytes,
                                       .end = at + part->span + GUARD / 2,
                                       .place = is_input ? CLEAVE_PLACE_INPUT : CLEAVE_PLACE_OUTPUT,
                                       .index = buffers[k].index};
    area->ranges[k].guard += k == 0 ? 0 : GUARD / 2; /* half of it belongs to the one before */
    at += part->span + GUARD;
  }
  return CLEAVE_OK;
}

void worker_area_unmap(worker_area_t *area) {
  if (area->memory != NULL) {
    (void)munmap(area->memory, area->reserved);
  }
  cleave_free(area->parts);
  cleave_free(area->data);
  cleave_free(area->ranges);
  *area = (worker_area_t){0};
}

/* ---- scratch memory ---- */

cleave_status_t worker_scratch_reserve(worker_scratch_t *scratch, size_t bytes) {
  worker_scratch_t made = {0};
  size_t total = 0;
  if (scratch->memory != NULL && bytes <= scratch->part.bytes) {
    return CLEAVE_OK;
  }
  if (!cleave_area_place(&bytes, 1, &made.part, &total)) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  made.reserved = total + 2 * GUARD;
  made.memory = reserve(made.reserved);
  if (made.memory == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (mmap(made.memory + GUARD, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    (void)munmap(made.memory, made.reserved);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  made.data = made.memory + GUARD + made.part.lead;
  cleave_area_mark(&made.part, made.memory + GUARD);
  worker_scratch_free(scratch);
  *scratch = made;
  return CLEAVE_OK;
}

void worker_scratch_free(worker_scratch_t *scratch) {
  if (scratch->memory != NULL) {
    (void)munmap(scratch->memory, scratch->reserved);
  }
  *scratch = (worker_scratch_t){0};
}

/* ---- constants ---- */

cleave_status_t worker_constants_add(worker_constants_t *constants, uint32_t id, size_t bytes, int fd,
                                     cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&constants->items, 1, error));
  void *data = bytes == 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    return cleave_error_out_of_memory(error);
  }
  worker_constant_t item = {.id = id, .bytes = bytes, .data = data};
  cleave_array_push_reserved(&constants->items, item);
  return CLEAVE_OK;
}

static worker_constant_t *find(worker_constants_t *constants, uint32_t id) {
  size_t low = 0;
  size_t high = constants->items.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (constants->items.items[middle].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  bool is_there = low < constants->items.count && constants->items.items[low].id == id;
  return is_there ? &constants->items.items[low] : NULL;
}

void *worker_constants_take(worker_constants_t *constants, uint32_t id, size_t *out_bytes) {
  worker_constant_t *item = find(constants, id);
  *out_bytes = 0;
  if (item == NULL) {
    return NULL;
  }
  void *data = item->data;
  *out_bytes = item->bytes;
  size_t at = (size_t)(item - constants->items.items);
  memmove(item, item + 1, (constants->items.count - at - 1) * sizeof *item);
  constants->items.count--;
  return data;
}

void worker_constants_drop(worker_constants_t *constants, uint32_t id) {
  size_t bytes = 0;
  void *data = worker_constants_take(constants, id, &bytes);
  if (data != NULL) {
    (void)munmap(data, bytes);
  }
}

const void *worker_constants_get(worker_constants_t *constants, uint32_t id, size_t *out_bytes) {
  const worker_constant_t *item = find(constants, id);
  *out_bytes = item == NULL ? 0 : item->bytes;
  return item == NULL ? NULL : item->data;
}

const void *worker_constants_find(void *context, uint32_t id, size_t bytes) {
  const worker_constant_t *item = find(context, id);
  return item != NULL && item->bytes == bytes ? item->data : NULL;
}

void worker_constants_deinit(worker_constants_t *constants) {
  for (size_t k = 0; k < constants->items.count; k++) {
    (void)munmap(constants->items.items[k].data, constants->items.items[k].bytes);
  }
  cleave_array_free(&constants->items);
}
