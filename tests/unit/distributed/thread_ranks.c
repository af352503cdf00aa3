// SPDX-License-Identifier: Apache-2.0
#include "thread_ranks.h"

#include <pthread.h>

#include "tensor/dtype.h"
#include "unit.h"

enum { MAX_TRANSFERS = 4096, MAX_PAIRS = 8192 };

/* Numbers of transfers between two. */
#define PAIR UINT64_C(0x100000000)

/* One end of a transfer between two, until the other comes. */
typedef struct pair {
  cleave_transfer_t transfer;
  int32_t rank;
  bool is_done;
} pair_t;

typedef struct group {
  pthread_mutex_t lock;
  pthread_cond_t done;
  int32_t count;
  /* by number of the transfer */
  cleave_transfer_t transfers[MAX_TRANSFERS][THREAD_RANKS_MAX];
  int32_t started[MAX_TRANSFERS];
  size_t transfer_count;
  pair_t pairs[MAX_PAIRS];
  size_t pair_count;
} group_t;

typedef struct rank {
  cleave_communicator_t communicator;
  group_t *group;
  size_t next; /* transfer */
  void (*body)(const cleave_communicator_t *communicator, void *context);
  void *context;
  pthread_t thread;
} rank_t;

static void add(const cleave_transfer_t *to, const cleave_transfer_t *from) {
  for (int64_t k = 0; k < to->count; k++) {
    if (to->dtype == CLEAVE_DTYPE_F32) {
      ((float *)to->data)[k] += ((const float *)from->data)[k];
    } else if (to->dtype == CLEAVE_DTYPE_F64) {
      ((double *)to->data)[k] += ((const double *)from->data)[k];
    } else {
      ((int64_t *)to->data)[k] += ((const int64_t *)from->data)[k];
    }
  }
}

static void finish(const group_t *group, cleave_transfer_t *all) {
  bool is_sum = all[0].kind == CLEAVE_TRANSFER_SUM;
  int32_t from = is_sum ? 0 : all[0].peer;
  for (int32_t k = 0; k < group->count; k++) {
    ck_assert(all[k].kind == all[0].kind && all[k].dtype == all[0].dtype && all[k].count == all[0].count);
    if (is_sum && k > 0) {
      add(&all[0], &all[k]);
    }
  }
  for (int32_t k = 0; k < group->count; k++) {
    if (k != from && all[k].count > 0) {
      memcpy(all[k].data, all[from].data, (size_t)all[k].count * cleave_dtype_size(all[k].dtype));
    }
  }
}

static bool belong_together(const pair_t *a, const pair_t *b) {
  return !a->is_done && !b->is_done && a->transfer.kind != b->transfer.kind && a->rank == b->transfer.peer &&
         b->rank == a->transfer.peer && a->transfer.tag == b->transfer.tag;
}

/* With the lock: the first that waits for this one gets it. */
static uint64_t start_pair(group_t *group, int32_t rank, const cleave_transfer_t *transfer) {
  ck_assert_uint_lt(group->pair_count, MAX_PAIRS);
  pair_t *own = &group->pairs[group->pair_count];
  *own = (pair_t){.transfer = *transfer, .rank = rank};
  for (size_t k = 0; k < group->pair_count; k++) {
    pair_t *other = &group->pairs[k];
    if (belong_together(own, other)) {
      const pair_t *from = transfer->kind == CLEAVE_TRANSFER_SEND ? own : other;
      const pair_t *to = from == own ? other : own;
      ck_assert_int_eq(from->transfer.count, to->transfer.count);
      memcpy(to->transfer.data, from->transfer.data,
             (size_t)transfer->count * cleave_dtype_size(transfer->dtype));
      own->is_done = other->is_done = true;
      (void)pthread_cond_broadcast(&group->done);
    }
  }
  return PAIR + group->pair_count++;
}

static cleave_status_t start(void *self, const cleave_transfer_t *transfer, uint64_t *out_number,
                             cleave_message_t *message) {
  rank_t *rank = self;
  group_t *group = rank->group;
  (void)message;
  (void)pthread_mutex_lock(&group->lock);
  if (transfer->kind == CLEAVE_TRANSFER_SEND || transfer->kind == CLEAVE_TRANSFER_RECEIVE) {
    *out_number = start_pair(group, rank->communicator.rank, transfer);
    (void)pthread_mutex_unlock(&group->lock);
    return CLEAVE_OK;
  }
  size_t number = rank->next++;
  ck_assert_uint_lt(number, MAX_TRANSFERS);
  group->transfers[number][rank->communicator.rank] = *transfer;
  if (++group->started[number] == group->count) {
    finish(group, group->transfers[number]);
    group->transfer_count = number + 1;
    (void)pthread_cond_broadcast(&group->done);
  }
  (void)pthread_mutex_unlock(&group->lock);
  *out_number = number;
  return CLEAVE_OK;
}

static cleave_status_t wait_for(void *self, uint64_t number, cleave_transfer_times_t *out_times,
                                cleave_message_t *message) {
  group_t *group = ((rank_t *)self)->group;
  (void)message;
  (void)pthread_mutex_lock(&group->lock);
  while (number >= PAIR ? !group->pairs[number - PAIR].is_done : group->started[number] < group->count) {
    (void)pthread_cond_wait(&group->done, &group->lock);
  }
  (void)pthread_mutex_unlock(&group->lock);
  if (out_times != NULL) {
    *out_times = (cleave_transfer_times_t){.start_ns = number, .end_ns = number + 1};
  }
  return CLEAVE_OK;
}

static void end_all(void *self, int status) {
  (void)self;
  exit(status);
}

static void *run(void *self) {
  rank_t *rank = self;
  rank->body(&rank->communicator, rank->context);
  return NULL;
}

size_t thread_ranks_run(int32_t count, void (*body)(const cleave_communicator_t *communicator, void *context),
                        void *context) {
  static group_t group;
  rank_t ranks[THREAD_RANKS_MAX];
  memset(&group, 0, sizeof group);
  (void)pthread_mutex_init(&group.lock, NULL);
  (void)pthread_cond_init(&group.done, NULL);
  group.count = count;
  for (int32_t k = 0; k < count; k++) {
    ranks[k] = (rank_t){.communicator = {.size = sizeof ranks[k].communicator,
                                         .self = &ranks[k],
                                         .rank = k,
                                         .count = count,
                                         .start = start,
                                         .wait = wait_for,
                                         .abort = end_all},
                        .group = &group,
                        .body = body,
                        .context = context};
  }
  for (int32_t k = 0; k < count; k++) {
    ck_assert_int_eq(pthread_create(&ranks[k].thread, NULL, run, &ranks[k]), 0);
  }
  for (int32_t k = 0; k < count; k++) {
    ck_assert_int_eq(pthread_join(ranks[k].thread, NULL), 0);
  }
  (void)pthread_mutex_destroy(&group.lock);
  (void)pthread_cond_destroy(&group.done);
  return group.transfer_count;
}
