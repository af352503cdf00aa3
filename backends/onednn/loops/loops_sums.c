// SPDX-License-Identifier: Apache-2.0
// Sums over any dimensions, for which oneDNN has its reference implementation alone. A thread owns whole
// results, or one of PARTS parts of the only result, so that results do not depend on the number of threads.
// Short blocks add up in float, blocks in double.
#include "onednn/loops/loops.h"

enum { SUM_LANES = 32, SUM_BLOCK = 512, SUM_COLUMNS = 256, SUM_GRAIN = 32768, PARTS = 64 };

typedef struct sum_body {
  const onednn_loop_t *loop;
  const float *x;
  float *y;
  int64_t rows;         // of a result: combinations of the reduced dimensions before the last
  int64_t row;          // the last dimension
  bool keeps_last;      // results lie along the last dimension
  bool squares;         // of the elements
  double scale;         // what sums are multiplied by
  double parts[PARTS];  // of the only result
} sum_body_t;

static inline double block_sum(const float *x, int64_t count, bool squares) {
  float lanes[SUM_LANES] = {0};
  int64_t whole = count / SUM_LANES * SUM_LANES;
  for (int64_t k = 0; k < whole; k += SUM_LANES) {
    for (int j = 0; j < SUM_LANES; j++) {
      lanes[j] += squares ? x[k + j] * x[k + j] : x[k + j];
    }
  }
  double sum = 0;
  for (int j = 0; j < SUM_LANES; j++) {
    sum += (double)lanes[j];
  }
  for (int64_t k = whole; k < count; k++) {
    sum += (double)x[k] * (squares ? (double)x[k] : 1.0);
  }
  return sum;
}

ONEDNN_VECTOR static double row_sum(const float *x, int64_t count, bool squares) {
  double sum = 0;
  for (int64_t k = 0; k < count; k += SUM_BLOCK) {
    int64_t left = count - k < SUM_BLOCK ? count - k : SUM_BLOCK;
    sum += squares ? block_sum(x + k, left, true) : block_sum(x + k, left, false);
  }
  return sum;
}

ONEDNN_VECTOR static void add_row(const float *restrict x, double *restrict sums, int64_t count,
                                  bool squares) {
  for (int64_t k = 0; k < count; k++) {
    double element = (double)x[k];
    sums[k] += squares ? element * element : element;
  }
}

// The offset of element `index` among the kept dimensions before the last, or among the reduced ones.
static int64_t offset_of(const onednn_loop_t *loop, int64_t index, bool kept) {
  int64_t step = loop->dims[loop->rank - 1];
  int64_t offset = 0;
  for (int32_t d = loop->rank - 1; d-- > 0;) {
    if ((loop->strides[1][d] != 0) == kept) {
      offset += index % loop->dims[d] * step;
      index /= loop->dims[d];
    }
    step *= loop->dims[d];
  }
  return offset;
}

static void sum_rows(void *opaque, int64_t begin, int64_t end) {
  const sum_body_t *body = opaque;
  for (int64_t k = begin; k < end; k++) {
    const float *x = body->x + offset_of(body->loop, k, true);
    double sum = 0;
    for (int64_t r = 0; r < body->rows; r++) {
      sum += row_sum(x + offset_of(body->loop, r, false), body->row, body->squares);
    }
    body->y[k] = (float)(sum * body->scale);
  }
}

// Results in blocks of columns.
static void sum_columns(void *opaque, int64_t begin, int64_t end) {
  const sum_body_t *body = opaque;
  int64_t blocks = (body->row + SUM_COLUMNS - 1) / SUM_COLUMNS;
  for (int64_t k = begin; k < end; k++) {
    double sums[SUM_COLUMNS] = {0};
    int64_t first = k % blocks * SUM_COLUMNS;
    int64_t count = body->row - first < SUM_COLUMNS ? body->row - first : SUM_COLUMNS;
    const float *x = body->x + offset_of(body->loop, k / blocks, true) + first;
    float *y = body->y + k / blocks * body->row + first;
    for (int64_t r = 0; r < body->rows; r++) {
      add_row(x + offset_of(body->loop, r, false), sums, count, body->squares);
    }
    for (int64_t j = 0; j < count; j++) {
      y[j] = (float)(sums[j] * body->scale);
    }
  }
}

static void sum_parts(void *opaque, int64_t begin, int64_t end) {
  sum_body_t *body = opaque;
  for (int64_t k = begin; k < end; k++) {
    int64_t first = body->row * k / PARTS;
    body->parts[k] = row_sum(body->x + first, body->row * (k + 1) / PARTS - first, body->squares);
  }
}

bool onednn_loop_sum(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  int32_t last = loop->rank - 1;
  sum_body_t body = {.loop = loop,
                     .x = data[0],
                     .y = data[1],
                     .rows = 1,
                     .row = loop->dims[last],
                     .keeps_last = loop->strides[1][last] != 0,
                     .squares = loop->algorithm == dnnl_reduction_norm_lp_power_p_sum,
                     .scale = 1.0 / (double)loop->alpha};
  int64_t results = 1;
  for (int32_t d = 0; d < last; d++) {
    results *= loop->strides[1][d] != 0 ? loop->dims[d] : 1;
    body.rows *= loop->strides[1][d] != 0 ? 1 : loop->dims[d];
  }
  if (body.keeps_last) {
    int64_t units = results * ((body.row + SUM_COLUMNS - 1) / SUM_COLUMNS);
    int64_t work = body.rows * (body.row < SUM_COLUMNS ? body.row : SUM_COLUMNS);
    crew->host->parallel_for(crew->threads, units, SUM_GRAIN / (work + 1) + 1, sum_columns, &body);
  } else if (results > 1 || body.rows > 1) {
    int64_t work = body.rows * body.row;
    crew->host->parallel_for(crew->threads, results, SUM_GRAIN / (work + 1) + 1, sum_rows, &body);
  } else {
    double sum = 0;
    crew->host->parallel_for(crew->threads, PARTS, SUM_GRAIN / (body.row / PARTS + 1) + 1, sum_parts, &body);
    for (int k = 0; k < PARTS; k++) {
      sum += body.parts[k];
    }
    body.y[0] = (float)(sum * body.scale);
  }
  return true;
}
