// SPDX-License-Identifier: Apache-2.0
#include "kernels/amx/thirds_parts.h"

/* Where x of the cursor's place of the window lies. */
static int64_t place_of_window(const thirds_cursor_t *cursor) {
  const thirds_block_t *block = cursor->block;
  const int64_t stride = block->thirds->stride;
  int64_t plane = cursor->down % stride * block->planes[1] + cursor->across % stride;
  int64_t position = cursor->down / stride * thirds_line(block) + cursor->across / stride;
  return (plane * block->plane + position) * THIRDS_X_BYTES;
}

/* To the first place of the window. */
static void begin_pair(thirds_cursor_t *cursor) {
  const kernel_thirds_t *thirds = cursor->block->thirds;
  cursor->step = cursor->chunk.begin;
  cursor->down = 0;
  cursor->across = 0;
  cursor->place_x = 0;
  cursor->before = 0;
  cursor->steps = thirds->sides[0] * thirds->sides[1] * (cursor->chunk.end - cursor->chunk.begin);
  cursor->left = cursor->steps;
  cursor->parts = thirds_quotient_up(cursor->left, THIRDS_STEPS);
}

static void next_step(thirds_cursor_t *cursor) {
  if (++cursor->step < cursor->chunk.end) {
    return;
  }
  cursor->step = cursor->chunk.begin;
  if (++cursor->across == cursor->block->thirds->sides[1]) {
    cursor->across = 0;
    cursor->down++;
  }
  cursor->place_x = place_of_window(cursor);
  cursor->before += cursor->w_place;
}

thirds_cursor_t thirds_begin(const thirds_block_t *block, const thirds_chunk_t *chunk, int64_t first,
                             int64_t last) {
  const kernel_thirds_t *thirds = block->thirds;
  thirds_cursor_t cursor = {
      .block = block, .chunk = *chunk, .w_place = thirds->depth * THIRDS_PANEL, .pair = first, .last = last};
  cursor.w_panel = thirds->sides[0] * thirds->sides[1] * cursor.w_place;
  begin_pair(&cursor);
  return cursor;
}

bool thirds_take(thirds_cursor_t *cursor, thirds_part_t *part) {
  const thirds_block_t *block = cursor->block;
  const kernel_thirds_t *thirds = block->thirds;
  if (cursor->pair == cursor->last) {
    return false;
  }
  *part = (thirds_part_t){.steps = cursor->left / cursor->parts, /* so that parts differ by one at most */
                          .pair = cursor->pair,
                          .pair_steps = cursor->steps,
                          .is_first = cursor->left == cursor->steps,
                          .is_last = cursor->parts == 1};
  part->panels = thirds_least(thirds_quotient_up(thirds->columns, THIRDS_PANEL) - 2 * part->pair, 2);
  const float *weights = block->data->weights + 2 * part->pair * cursor->w_panel;
  for (int64_t k = 0; k < part->steps; k++, next_step(cursor)) {
    part->x[k] = (cursor->step - block->x_step) * block->pixels * THIRDS_X_BYTES + cursor->place_x;
    part->w[k][0] = weights + cursor->before + cursor->step * THIRDS_DEPTH * THIRDS_PANEL;
    part->w[k][1] = part->w[k][0] + (part->panels - 1) * cursor->w_panel;
    part->depth[k] = thirds->depth - cursor->step * THIRDS_DEPTH;
  }
  cursor->left -= part->steps;
  if (--cursor->parts > 0) {
    return true;
  }
  cursor->pair++;
  begin_pair(cursor);
  return true;
}
