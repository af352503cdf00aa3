// SPDX-License-Identifier: Apache-2.0
// Small constants go along in messages; large ones as memory that is written once here, sealed, and mapped by
// the worker. This process keeps neither the memory nor the descriptor.

#include <string.h>
#include <unistd.h>

#include "backend/process/worker_process.h"

enum { MIN_SHARED = 32 << 10, MAX_IDLE = 1 << 30 };

static uint32_t *bucket_of(cleave_worker_constants_t *constants, uint64_t version) {
  return &constants->buckets[version % CLEAVE_CONSTANT_BUCKETS];
}

static void link_all(cleave_worker_constants_t *constants) {
  memset(constants->buckets, 0, sizeof constants->buckets);
  for (size_t k = 0; k < constants->items.count; k++) {
    uint32_t *bucket = bucket_of(constants, constants->items.items[k].version);
    constants->items.items[k].next = *bucket;
    *bucket = (uint32_t)k + 1;
  }
}

static cleave_worker_constant_t *find(cleave_worker_constants_t *constants, uint64_t version, size_t bytes) {
  uint32_t at = version == 0 ? 0 : *bucket_of(constants, version);
  while (at != 0) {
    cleave_worker_constant_t *item = &constants->items.items[at - 1];
    if (item->version == version && item->bytes == bytes) {
      return item;
    }
    at = item->next;
  }
  return NULL;
}

static cleave_worker_constant_t *find_id(cleave_worker_constants_t *constants, uint32_t id) {
  size_t low = 0;
  size_t high = constants->items.count;
  while (low < high) { /* ids rise with the order */
    size_t middle = (low + high) / 2;
    if (constants->items.items[middle].id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < constants->items.count && constants->items.items[low].id == id ? &constants->items.items[low]
                                                                              : NULL;
}

static void tell_dropped(cleave_worker_t *worker, uint32_t id) {
  cleave_worker_call_t call = {
      .kind = CLEAVE_FRAME_DROP, .limit_ms = 1000, .doing = "taking back a constant", .fd = -1};
  cleave_message_t message;
  cleave_wire_reset(&worker->request);
  cleave_wire_put_u32(&worker->request, id);
  if (cleave_worker_tell(worker, &call, &message) != CLEAVE_OK) {
    return; /* the process is lost: the next call fails and says so */
  }
}

void cleave_worker_constants_begin(cleave_worker_t *worker) {
  cleave_worker_constants_t *constants = &worker->constants;
  constants->used.count = 0;
  if (constants->idle_bytes <= MAX_IDLE) {
    return;
  }
  size_t kept = 0;
  for (size_t k = 0; k < constants->items.count; k++) {
    const cleave_worker_constant_t *item = &constants->items.items[k];
    if (item->users == 0 && !atomic_load(&worker->is_lost)) {
      constants->idle_bytes -= item->bytes;
      tell_dropped(worker, item->id);
    } else {
      constants->items.items[kept++] = *item;
    }
  }
  constants->items.count = kept;
  link_all(constants);
  cleave_wire_reset(&worker->request);
}

static cleave_status_t hand_over(cleave_worker_t *worker, const cleave_worker_constant_t *item,
                                 const void *data, cleave_error_t *error) {
  int fd = cleave_worker_make_constant(data, item->bytes);
  if (fd < 0) {
    return cleave_error_set(error, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory to share a constant of %zu byte%s",
                            item->bytes, CLEAVE_PLURAL(item->bytes));
  }
  cleave_worker_call_t call = {
      .kind = CLEAVE_FRAME_SHARE, .limit_ms = 10000, .doing = "taking a constant", .fd = fd};
  cleave_message_t message = {.text = ""};
  cleave_wire_out_t request = worker->request; /* the region goes on after this */
  worker->request = (cleave_wire_out_t){0};
  cleave_wire_put_u32(&worker->request, item->id);
  cleave_wire_put_u64(&worker->request, item->bytes);
  cleave_status_t status = cleave_worker_tell(worker, &call, &message);
  cleave_wire_deinit(&worker->request);
  worker->request = request;
  (void)close(fd);
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_set(error, status, "%s", message.text);
}

cleave_status_t cleave_worker_constants_lend(cleave_worker_t *worker, const void *data, size_t bytes,
                                             uint32_t *out_id, cleave_error_t *error) {
  cleave_worker_constants_t *constants = &worker->constants;
  *out_id = CLEAVE_INDEX_NONE;
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  if (constants->last_id == CLEAVE_INDEX_NONE - 1) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "too many constants were handed over");
  }
  cleave_worker_constant_t item = {.bytes = bytes, .id = constants->last_id + 1};
  CLEAVE_TRY(hand_over(worker, &item, data, error));
  *out_id = ++constants->last_id;
  return CLEAVE_OK;
}

void cleave_worker_constants_take_back(cleave_worker_t *worker, uint32_t id) {
  if (id != CLEAVE_INDEX_NONE && !atomic_load(&worker->is_lost)) {
    tell_dropped(worker, id);
  }
}

cleave_status_t cleave_worker_constants_share(void *context, const cleave_tensor_view_t *tensor, size_t bytes,
                                              uint32_t *out_id, cleave_error_t *error) {
  cleave_worker_t *worker = context;
  cleave_worker_constants_t *constants = &worker->constants;
  *out_id = CLEAVE_INDEX_NONE;
  if (bytes < MIN_SHARED || tensor->storage != CLEAVE_STORAGE_DENSE) {
    return CLEAVE_OK;
  }
  cleave_worker_constant_t *found = find(constants, tensor->version, bytes);
  CLEAVE_TRY(cleave_array_reserve(&constants->used, 1, error));
  if (found == NULL) {
    if (constants->last_id == CLEAVE_INDEX_NONE - 1) {
      return CLEAVE_OK; /* in the message, then */
    }
    CLEAVE_TRY(cleave_array_reserve(&constants->items, 1, error));
    cleave_worker_constant_t item = {.version = tensor->version, .bytes = bytes, .id = ++constants->last_id};
    CLEAVE_TRY(hand_over(worker, &item, tensor->data, error));
    uint32_t *bucket = bucket_of(constants, item.version);
    item.next = *bucket;
    cleave_array_push_reserved(&constants->items, item);
    *bucket = (uint32_t)constants->items.count;
    constants->idle_bytes += bytes;
    found = &constants->items.items[constants->items.count - 1];
  }
  *out_id = found->id;
  for (size_t k = 0; k < constants->used.count; k++) {
    if (constants->used.items[k] == found->id) {
      return CLEAVE_OK;
    }
  }
  cleave_array_push_reserved(&constants->used, found->id);
  return CLEAVE_OK;
}

cleave_status_t cleave_worker_constants_keep(cleave_worker_t *worker, uint32_t **out_ids,
                                             uint32_t *out_count) {
  cleave_worker_constants_t *constants = &worker->constants;
  *out_count = 0;
  *out_ids = cleave_allocate(constants->used.count, sizeof **out_ids);
  if (*out_ids == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  for (size_t k = 0; k < constants->used.count; k++) {
    cleave_worker_constant_t *item = find_id(constants, constants->used.items[k]);
    if (item != NULL) {
      constants->idle_bytes -= item->users == 0 ? item->bytes : 0;
      item->users++;
      (*out_ids)[(*out_count)++] = item->id;
    }
  }
  return CLEAVE_OK;
}

void cleave_worker_constants_release(cleave_worker_t *worker, const uint32_t *ids, uint32_t count) {
  cleave_worker_constants_t *constants = &worker->constants;
  for (uint32_t k = 0; k < count; k++) {
    cleave_worker_constant_t *item = find_id(constants, ids[k]);
    if (item != NULL && --item->users == 0) {
      constants->idle_bytes += item->bytes;
    }
  }
}
