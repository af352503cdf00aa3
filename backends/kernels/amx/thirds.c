// SPDX-License-Identifier: Apache-2.0
// How the work is cut, and the thirds of x: a block's x is split once for all columns and places of the
// window. If weights are many and pixels few, threads share the columns, and x before that.
#include "kernels/amx/thirds.h"

#include "kernels/amx/amx.h"
#include "kernels/amx/thirds_block.h"

enum {
  MOST = 256, /* positions of a block, about */
  PAIR = 2 * KERNEL_THIRDS_PANEL,
  PARTS = 2 /* of the columns per thread */
};

bool kernel_thirds_runs_here(void) {
  return kernel_amx_runs_here();
}

static int64_t at_least_one(int64_t value) {
  return value < 1 ? 1 : value;
}

/* Where windows end behind the first place, in planes. */
static int64_t reach_of(const kernel_thirds_t *thirds, int d) {
  return (thirds->sides[d] - 1) / thirds->stride;
}

static thirds_block_t block_of(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut, int64_t index) {
  int64_t across = index % cut->across;
  int64_t down = index / cut->across % cut->down;
  thirds_block_t block = {.thirds = thirds,
                          .image = index / (cut->across * cut->down),
                          .line = down * cut->lines,
                          .pixel = across * cut->width,
                          .reach = {reach_of(thirds, 0), reach_of(thirds, 1)}};
  block.lines = thirds_least(cut->lines, thirds->y_lines - block.line);
  block.width = thirds_least(cut->width, thirds->y_width - block.pixel);
  block.planes[0] = thirds_least(thirds->stride, thirds->sides[0]);
  block.planes[1] = thirds_least(thirds->stride, thirds->sides[1]);
  block.plane = (block.lines + block.reach[0]) * thirds_line(&block);
  block.pixels = block.planes[0] * block.planes[1] * block.plane + block.reach[1] + THIRDS_ROWS;
  return block;
}

/* Sets the blocks, of at most so many positions if a line is not longer. */
static void cut_blocks(const kernel_thirds_t *thirds, int64_t most, int64_t threads,
                       kernel_thirds_cut_t *cut) {
  int64_t reach = reach_of(thirds, 1);
  cut->across = thirds_quotient_up(thirds->y_width + reach, most);
  if (cut->across > 1 && thirds->y_lines == 1) {
    cut->across = thirds_quotient_up(cut->across, threads) * threads;
  }
  cut->width = thirds_quotient_up(thirds->y_width, cut->across);
  cut->width = cut->across == 1 ? cut->width : thirds_quotient_up(cut->width, THIRDS_ROWS) * THIRDS_ROWS;
  cut->across = thirds_quotient_up(thirds->y_width, cut->width);
  cut->lines = at_least_one(most / (cut->width + reach));
  cut->down = thirds_quotient_up(thirds->y_lines, cut->lines);
  if (cut->down > 1) {
    cut->down = thirds_least(thirds_quotient_up(cut->down, threads) * threads, thirds->y_lines);
  }
  cut->lines = thirds_quotient_up(thirds->y_lines, cut->down);
  cut->down = thirds_quotient_up(thirds->y_lines, cut->lines);
}

static int64_t count_blocks(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut) {
  return thirds->images * cut->down * cut->across;
}

/* The part of the work that the busiest thread has. */
static double busiest_share(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut, int32_t threads) {
  int64_t units = cut->parts > 1 ? thirds_quotient_up(thirds->columns, PAIR) : count_blocks(thirds, cut);
  return (double)thirds_quotient_up(units, threads) / (double)units;
}

/* Nanoseconds until all threads are done. All read and split all weights, or else x that others have split.
 */
static double time_of(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut, int32_t threads) {
  const double start = 1200;
  const double step = 74; /* a tile of pixels, one of the depth, a pair of panels */
  const double x = 0.35;  /* a number, to split it, and to store it */
  const double y = 0.29;
  const double weight = 0.185;
  const double crowd = 1.13; /* how much longer weights take if all threads read them */
  const double wait = 4000;  /* for other threads */
  const double cross = 0.6;  /* a number of x that they have split */
  thirds_block_t block = block_of(thirds, cut, 0);
  double blocks = (double)count_blocks(thirds, cut);
  double tiles = blocks * (double)thirds_quotient_up(block.lines * thirds_line(&block), THIRDS_ROWS);
  double window = (double)(thirds->sides[0] * thirds->sides[1]);
  double pairs = (double)thirds_quotient_up(thirds->columns, PAIR);
  double numbers = blocks * (double)(block.pixels * thirds->depth);
  double results = (double)(thirds->images * thirds->y_lines * thirds->y_width * thirds->columns);
  double weights = weight * window * (double)(thirds->depth * thirds->columns);
  double products = step * tiles * window * (double)thirds_steps(thirds) * pairs + x * numbers + y * results;
  double share = busiest_share(thirds, cut, threads);
  if (threads == 1) {
    return start + products + weights;
  }
  return cut->parts == 1 ? start + products * share + crowd * weights + wait
                         : start + (products + weights) * share + 2 * wait + cross * numbers;
}

/* Threads have blocks of their own, or else the same blocks and columns of their own. */
static kernel_thirds_cut_t cut_rows(const kernel_thirds_t *thirds, int32_t threads) {
  kernel_thirds_cut_t cut = {.parts = 1};
  int64_t pixels = thirds->images * thirds->y_lines * (thirds->y_width + reach_of(thirds, 1));
  bool shares = thirds->images % threads != 0;
  cut_blocks(thirds, MOST, shares ? threads : 1, &cut);
  if (shares && count_blocks(thirds, &cut) < threads) {
    cut_blocks(thirds, thirds_least(at_least_one(pixels / threads), MOST), threads, &cut);
  }
  return cut;
}

static kernel_thirds_cut_t cut_columns(const kernel_thirds_t *thirds, int32_t threads) {
  kernel_thirds_cut_t cut = {.parts = 1};
  cut_blocks(thirds, MOST, 1, &cut);
  // Chunks of x go by once for each part.
  int64_t parts = thirds_chunks(thirds) > 1 ? threads : (int64_t)PARTS * threads;
  cut.parts = thirds_least(thirds_quotient_up(thirds->columns, PAIR), parts);
  return cut;
}

kernel_thirds_cut_t kernel_thirds_cut(const kernel_thirds_t *thirds, int32_t threads) {
  kernel_thirds_cut_t cut = cut_rows(thirds, threads);
  if (threads > 1) {
    kernel_thirds_cut_t columns = cut_columns(thirds, threads);
    if (time_of(thirds, &columns, threads) < time_of(thirds, &cut, threads)) {
      cut = columns;
    }
  }
  thirds_block_t first = block_of(thirds, &cut, 0);
  int64_t steps = thirds_steps(thirds);
  steps = cut.parts > 1 ? steps : thirds_quotient_up(steps, thirds_chunks(thirds));
  cut.block = (size_t)(steps * first.pixels * THIRDS * THIRDS_BYTES);
  return cut;
}

static double best_time(const kernel_thirds_t *thirds, int32_t threads) {
  const kernel_thirds_cut_t cut = kernel_thirds_cut(thirds, threads);
  return time_of(thirds, &cut, threads);
}

double kernel_thirds_time(const kernel_thirds_t *thirds) {
  double alone = best_time(thirds, 1);
  double together = 2 * best_time(thirds, 2);
  return alone > together ? alone : together;
}

bool kernel_thirds_pay(const kernel_thirds_t *thirds) {
  const double product = 0.0128;
  const double wait = 3000;
  double pixels = (double)(thirds->images * thirds->y_lines * thirds->y_width);
  double products = pixels * (double)(thirds->sides[0] * thirds->sides[1] * thirds->depth * thirds->columns);
  double plain = product * products;
  return best_time(thirds, 1) < plain && best_time(thirds, 2) < plain / 2 + wait;
}

size_t kernel_thirds_scratch(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut) {
  return cut->parts == 1 ? cut->block : (size_t)count_blocks(thirds, cut) * cut->block;
}

int64_t kernel_thirds_split_units(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut) {
  return count_blocks(thirds, cut) * thirds_steps(thirds);
}

int64_t kernel_thirds_units(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut) {
  return cut->parts == 1 ? count_blocks(thirds, cut) : cut->parts;
}

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
#include <string.h>

#include "kernels/amx/thirds_split.h"

/* Pixels of a plane's line, `x` that of the first one, which may lie before the image's line. */
static void split_line(const thirds_block_t *block, int64_t step, const float *line, int64_t x,
                       unsigned char *to) {
  const kernel_thirds_t *thirds = block->thirds;
  const int64_t left = thirds->depth - step * THIRDS_DEPTH;
  const __mmask16 first = thirds_mask(left);
  const __mmask16 second = thirds_mask(left - 16);
  const float *from = line + 2 * step * thirds->x.block;
  for (int64_t k = 0; k < thirds_line(block);
       k++, x += thirds->stride, to += (ptrdiff_t)THIRDS * THIRDS_BYTES) {
    if (x < 0 || x >= thirds->x_width) {
      memset(to, 0, (size_t)THIRDS * THIRDS_BYTES);
      continue;
    }
    const float *at = from + x * thirds->x.pixel;
    split(_mm512_maskz_loadu_ps(first, at), _mm512_maskz_loadu_ps(second, at + thirds->x.block), to,
          THIRDS_BYTES);
  }
}

/* Behind the planes the last tile reads what is there: those sums are no results. */
static void split_step(const thirds_block_t *block, int64_t step) {
  const kernel_thirds_t *thirds = block->thirds;
  const int64_t pixel_bytes = (int64_t)THIRDS * THIRDS_BYTES;
  const int64_t line_bytes = thirds_line(block) * pixel_bytes;
  const float *image = block->data->x + block->image * thirds->x.image;
  unsigned char *to = block->x + (step - block->x_step) * block->pixels * pixel_bytes;
  for (int64_t plane = 0; plane < block->planes[0] * block->planes[1]; plane++) {
    int64_t down = plane / block->planes[1];
    int64_t across = plane % block->planes[1];
    int64_t x = block->pixel * thirds->stride + across - thirds->left;
    for (int64_t k = 0; k < block->lines + block->reach[0]; k++, to += line_bytes) {
      int64_t line = (block->line + k) * thirds->stride + down - thirds->top;
      if (line < 0 || line >= thirds->x_lines) {
        memset(to, 0, (size_t)line_bytes);
      } else {
        split_line(block, step, image + line * thirds->x.line, x, to);
      }
    }
  }
}

void kernel_thirds_split(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                         const kernel_thirds_data_t *data, int64_t unit, void *scratch) {
  int64_t steps = thirds_steps(thirds);
  thirds_block_t block = block_of(thirds, cut, unit / steps);
  block.data = data;
  block.x = (unsigned char *)scratch + (size_t)(unit / steps) * cut->block;
  split_step(&block, unit % steps);
}

/* A block for all columns: each chunk is split and multiplied. */
static void run_block(const kernel_thirds_t *thirds, thirds_block_t *block) {
  for (int64_t index = 0; index < thirds_chunks(thirds); index++) {
    thirds_chunk_t chunk = thirds_chunk(thirds, index);
    block->x_step = chunk.begin;
    for (int64_t step = chunk.begin; step < chunk.end; step++) {
      split_step(block, step);
    }
    thirds_multiply(block, &chunk, 0, thirds_quotient_up(thirds->columns, PAIR));
  }
}

/* Some columns for all blocks, which are split. */
static void run_part(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut, thirds_block_t *block,
                     int64_t part) {
  int64_t pairs = thirds_quotient_up(thirds->columns, PAIR);
  for (int64_t index = 0; index < thirds_chunks(thirds); index++) {
    thirds_chunk_t chunk = thirds_chunk(thirds, index);
    thirds_multiply(block, &chunk, pairs * part / cut->parts, pairs * (part + 1) / cut->parts);
  }
}

void kernel_thirds_run(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                       const kernel_thirds_data_t *data, int64_t unit, void *scratch, void *work) {
  int64_t blocks = cut->parts == 1 ? 1 : count_blocks(thirds, cut);
  for (int64_t index = 0; index < blocks; index++) {
    thirds_block_t block = block_of(thirds, cut, cut->parts == 1 ? unit : index);
    block.data = data;
    block.x = (unsigned char *)scratch + (size_t)index * cut->block;
    block.work = work;
    if (cut->parts == 1) {
      run_block(thirds, &block);
    } else {
      run_part(thirds, cut, &block, unit);
    }
  }
}
#else
void kernel_thirds_split(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                         const kernel_thirds_data_t *data, int64_t unit, void *scratch) {
  (void)thirds;
  (void)cut;
  (void)data;
  (void)unit;
  (void)scratch;
}

void kernel_thirds_run(const kernel_thirds_t *thirds, const kernel_thirds_cut_t *cut,
                       const kernel_thirds_data_t *data, int64_t unit, void *scratch, void *work) {
  (void)thirds;
  (void)cut;
  (void)data;
  (void)unit;
  (void)scratch;
  (void)work;
}
#endif
