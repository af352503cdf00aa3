// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of float32 by AMX, on the threads of the host.
#include "onednn/loops/loops.h"
#include "onednn/loops/shares.h"

typedef struct body {
  const onednn_thirds_t *step;
  const kernel_thirds_data_t *data;
  unsigned char *work;    /* of the slots, */
  unsigned char *scratch; /* and thirds of x */
  onednn_shares_t shares;
} body_t;

size_t onednn_thirds_cut(onednn_thirds_t *step, int32_t threads) {
  step->cut = kernel_thirds_cut(&step->thirds, threads);
  int64_t units = kernel_thirds_units(&step->thirds, &step->cut);
  step->slots = units < threads ? units : threads;
  step->slots = step->slots < ONEDNN_MAX_SHARES ? step->slots : ONEDNN_MAX_SHARES;
  size_t bytes = kernel_thirds_scratch(&step->thirds, &step->cut);
  size_t slots = (size_t)step->slots;
  return slots * KERNEL_THIRDS_WORK + (step->cut.parts == 1 ? bytes * slots : bytes);
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
  body_t body = {.step = step, .data = data, .work = scratch};
  body.scratch = body.work + (size_t)step->slots * KERNEL_THIRDS_WORK;
  if (step->cut.parts > 1) {
    crew->host->parallel_for(crew->threads, kernel_thirds_split_units(&step->thirds, &step->cut), 1,
                             split_units, &body);
  }
  onednn_shares_init(&body.shares, kernel_thirds_units(&step->thirds, &step->cut), step->slots);
  crew->host->parallel_for(crew->threads, body.shares.count, 1, run_slots, &body);
}
