// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression (opset 11). Per batch and class, candidates leave a heap in the order of their scores
// (equal ones by index) and stay if they overlap none that stayed before. How many do is known only then: the
// output is sized at the end.
#include <math.h>

#include "cpu/common/nn.h"

typedef struct boxes_state {
  bool center_format;
} boxes_state_t;

typedef struct boxes {
  const boxes_state_t *state;
  const cpu_tensor_t *boxes;   // [batches, count, 4]
  const cpu_tensor_t *scores;  // [batches, classes, count]
  int64_t classes;
  int64_t count;
  int64_t limit;  // boxes to keep per class
  double overlap;
  bool has_threshold;
  double threshold;
  int64_t *heaps;  // [batches * classes, count]: candidates, then those kept at the front
  int64_t *kept;   // [batches * classes]
} boxes_t;

typedef struct box {
  double low[2];
  double high[2];
} box_t;

static box_t read_box(const boxes_t *c, int64_t batch, int64_t index) {
  double v[4];
  for (int k = 0; k < 4; k++) {
    v[k] = cpu_read_float(c->boxes, (batch * c->count + index) * 4 + k);
  }
  box_t box;
  for (int axis = 0; axis < 2; axis++) {
    double from = c->state->center_format ? v[axis] - v[axis + 2] / 2 : v[axis];
    double to = c->state->center_format ? v[axis] + v[axis + 2] / 2 : v[axis + 2];
    box.low[axis] = fmin(from, to);
    box.high[axis] = fmax(from, to);
  }
  return box;
}

static double area(const box_t *box) {
  return (box->high[0] - box->low[0]) * (box->high[1] - box->low[1]);
}

static bool overlaps(const box_t *a, const box_t *b, double limit) {
  double common = 1;
  for (int axis = 0; axis < 2; axis++) {
    common *= fmax(fmin(a->high[axis], b->high[axis]) - fmax(a->low[axis], b->low[axis]), 0);
  }
  double all = area(a) + area(b) - common;
  return common > 0 && all > 0 && common / all > limit;
}

static bool ranks_before(const boxes_t *c, int64_t row, int64_t a, int64_t b) {
  double left = cpu_read_float(c->scores, row * c->count + a);
  double right = cpu_read_float(c->scores, row * c->count + b);
  return left > right || (!(left < right) && a < b);
}

static void sift_down(const boxes_t *c, int64_t row, int64_t *heap, int64_t count, int64_t at) {
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) {
      return;
    }
    if (child + 1 < count && ranks_before(c, row, heap[child + 1], heap[child])) {
      child++;
    }
    if (!ranks_before(c, row, heap[child], heap[at])) {
      return;
    }
    int64_t moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
    at = child;
  }
}

// Sorts candidates best first: the heap gives them best first, so each goes behind the shrinking heap and the
// order is turned round at the end.
static void sort_candidates(const boxes_t *c, int64_t row, int64_t *heap, int64_t count) {
  for (int64_t i = count / 2 - 1; i >= 0; i--) {
    sift_down(c, row, heap, count, i);
  }
  for (int64_t left = count - 1; left > 0; left--) {
    int64_t best = heap[0];
    heap[0] = heap[left];
    heap[left] = best;
    sift_down(c, row, heap, left, 0);
  }
  for (int64_t i = 0; i < count / 2; i++) {
    int64_t moved = heap[i];
    heap[i] = heap[count - 1 - i];
    heap[count - 1 - i] = moved;
  }
}

// Items are (batch, class).
static void select_rows(void *context, int64_t begin, int64_t end) {
  const boxes_t *c = context;
  for (int64_t row = begin; row < end; row++) {
    int64_t *list = c->heaps + row * c->count;
    int64_t candidates = 0;
    for (int64_t k = 0; k < c->count; k++) {
      double score = cpu_read_float(c->scores, row * c->count + k);
      if (!isnan(score) && (!c->has_threshold || score > c->threshold)) {
        list[candidates++] = k;
      }
    }
    sort_candidates(c, row, list, candidates);
    int64_t kept = 0;
    for (int64_t k = 0; k < candidates && kept < c->limit; k++) {
      box_t box = read_box(c, row / c->classes, list[k]);
      bool stays = true;
      for (int64_t other = 0; stays && other < kept; other++) {
        box_t winner = read_box(c, row / c->classes, list[other]);
        stays = !overlaps(&box, &winner, c->overlap);
      }
      if (stays) {
        list[kept++] = list[k];
      }
    }
    c->kept[row] = kept;
  }
}

static bool shapes_fit(const cpu_tensor_t *boxes, const cpu_tensor_t *scores) {
  return boxes->rank == 3 && scores->rank == 3 && boxes->dims[2] == 4 && boxes->dims[0] == scores->dims[0] &&
         boxes->dims[1] == scores->dims[2];
}

static size_t lay_out(const cpu_call_t *call, unsigned char *base, boxes_t *c) {
  cpu_carver_t carver = {base, 0};
  int64_t rows = call->inputs[1]->dims[0] * call->inputs[1]->dims[1];
  c->heaps = cpu_nn_carve(&carver, call->inputs[1]->count, sizeof(int64_t));
  c->kept = cpu_nn_carve(&carver, rows, sizeof(int64_t));
  return carver.used;
}

static size_t boxes_scratch(const cpu_call_t *call) {
  boxes_t c;
  return shapes_fit(call->inputs[0], call->inputs[1]) ? lay_out(call, NULL, &c) : 0;
}

static cleave_status_t read_scalar(const cpu_call_t *call, uint32_t index, const char *name, double fallback,
                                   double *out_value, cleave_message_t *message) {
  const cpu_tensor_t *tensor = cpu_input(call, index);
  *out_value = fallback;
  if (tensor == NULL) {
    return CLEAVE_OK;
  }
  CPU_TRY(cpu_nn_check_count(name, tensor, 1, message));
  *out_value = cpu_read_float(tensor, 0);
  return CLEAVE_OK;
}

static cleave_status_t write_selected(const cpu_call_t *call, const boxes_t *c, int64_t rows,
                                      cleave_message_t *message) {
  int64_t total = 0;
  for (int64_t row = 0; row < rows; row++) {
    total += c->kept[row];
  }
  const int64_t dims[] = {total, 3};
  CPU_TRY(cpu_output_shape(call, 0, 2, dims, message));
  int64_t *to = call->outputs[0]->data;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t k = 0; k < c->kept[row]; k++) {
      *to++ = row / c->classes;
      *to++ = row % c->classes;
      *to++ = c->heaps[row * c->count + k];
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t boxes_run(const cpu_call_t *call, cleave_message_t *message) {
  boxes_t c = {.state = call->state, .boxes = call->inputs[0], .scores = call->inputs[1]};
  if (!shapes_fit(c.boxes, c.scores)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "boxes and scores are not [N, B, 4] and [N, C, B]");
  }
  c.classes = c.scores->dims[1];
  c.count = c.boxes->dims[1];
  double limit = 0;
  CPU_TRY(read_scalar(call, 2, "max_output_boxes_per_class", 0, &limit, message));
  CPU_TRY(read_scalar(call, 3, "iou_threshold", 0, &c.overlap, message));
  CPU_TRY(read_scalar(call, 4, "score_threshold", 0, &c.threshold, message));
  c.has_threshold = cpu_input(call, 4) != NULL;
  c.limit = limit > 0 ? (limit < (double)c.count ? (int64_t)limit : c.count) : 0;
  (void)lay_out(call, call->scratch, &c);
  int64_t rows = c.scores->dims[0] * c.classes;
  cpu_parallel(call, rows, 1, select_rows, &c);
  return write_selected(call, &c, rows, message);
}

static cleave_status_t boxes_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  boxes_state_t *boxes = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  boxes->center_format = cleave_view_int(prepare->node, "center_point_box", 0) != 0;
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_vision_boxes[] = {
    CPU_KERNEL("NonMaxSuppression", 2, .state_size = sizeof(boxes_state_t), .prepare = boxes_prepare,
               .scratch = boxes_scratch, .run = boxes_run),
    {.op = NULL},
};
