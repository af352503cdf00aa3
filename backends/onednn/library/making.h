// SPDX-License-Identifier: Apache-2.0
/*
 * Primitives, made beside the planning that describes them. oneDNN generates the code of a primitive when it
 * is made, which takes as long as all the rest of a program whose weights are packed already: threads of
 * their own make them in the order in which they are described, and the planning thread helps when it has
 * described the last.
 */
#ifndef CLEAVE_ONEDNN_MAKING_H
#define CLEAVE_ONEDNN_MAKING_H

#include <pthread.h>

#include "onednn/library/library.h"

enum { ONEDNN_MAKERS = 3 }; /* threads at most: more wait for each other in oneDNN */

typedef struct onednn_made {
  dnnl_primitive_desc_t description; /* owned until it is made */
  dnnl_primitive_t primitive;        /* NULL: not yet, or it failed, or it was taken */
  const char *what;                  /* for messages; borrowed */
  int32_t threads;                   /* that will run it */
} onednn_made_t;

typedef struct onednn_making {
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t added;
  onednn_made_t *items;
  uint32_t count;
  uint32_t capacity;
  uint32_t next; /* that nobody makes yet */
  bool is_over;  /* nothing will be added */
  dnnl_status_t status;
  const char *failed; /* what the first failure was about */
  /* Only the planning thread uses these. */
  pthread_t makers[ONEDNN_MAKERS];
  uint32_t maker_count;
  bool is_started;
} onednn_making_t;

/* With up to `makers` threads; 0: the planning thread makes all at the end. Whatever is started must be
 * stopped. */
void onednn_making_start(onednn_making_t *making, uint32_t makers);

/* Takes the description over; `what` must outlive the making. The number of the primitive through *out_index;
 * false without memory. */
bool onednn_making_add(onednn_making_t *making, dnnl_primitive_desc_t description, int32_t threads,
                       const char *what, uint32_t *out_index);

/* Waits until all are made. Not dnnl_success: the first status that was not, and `failed` says what of.
 * Leaves the number of threads of the calling one as that of the last primitive which it made. */
dnnl_status_t onednn_making_finish(onednn_making_t *making);

/* Hands a primitive over, once they are all made. */
dnnl_primitive_t onednn_making_take(onednn_making_t *making, uint32_t index);

/* Ends the threads, and destroys what nobody has taken. One that was not started is a no-op. */
void onednn_making_stop(onednn_making_t *making);

#endif /* CLEAVE_ONEDNN_MAKING_H */
