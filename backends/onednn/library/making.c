// SPDX-License-Identifier: Apache-2.0
// One lock, which nobody holds while oneDNN generates code. Primitives are known by their numbers, since the
// list moves as it grows.
#include "onednn/library/making.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

void onednn_making_start(onednn_making_t *making, uint32_t makers) {
  memset(making, 0, sizeof(*making));
  (void)pthread_mutex_init(&making->lock, NULL);
  (void)pthread_cond_init(&making->added, NULL);
  making->status = dnnl_success;
  making->maker_count = makers < ONEDNN_MAKERS ? makers : ONEDNN_MAKERS;
  making->is_started = true;
}

// Under the lock, which is not held while the primitive is made; the list may move meanwhile.
static void make_next(onednn_making_t *making) {
  uint32_t index = making->next++;
  onednn_made_t item = making->items[index];
  (void)pthread_mutex_unlock(&making->lock);
  // oneDNN shares the work of a primitive among as many threads as there are when it is made.
  if (omp_get_max_threads() != item.threads) {
    omp_set_num_threads(item.threads);
  }
  dnnl_primitive_t primitive = NULL;
  dnnl_status_t status = dnnl_primitive_create(&primitive, item.description);
  (void)dnnl_primitive_desc_destroy(item.description);
  (void)pthread_mutex_lock(&making->lock);
  making->items[index].description = NULL;
  making->items[index].primitive = status == dnnl_success ? primitive : NULL;
  if (status != dnnl_success && making->status == dnnl_success) {
    making->status = status;
    making->failed = item.what;
  }
}

static void *make_all(void *context) {
  onednn_making_t *making = context;
  (void)pthread_mutex_lock(&making->lock);
  for (;;) {
    while (making->next == making->count && !making->is_over) {
      (void)pthread_cond_wait(&making->added, &making->lock);
    }
    if (making->next == making->count) {
      break;
    }
    make_next(making);
  }
  (void)pthread_mutex_unlock(&making->lock);
  return NULL;
}

// The threads start with the first primitive: many programs have none.
static void start_makers(onednn_making_t *making) {
  uint32_t started = 0;
  while (started < making->maker_count &&
         pthread_create(&making->makers[started], NULL, make_all, making) == 0) {
    started++;
  }
  making->maker_count = started;
}

// Under the lock.
static bool append(onednn_making_t *making, const onednn_made_t *item) {
  if (making->count == making->capacity) {
    uint32_t capacity = making->capacity == 0 ? 64 : making->capacity * 2;
    onednn_made_t *items = realloc(making->items, capacity * sizeof(*items));
    if (items == NULL) {
      return false;
    }
    making->items = items;
    making->capacity = capacity;
  }
  making->items[making->count++] = *item;
  return true;
}

bool onednn_making_add(onednn_making_t *making, dnnl_primitive_desc_t description, int32_t threads,
                       const char *what, uint32_t *out_index) {
  const onednn_made_t item = {.description = description, .what = what, .threads = threads};
  (void)pthread_mutex_lock(&making->lock);
  *out_index = making->count;
  bool is_added = append(making, &item);
  (void)pthread_cond_signal(&making->added);
  (void)pthread_mutex_unlock(&making->lock);
  if (!is_added) {
    (void)dnnl_primitive_desc_destroy(description);
  } else if (*out_index == 0) {
    start_makers(making);
  }
  return is_added;
}

// Nothing more is added: the threads end when they have made what there is.
static void end(onednn_making_t *making) {
  (void)pthread_mutex_lock(&making->lock);
  making->is_over = true;
  (void)pthread_cond_broadcast(&making->added);
  (void)pthread_mutex_unlock(&making->lock);
}

static void join(onednn_making_t *making) {
  for (uint32_t k = 0; making->count > 0 && k < making->maker_count; k++) {
    (void)pthread_join(making->makers[k], NULL);
  }
  making->maker_count = 0;
}

dnnl_status_t onednn_making_finish(onednn_making_t *making) {
  end(making);
  (void)make_all(making);
  join(making);
  return making->status;
}

dnnl_primitive_t onednn_making_take(onednn_making_t *making, uint32_t index) {
  dnnl_primitive_t primitive = making->items[index].primitive;
  making->items[index].primitive = NULL;
  return primitive;
}

void onednn_making_stop(onednn_making_t *making) {
  if (!making->is_started) {
    return;
  }
  (void)pthread_mutex_lock(&making->lock);
  for (uint32_t k = making->next; k < making->count; k++) {
    (void)dnnl_primitive_desc_destroy(making->items[k].description);
  }
  making->next = making->count;
  (void)pthread_mutex_unlock(&making->lock);
  end(making);
  join(making);
  for (uint32_t k = 0; k < making->count; k++) {
    if (making->items[k].primitive != NULL) {
      (void)dnnl_primitive_destroy(making->items[k].primitive);
    }
  }
  free(making->items);
  (void)pthread_cond_destroy(&making->added);
  (void)pthread_mutex_destroy(&making->lock);
  memset(making, 0, sizeof(*making));
}
