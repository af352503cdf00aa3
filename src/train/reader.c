// SPDX-License-Identifier: Apache-2.0
// Two buffers: the caller computes with one while the thread fills the other. The order of an epoch is a
// shuffle that the seed and the epoch decide, so that any step can be read without those before it.
#include "train/reader.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"

enum { SLOTS = 2 };
__extension__ typedef unsigned __int128 product_t;

typedef struct slot {
  void **data;  /* by feed, then by drop */
  int64_t step; /* that it holds; -1: none */
  int64_t labels;
} slot_t;

struct cleave_train_reader {
  const cleave_train_plan_t *plan;
  slot_t slots[SLOTS];
  int64_t *order; /* rows of an epoch */
  void *others;   /* labels of another process, while they are counted */
  int64_t epoch;  /* of `order`; -1: none */
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int64_t wanted; /* step that the thread is to have ready next; -1: none */
  bool ends;
};

// ---- numbers ----

static uint64_t mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Fisher and Yates's shuffle; a number below `bound` by the high half of a product. */
static void shuffle(int64_t *order, int64_t count, uint64_t seed) {
  for (int64_t k = count - 1; k > 0; k--) {
    uint64_t bound = (uint64_t)k + 1;
    int64_t other = (int64_t)((product_t)mix(seed + (uint64_t)k) * bound >> 64);
    int64_t row = order[k];
    order[k] = order[other];
    order[other] = row;
  }
}

static void make_order(cleave_train_reader_t *reader, int64_t epoch) {
  const cleave_train_plan_t *plan = reader->plan;
  if (reader->epoch == epoch) {
    return;
  }
  for (int64_t k = 0; k < plan->samples->count; k++) {
    reader->order[k] = plan->samples->first + k;
  }
  if (!plan->keep_order) {
    shuffle(reader->order, plan->samples->count,
            cleave_hash_combine(cleave_hash_combine(CLEAVE_HASH_SEED, plan->seed), (uint64_t)epoch));
  }
  reader->epoch = epoch;
}

/* `first`: number of the first element in the mask of the whole minibatch. */
static void fill_mask(const cleave_train_drop_t *drop, uint64_t seed, int64_t first, uint8_t *mask) {
  uint64_t least = (uint64_t)(drop->ratio * 18446744073709551616.0);
  for (int64_t k = 0; k < drop->count; k++) {
    mask[k] = mix(seed + (uint64_t)(first + k)) >= least ? 1 : 0;
  }
}

/* Counts the labels of a whole minibatch, part by part. */
static int64_t count_labels(cleave_train_reader_t *reader, const int64_t *rows) {
  const cleave_train_plan_t *plan = reader->plan;
  const int64_t *labels = reader->others;
  int64_t count = 0;
  for (int32_t r = 0; plan->labels != NULL && r < plan->ranks; r++) {
    cleave_train_feed_fill(plan->labels, rows + r * plan->batch, plan->batch, reader->others);
    for (int64_t k = 0; k < plan->batch * plan->labels->row; k++) {
      count += labels[k] != CLEAVE_TRAIN_IGNORED ? 1 : 0;
    }
  }
  return count;
}

static void fill(cleave_train_reader_t *reader, slot_t *slot, int64_t step) {
  const cleave_train_plan_t *plan = reader->plan;
  int64_t whole = plan->batch * plan->ranks;
  int64_t per_epoch = plan->samples->count / whole;
  make_order(reader, step / per_epoch);
  const int64_t *all_rows = reader->order + step % per_epoch * whole;
  const int64_t *rows = all_rows + plan->rank * plan->batch;
  for (uint32_t k = 0; k < plan->feeds->count; k++) {
    cleave_train_feed_fill(&plan->feeds->items[k], rows, plan->batch, slot->data[k]);
  }
  for (uint32_t k = 0; k < plan->drop_count; k++) {
    uint64_t seed = cleave_hash_combine(cleave_hash_combine(plan->seed, (uint64_t)step + 1), k);
    fill_mask(&plan->drops[k], seed, plan->rank * plan->drops[k].count, slot->data[plan->feeds->count + k]);
  }
  slot->labels = count_labels(reader, all_rows);
  slot->step = step;
}

// ---- the thread ----

static void *read_ahead(void *self) {
  cleave_train_reader_t *reader = self;
  (void)pthread_mutex_lock(&reader->lock);
  while (!reader->ends) {
    int64_t step = reader->wanted;
    slot_t *slot = step < 0 ? NULL : &reader->slots[step % SLOTS];
    if (slot == NULL || slot->step == step) {
      (void)pthread_cond_wait(&reader->changed, &reader->lock);
      continue;
    }
    slot->step = -1;
    (void)pthread_mutex_unlock(&reader->lock);
    fill(reader, slot, step);
    (void)pthread_mutex_lock(&reader->lock);
    (void)pthread_cond_broadcast(&reader->changed);
  }
  (void)pthread_mutex_unlock(&reader->lock);
  return NULL;
}

static void want(cleave_train_reader_t *reader, int64_t step) {
  reader->wanted = step;
  (void)pthread_cond_broadcast(&reader->changed);
}

void *const *cleave_train_reader_take(cleave_train_reader_t *reader, int64_t step, int64_t *out_labels) {
  slot_t *slot = &reader->slots[step % SLOTS];
  (void)pthread_mutex_lock(&reader->lock);
  want(reader, step);
  while (slot->step != step) {
    (void)pthread_cond_wait(&reader->changed, &reader->lock);
  }
  want(reader, step + 1);
  *out_labels = slot->labels;
  (void)pthread_mutex_unlock(&reader->lock);
  return slot->data;
}

// ---- making and ending ----

static cleave_status_t make_slot(const cleave_train_plan_t *plan, slot_t *slot, cleave_error_t *error) {
  uint32_t feed_count = plan->feeds->count;
  slot->step = -1;
  slot->data = cleave_allocate_zeroed((size_t)feed_count + plan->drop_count + 1, sizeof *slot->data);
  CLEAVE_TRY_MEMORY(slot->data, error);
  for (uint32_t k = 0; k < feed_count + plan->drop_count; k++) {
    size_t bytes = k < feed_count ? plan->feeds->items[k].bytes : (size_t)plan->drops[k - feed_count].count;
    slot->data[k] = cleave_allocate_aligned(bytes + 1);
    CLEAVE_TRY_MEMORY(slot->data[k], error);
  }
  return CLEAVE_OK;
}

static cleave_status_t start(cleave_train_reader_t *reader, cleave_error_t *error) {
  for (int k = 0; k < SLOTS; k++) {
    CLEAVE_TRY(make_slot(reader->plan, &reader->slots[k], error));
  }
  reader->order = cleave_allocate((size_t)reader->plan->samples->count, sizeof *reader->order);
  reader->others =
      reader->plan->labels == NULL ? NULL : cleave_allocate_aligned(reader->plan->labels->bytes + 1);
  if (reader->order == NULL || (reader->plan->labels != NULL && reader->others == NULL)) {
    return cleave_error_out_of_memory(error);
  }
  int code = pthread_create(&reader->thread, NULL, read_ahead, reader);
  if (code != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "a thread cannot be started: %s", strerror(code));
  }
  reader->has_thread = true;
  return CLEAVE_OK;
}

cleave_status_t cleave_train_reader_create(const cleave_train_plan_t *plan,
                                           cleave_train_reader_t **out_reader, cleave_error_t *error) {
  cleave_train_reader_t *reader = cleave_allocate_zeroed(1, sizeof *reader);
  *out_reader = NULL;
  CLEAVE_TRY_MEMORY(reader, error);
  reader->plan = plan;
  reader->epoch = -1;
  reader->wanted = -1;
  (void)pthread_mutex_init(&reader->lock, NULL);
  (void)pthread_cond_init(&reader->changed, NULL);
  cleave_status_t status = start(reader, error);
  if (status != CLEAVE_OK) {
    cleave_train_reader_destroy(reader);
    return status;
  }
  *out_reader = reader;
  return CLEAVE_OK;
}

void cleave_train_reader_destroy(cleave_train_reader_t *reader) {
  if (reader == NULL) {
    return;
  }
  if (reader->has_thread) {
    (void)pthread_mutex_lock(&reader->lock);
    reader->ends = true;
    (void)pthread_cond_broadcast(&reader->changed);
    (void)pthread_mutex_unlock(&reader->lock);
    (void)pthread_join(reader->thread, NULL);
  }
  uint32_t count = reader->plan->feeds->count + reader->plan->drop_count;
  for (int s = 0; s < SLOTS; s++) {
    for (uint32_t k = 0; k < count && reader->slots[s].data != NULL; k++) {
      cleave_free(reader->slots[s].data[k]);
    }
    cleave_free((void *)reader->slots[s].data);
  }
  (void)pthread_mutex_destroy(&reader->lock);
  (void)pthread_cond_destroy(&reader->changed);
  cleave_free(reader->order);
  cleave_free(reader->others);
  cleave_free(reader);
}
