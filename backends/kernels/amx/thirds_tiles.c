// SPDX-License-Identifier: Apache-2.0
// Two tiles of rows by two of columns, a pair of panels, are the sums of four tiles; two more are of x and
// two of weights. A few steps of the depth, a part, are multiplied for all rows of the block, with the thirds
// of its weights in the first cache, and sums in a buffer in between. Beside the tiles, which leave the
// processor's vectors free, the weights of the next part are split, those after it asked for, and sums
// finished. If the depth is long, parts of it, chunks, whose x stays in the second cache, go one by one
// through y.
#include "kernels/amx/thirds_block.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
#include "kernels/amx/thirds_parts.h"
#include "kernels/amx/thirds_split.h"
#include "kernels/amx/tiles.h"
#include "kernels/matrix/panel.h"

enum {
  STEPS = THIRDS_STEPS,
  X_BYTES = THIRDS_X_BYTES,
  GROUPS = 6,            /* pairs of thirds, between which something else is done */
  TILE = 1024,           /* bytes of a tile */
  PAIR_BYTES = 2 * TILE, /* of a third of the weights of a step */
  STEP_BYTES = THIRDS * PAIR_BYTES,
  ROWS = THIRDS_ROWS,
  WIDTH = 2 * PANEL,     /* columns of sums */
  BUFFER = ROWS * WIDTH, /* sums of a tile of rows */
  TILES = THIRDS_POSITIONS / ROWS
};

/* Weights that are being split: groups of 16 rows of `to`, a panel of a step each. */
typedef struct splitting {
  const thirds_part_t *part;
  const thirds_part_t *after; /* is asked for meanwhile; or NULL */
  unsigned char *into;        /* [steps, thirds, panels, 16, 64] */
  int64_t group;              /* of a step and a panel, and how many there are */
  int64_t groups;
  int64_t row;   /* of the group, where these are: */
  int64_t depth; /* rows of weights from it on */
  const float *from;
  const float *ahead;
  unsigned char *to;
  int64_t at_once; /* rows */
} splitting_t;

/* Sums of a pair of panels to which all of a chunk is added: what is left to do with them. */
typedef struct rest {
  int64_t rows; /* that are left, all that there were, and in how many groups they are finished */
  int64_t all;
  int64_t groups;
  int64_t due;   /* rows times groups that were put off */
  int64_t pixel; /* of a line, of the first of them, where these are: */
  const float *sums;
  float *y;
  const float *added; /* or NULL */
  float *y_line;      /* of its line's first pixel */
  const float *added_line;
  const kernel_thirds_image_t *added_image;
  int64_t widths[2]; /* of the panels */
  vector_t bias[2];
  const kernel_activation_t *activation;
  bool acts; /* and goes through a function */
} rest_t;

typedef struct work {
  unsigned char weights[2][STEPS * STEP_BYTES];
  float sums[2][TILES * BUFFER];
} work_t;

_Static_assert(sizeof(work_t) <= KERNEL_THIRDS_WORK, "a unit's memory");

typedef struct state {
  const thirds_block_t *block;
  const thirds_chunk_t *chunk;
  unsigned char *ready; /* weights of the part that is multiplied, [steps, thirds, panels, 16, 64] */
  splitting_t splitting;
  rest_t rest;
  float *sums;   /* [tiles, 16, 32], where parts are added now */
  float *others; /* sums of the pair before */
} state_t;

/* Of rows. */
static int64_t count_tiles(const thirds_block_t *block) {
  return thirds_quotient_up(block->lines * thirds_line(block), ROWS);
}

/* Groups beside so many steps of all tiles. */
static int64_t count_groups(const thirds_block_t *block, int64_t steps) {
  return thirds_quotient_up(count_tiles(block), 2) * steps * GROUPS;
}

// ---- beside the tiles: weights ----

static void enter_group(splitting_t *splitting) {
  const thirds_part_t *part = splitting->part;
  const thirds_part_t *after = splitting->after;
  int64_t step = part->panels == 2 ? splitting->group / 2 : splitting->group;
  int64_t panel = splitting->group & (part->panels - 1);
  splitting->row = 0;
  splitting->depth = part->depth[step];
  splitting->from = part->w[step][panel];
  splitting->to = splitting->into + step * STEP_BYTES + panel * TILE;
  splitting->ahead = after != NULL && step < after->steps ? after->w[step][panel] : splitting->from;
}

static inline __m512 weights_row(const float *row, bool is_there) {
  return is_there ? _mm512_loadu_ps(row) : _mm512_setzero_ps();
}

/* Splits a few rows: rows k and k + 16 of a step are a pair. */
static inline void split_weights(splitting_t *splitting, int64_t count) {
  const ptrdiff_t apart = (ptrdiff_t)ROWS * PANEL;
  while (count > 0 && splitting->group < splitting->groups) {
    int64_t end = thirds_least(splitting->row + count, ROWS);
    bool is_whole = splitting->depth >= THIRDS_DEPTH;
    count -= end - splitting->row;
    for (int64_t row = splitting->row; row < end; row++) {
      const float *from = splitting->from + row * PANEL;
      __builtin_prefetch(splitting->ahead + row * PANEL, 0, 2);
      __builtin_prefetch(splitting->ahead + row * PANEL + apart, 0, 2);
      split(weights_row(from, is_whole || row < splitting->depth),
            weights_row(from + apart, is_whole || row + ROWS < splitting->depth),
            splitting->to + row * THIRDS_BYTES, PAIR_BYTES);
    }
    splitting->row = end;
    if (end == ROWS && ++splitting->group < splitting->groups) {
      enter_group(splitting);
    }
  }
}

/* Prepares splitting the weights of a part, or nothing if that is NULL, in so many groups. */
static void begin_splitting(const thirds_part_t *part, const thirds_part_t *after, unsigned char *into,
                            int64_t groups, splitting_t *splitting) {
  *splitting = (splitting_t){.part = part, .after = after, .into = into};
  if (part != NULL) {
    splitting->groups = part->steps * part->panels;
    splitting->at_once = thirds_quotient_up(splitting->groups * ROWS, groups);
    enter_group(splitting);
  }
}

// ---- beside the tiles: sums ----

static float *place_of(const state_t *state, const kernel_thirds_image_t *image, float *data, int64_t pair) {
  const thirds_block_t *block = state->block;
  return data + block->image * image->image + block->line * image->line + block->pixel * image->pixel +
         2 * pair * image->block;
}

/* Prepares finishing all sums of a part's pair of panels beside the next pair, which has as many groups. */
static void begin_rest(const state_t *state, const thirds_part_t *part, rest_t *rest) {
  static const kernel_activation_t none = {.low = -INFINITY, .high = INFINITY};
  const kernel_thirds_t *thirds = state->block->thirds;
  const kernel_thirds_data_t *data = state->block->data;
  int64_t rows = state->block->lines * thirds_line(state->block);
  *rest = (rest_t){.rows = rows,
                   .all = rows,
                   .groups = count_groups(state->block, part->pair_steps),
                   .sums = state->others,
                   .added_image = state->chunk->is_first ? &thirds->sum : &thirds->y,
                   .activation = state->chunk->is_last ? &thirds->activation : &none,
                   .acts = state->chunk->is_last && thirds->then != NULL};
  for (int v = 0; v < 2; v++) {
    int64_t column = (2 * part->pair + v) * PANEL;
    rest->widths[v] = thirds_least(thirds->columns - column, PANEL);
    rest->bias[v] = state->chunk->is_last && data->bias != NULL
                        ? load_some(data->bias + column, rest->widths[v])
                        : all(0);
  }
  rest->y_line = place_of(state, &thirds->y, data->y, part->pair);
  rest->y = rest->y_line;
  if (!state->chunk->is_first) {
    rest->added_line = rest->y_line;
  } else if (data->sum != NULL) {
    rest->added_line = place_of(state, &thirds->sum, (float *)(uintptr_t)data->sum, part->pair);
  }
  rest->added = rest->added_line;
}

static inline void next_row(const state_t *state, rest_t *rest) {
  const kernel_thirds_image_t *image = &state->block->thirds->y;
  bool is_last = rest->pixel + 1 == thirds_line(state->block);
  rest->rows--;
  rest->sums += WIDTH;
  rest->pixel = is_last ? 0 : rest->pixel + 1;
  rest->y_line += is_last ? image->line : 0;
  rest->y = is_last ? rest->y_line : rest->y + image->pixel;
  if (rest->added != NULL) {
    rest->added_line += is_last ? rest->added_image->line : 0;
    rest->added = is_last ? rest->added_line : rest->added + rest->added_image->pixel;
  }
}

static inline void add_up(const rest_t *rest, vector_t out[2]) {
#pragma GCC unroll 2
  for (int v = 0; v < 2; v++) {
    out[v] = load(rest->sums + (ptrdiff_t)v * PANEL) + rest->bias[v];
    if (rest->added != NULL) {
      out[v] += load_some(rest->added + v * rest->added_image->block, rest->widths[v]);
    }
  }
}

static inline void store_sums(const state_t *state, const rest_t *rest, const vector_t values[2]) {
  const kernel_thirds_t *thirds = state->block->thirds;
  finish(rest->activation, rest->y, values[0], rest->widths[0], thirds->is_filled);
  if (rest->widths[1] > 0) {
    finish(rest->activation, rest->y + thirds->y.block, values[1], rest->widths[1], thirds->is_filled);
  }
}

/* The next row, unless its position is behind the pixels of a line. */
static inline void finish_row(const state_t *state, rest_t *rest) {
  if (rest->pixel < state->block->width) {
    vector_t values[2];
    add_up(rest, values);
    if (rest->acts) {
      const kernel_thirds_t *thirds = state->block->thirds;
      thirds->then(values, values, WIDTH, thirds->alpha, thirds->beta);
    }
    store_sums(state, rest, values);
  }
  next_row(state, rest);
}

static void finish_all(const state_t *state, rest_t *rest) {
  while (rest->rows > 0) {
    finish_row(state, rest);
  }
}

// ---- tiles ----

#define INLINE static inline __attribute__((always_inline))

/* Rows of x in tiles 4 and 5, weights in 6 and 7, sums in 0 to 3. */
INLINE void load_x(const unsigned char *x, const bool rows) {
  _tile_stream_loadd(4, x, X_BYTES);
  if (rows) {
    _tile_stream_loadd(5, x + (ptrdiff_t)ROWS * X_BYTES, X_BYTES);
  }
}

INLINE void load_weights(const unsigned char *w, const bool columns) {
  _tile_loadd(6, w, THIRDS_BYTES);
  if (columns) {
    _tile_loadd(7, w + TILE, THIRDS_BYTES);
  }
}

INLINE void multiply(const bool rows, const bool columns) {
  _tile_dpbf16ps(0, 4, 6);
  if (columns) {
    _tile_dpbf16ps(1, 4, 7);
  }
  if (rows) {
    _tile_dpbf16ps(2, 5, 6);
    if (columns) {
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

INLINE void beside(state_t *state) {
  rest_t *rest = &state->rest;
  if (state->splitting.group < state->splitting.groups) {
    split_weights(&state->splitting, state->splitting.at_once);
  }
  for (rest->due += rest->all; rest->rows > 0 && rest->due >= rest->groups; rest->due -= rest->groups) {
    finish_row(state, rest);
  }
}

/* The six pairs of thirds of a step, the smallest ones first. */
INLINE void add_step(state_t *state, const unsigned char *x, const unsigned char *w, const bool rows,
                     const bool columns) {
  enum { SECOND = THIRDS_BYTES, THIRD = 2 * THIRDS_BYTES };
  load_x(x + THIRD, rows);
  load_weights(w, columns);
  multiply(rows, columns);
  beside(state);
  load_x(x + SECOND, rows);
  multiply(rows, columns);
  beside(state);
  load_weights(w + PAIR_BYTES, columns);
  multiply(rows, columns);
  beside(state);
  load_x(x, rows);
  multiply(rows, columns);
  beside(state);
  load_weights(w + (ptrdiff_t)2 * PAIR_BYTES, columns);
  multiply(rows, columns);
  beside(state);
  load_weights(w, columns);
  multiply(rows, columns);
  beside(state);
}

/* A part for the tile of rows, and for the one behind it if there are two. */
INLINE void add_tiles(state_t *state, const thirds_part_t *part, int64_t tile, const bool rows,
                      const bool columns) {
  const size_t line = WIDTH * sizeof(float);
  const unsigned char *x = state->block->x + tile * ROWS * X_BYTES;
  float *sums = state->sums + tile * BUFFER;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (!part->is_first) {
    _tile_loadd(0, sums, line);
    _tile_loadd(1, sums + PANEL, line);
    if (rows) {
      _tile_loadd(2, sums + BUFFER, line);
      _tile_loadd(3, sums + BUFFER + PANEL, line);
    }
  }
  for (int64_t k = 0; k < part->steps; k++) {
    add_step(state, x + part->x[k], state->ready + k * STEP_BYTES, rows, columns);
  }
  _tile_stored(0, sums, line);
  _tile_stored(1, sums + PANEL, line);
  if (rows) {
    _tile_stored(2, sums + BUFFER, line);
    _tile_stored(3, sums + BUFFER + PANEL, line);
  }
}

static void add_part(state_t *state, const thirds_part_t *part) {
  int64_t tiles = count_tiles(state->block);
  for (int64_t tile = 0; tile < tiles; tile += 2) {
    int64_t rows = thirds_least(tiles - tile, 2);
    if (rows == 2 && part->panels == 2) {
      add_tiles(state, part, tile, true, true);
    } else if (rows == 2) {
      add_tiles(state, part, tile, true, false);
    } else if (part->panels == 2) {
      add_tiles(state, part, tile, false, true);
    } else {
      add_tiles(state, part, tile, false, false);
    }
  }
}

/* The sums are complete: what is left to do with them is done beside the next pair. */
static void end_pair(state_t *state, const thirds_part_t *part) {
  float *sums = state->sums;
  finish_all(state, &state->rest);
  state->sums = state->others;
  state->others = sums;
  begin_rest(state, part, &state->rest);
}

void thirds_multiply(const thirds_block_t *block, const thirds_chunk_t *chunk, int64_t first, int64_t last) {
  work_t *work = (work_t *)(void *)block->work;
  state_t state = {.block = block, .chunk = chunk, .sums = work->sums[0], .others = work->sums[1]};
  thirds_cursor_t cursor = thirds_begin(block, chunk, first, last);
  thirds_part_t parts[3]; /* the one at hand, and two more */
  bool are_there[3] = {thirds_take(&cursor, &parts[0]), thirds_take(&cursor, &parts[1])};
  begin_splitting(&parts[0], NULL, work->weights[0], 1, &state.splitting);
  split_weights(&state.splitting, state.splitting.at_once);
  begin_tiles();
  for (int at = 0; are_there[at % 3]; at++) {
    const thirds_part_t *part = &parts[at % 3];
    int next = (at + 1) % 3;
    int after = (at + 2) % 3;
    are_there[after] = are_there[next] && thirds_take(&cursor, &parts[after]);
    state.ready = work->weights[at % 2];
    begin_splitting(are_there[next] ? &parts[next] : NULL, are_there[after] ? &parts[after] : NULL,
                    work->weights[(at + 1) % 2], count_groups(block, part->steps), &state.splitting);
    add_part(&state, part);
    if (part->is_last) {
      end_pair(&state, part);
    }
  }
  finish_all(&state, &state.rest);
  _tile_release();
}
#else
void thirds_multiply(const thirds_block_t *block, const thirds_chunk_t *chunk, int64_t first, int64_t last) {
  (void)block;
  (void)chunk;
  (void)first;
  (void)last;
}
#endif
