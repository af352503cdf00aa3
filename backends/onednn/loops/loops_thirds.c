// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of float32 by AMX, on the threads of the host.
#include "onednn/loops/loops.h"
#include "onednn/loops/shares.h"

typedef struct body {
  const onednn_thirds_t *step;
  const kernel_thirds_data_t *data;
  unsigned char *scratch; /* thirds of x, */
  unsigned char *work;    /* and memory of the slots */
  onednn_shares_t shares;
} body_t;

/* Of all thirds of x that are there at a time. */
static size_t thirds_bytes(const onednn_thirds_t *step) {
  size_t bytes = kernel_thirds_scratch(&step->thirds, &step->cut);
  return step->cut.parts == 1 ? bytes * (size_t)step->slots : bytes;
}

size_t onednn_thirds_cut(onednn_thirds_t *step, int32_t threads) {
  step->cut = kernel_thirds_cut(&step->thirds, threads);
  int64_t units = kernel_thirds_units(&step->thirds, &step->cut);
  step->slots = units < threads ? units : threads;
  step->slots = step->slots < ONEDNN_MAX_SHARES ? step->slots : ONEDNN_MAX_SHARES;
  return thirds_bytes(step) + (size_t)step->slots * KERNEL_THIRDS_WORK;
}

bool onednn_thirds_leave(const onednn_thirds_t *step, const onednn_thirds_t *next) {
  const kernel_thirds_t *a = &step->thirds;
  const kernel_thirds_t *b = &next->thirds;
  const kernel_thirds_cut_t *left = &step->cut;
  const kernel_thirds_cut_t *right = &next->cut;
  bool is_same = a->images == b->images && a->depth == b->depth && a->x_lines == b->x_lines &&
                 a->x_width == b->x_width && a->y_lines == b->y_lines && a->y_width == b->y_width &&
                 a->sides[0] == b->sides[0] && a->sides[1] == b->sides[1] && a->stride == b->stride &&
                 a->top == b->top && a->left == b->left;
  return is_same && left->parts > 1 && right->parts > 1 && left->lines == right->lines &&
         left->width == right->width;
}

static void split_units(void *opaque, int64_t begin, int64_t end) {
  body_t *body = opaque;
  for (; begin < end; begin++) {
    kernel_thirds_split(&body->step->thirds, &body->step->cut, body->data, begin, body->scratch);
  }
}

static void run_slots(void *opaque, int64_t begin, int64_t end) {
  body_t *body = opaque;
  const onednn_thirds_t *step = body->step;
  for (int64_t slot = begin; slot < end; slot++) {
    unsigned char *scratch = body->scratch + (step->cut.parts == 1 ? (size_t)slot * step->cut.block : 0);
    for (int64_t unit = onednn_shares_take(&body->shares, slot); unit >= 0;
         unit = onednn_shares_take(&body->shares, slot)) {
      kernel_thirds_run(&step->thirds, &step->cut, body->data, unit, scratch,
                        body->work + (size_t)slot * KERNEL_THIRDS_WORK);
    }
  }
}

void onednn_thirds_run(const onednn_thirds_t *step, const onednn_crew_t *crew,
                       const kernel_thirds_data_t *data, void *scratch) {
  body_t body = {.step = step, .data = data, .scratch = scratch};
  body.work = body.scratch + thirds_bytes(step);
  if (step->cut.parts > 1 && !step->is_split) {
    crew->host->parallel_for(crew->threads, kernel_thirds_split_units(&step->thirds, &step->cut), 1,
                             split_units, &body);
  }
  onednn_shares_init(&body.shares, kernel_thirds_units(&step->thirds, &step->cut), step->slots);
  crew->host->parallel_for(crew->threads, body.shares.count, 1, run_slots, &body);
}
