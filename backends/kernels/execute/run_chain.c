// SPDX-License-Identifier: Apache-2.0
// Runs a chain over a tile: links are made of its steps with the addresses of the tile. If a group has
// several rows and a link takes a value per row, the chain goes row by row.
#include <string.h>

#include "kernels/execute/worker.h"

enum { MAX_LINKS = 32 * 3 + 2 + 2 * KERNEL_MAX_TENSORS };

typedef struct builder {
  kernel_worker_t *worker;
  const kernel_chain_loops_t *loops;
  kernel_link_t *links;
  uint32_t count;
  kernel_chain_run_t run; /* what goes through them */
  bool has_rows;          /* a link takes a value per row, or one row for all */
  int64_t *moves;         /* per value: bytes from row to row, for links that are made once; otherwise NULL */
  bool has_failed;
} builder_t;

/* An operand of a link: a tile, or one element, which moves from row to row where `row_step` says so. */
typedef struct operand {
  unsigned char *data;
  int64_t row_step;
  bool is_tile;
  bool is_fixed; /* the same element for all rows */
} operand_t;

static bool is_slot(const kernel_worker_t *worker, kernel_cell_t cell) {
  uintptr_t at = (uintptr_t)cell.data;
  uintptr_t first = (uintptr_t)worker->slots;
  return at >= first && at < first + (size_t)worker->plan->slot_count * KERNEL_SLOT_BYTES;
}

/* Reads an operand for links that are made once. A single element that a step brings anew for each row cannot
 * be one. */
static operand_t read_made(builder_t *builder, uint32_t value) {
  const kernel_worker_t *worker = builder->worker;
  kernel_op_t op = worker->plan->program.values[value].op;
  bool is_row = worker->plan->rows[value] != KERNEL_NO_SLOT;
  kernel_cell_t cell = kernel_worker_read(worker, value, false);
  bool is_given = op == KERNEL_CONSTANT || op == KERNEL_LOAD;
  builder->has_failed =
      builder->has_failed || (cell.is_single && !is_row && (!is_given || is_slot(worker, cell)));
  return (operand_t){.data = cell.data,
                     .is_tile = !cell.is_single,
                     .is_fixed = cell.is_single && is_given && builder->moves[value] == 0,
                     .row_step = builder->moves[value]};
}

static operand_t read_operand(builder_t *builder, uint32_t value) {
  const kernel_worker_t *worker = builder->worker;
  const kernel_space_t *space = worker->space;
  bool is_row = worker->plan->rows[value] != KERNEL_NO_SLOT;
  if (builder->moves != NULL) {
    return read_made(builder, value);
  }
  kernel_cell_t cell = is_row ? worker->cells[value] : kernel_worker_read(worker, value, false);
  if (is_row && space->group > 1 && !cell.is_single) {
    builder->has_rows = true;
    return (operand_t){.data = cell.data, .row_step = (int64_t)sizeof(float)};
  }
  if (cell.is_row) {
    builder->has_rows = true;
    return (operand_t){.data = cell.data, .is_tile = true};
  }
  bool is_tile = !is_row && !cell.is_single;
  return (operand_t){.data = cell.data,
                     .is_tile = is_tile,
                     .is_fixed = !is_tile,
                     .row_step = is_tile ? space->row_length * (int64_t)sizeof(float) : 0};
}

static kernel_link_t *add_link(builder_t *builder, kernel_link_function_t function, operand_t operand) {
  kernel_link_t *link = &builder->links[builder->count++];
  *link = (kernel_link_t){.run = function, .data = operand.data, .row_step = operand.row_step};
  if (operand.is_fixed) {
    /* The slot of a single element may be that of a tile which this chain stores. */
    memcpy(&link->alpha, operand.data, sizeof link->alpha);
    link->data = (unsigned char *)&link->alpha;
  }
  return link;
}

static void add_load(builder_t *builder, operand_t operand) {
  add_link(builder, operand.is_tile ? builder->loops->load : builder->loops->load_single, operand);
}

/* One element for all rows that is not NaN. */
static bool is_number(operand_t operand) {
  float number = 0;
  if (!operand.is_fixed) {
    return false;
  }
  memcpy(&number, operand.data, sizeof number);
  return number == number;
}

/* Bounds are one instruction: Relu is one, and so are Max and Min of what is in the registers and a number.
 *
 * `before` is the value in the registers, or CLEAVE_INDEX_NONE at the beginning. */
static void add_operator(builder_t *builder, const kernel_value_t *value, uint32_t before) {
  const uint32_t *operands = value->operands;
  if (kernel_op_info(value->op)->operand_count == 1) {
    if (operands[0] != before) {
      add_load(builder, read_operand(builder, operands[0]));
    }
    bool is_relu = value->op == KERNEL_Relu;
    kernel_link_function_t function = is_relu ? builder->loops->binary[KERNEL_AtLeast][KERNEL_FORM_ACC_SINGLE]
                                              : builder->loops->unary[value->op];
    kernel_link_t *link = add_link(builder, function, (operand_t){0});
    link->data = (unsigned char *)&link->alpha;
    link->alpha = is_relu ? 0 : (float)value->alpha;
    link->beta = (float)value->beta;
    return;
  }
  kernel_op_t op = value->op;
  if (operands[0] == operands[1]) {
    if (operands[0] != before) {
      add_load(builder, read_operand(builder, operands[0]));
    }
    add_link(builder, builder->loops->binary[op][KERNEL_FORM_ACC_ACC], (operand_t){0});
    return;
  }
  uint32_t held = operands[1] == before ? 1 : 0;
  if (operands[held] != before) {
    add_load(builder, read_operand(builder, operands[held]));
  }
  operand_t other = read_operand(builder, operands[1 - held]);
  int form = other.is_tile ? KERNEL_FORM_ACC_TILE : KERNEL_FORM_ACC_SINGLE;
  if (held == 0 && (op == KERNEL_Max || op == KERNEL_Min) && is_number(other)) {
    op = op == KERNEL_Max ? KERNEL_AtLeast : KERNEL_AtMost;
  }
  add_link(builder, builder->loops->binary[op][form + (int)held], other);
}

/* `moves`: the data is of the whole space, not of a tile. */
static void add_store(builder_t *builder, kernel_link_function_t function, unsigned char *data, bool moves) {
  int64_t row_step = builder->worker->space->row_length * (int64_t)sizeof(float);
  row_step = builder->moves == NULL || moves ? row_step : 0;
  add_link(builder, function, (operand_t){.data = data, .row_step = row_step, .is_tile = true});
}

/* Brings the result of a step to memory where somebody reads it. */
static void add_result(builder_t *builder, const kernel_step_t *step) {
  kernel_worker_t *worker = builder->worker;
  int64_t row_bytes = worker->space->row_length * (int64_t)sizeof(float);
  unsigned char *slot = worker->slots + (size_t)step->slot * KERNEL_SLOT_BYTES;
  unsigned char *output = step->output != CLEAVE_INDEX_NONE ? worker->call->outputs[step->output] : NULL;
  kernel_cell_t cell = {.data = slot};
  int64_t moves = 0;
  if (worker->plan->kept[step->value] != KERNEL_NO_SLOT) {
    bool is_moved = kernel_worker_kept_output(worker, step->value) != NULL || worker->batch > 1;
    cell = kernel_worker_read(worker, step->value, false);
    add_store(builder, builder->loops->store, cell.data, is_moved);
    moves = is_moved ? row_bytes : 0;
  } else if (output == NULL) {
    if (step->is_read) {
      add_store(builder, builder->loops->store, slot, false);
    }
  } else {
    output += (size_t)worker->begin * sizeof(float);
    bool streams = (size_t)worker->space->total * sizeof(float) > KERNEL_STREAM_BYTES &&
                   (uintptr_t)output % 64 == 0 && worker->space->group <= 1 &&
                   (builder->moves == NULL || row_bytes % 64 == 0);
    add_store(builder, streams ? builder->loops->stream : builder->loops->store, output, true);
    worker->has_streamed = worker->has_streamed || streams;
    if (streams && step->is_read) {
      add_store(builder, builder->loops->store, slot, false);
    } else {
      cell.data = output;
      moves = row_bytes;
    }
  }
  if (builder->moves != NULL) {
    builder->moves[step->value] = moves;
  }
  worker->cells[step->value] = cell;
}

/* The next tile of a load of several inputs, where it goes on in the same part of it. */
static void fetch_parts(builder_t *builder) {
  const kernel_worker_t *worker = builder->worker;
  const kernel_program_t *program = &worker->plan->program;
  for (uint32_t v = 0; v < program->value_count && builder->moves == NULL; v++) {
    const kernel_value_t *value = &program->values[v];
    if (value->op != KERNEL_LOAD || value->parts == 0 ||
        program->inputs[value->input].dtype != CLEAVE_DTYPE_F32) {
      continue;
    }
    kernel_place_t place = kernel_worker_place(worker, value, worker->coordinates);
    if (place.stride == 1 && place.count >= 2 * worker->count && worker->space->group <= 1) {
      unsigned char *data = (unsigned char *)(uintptr_t)worker->call->inputs[place.input].data +
                            (size_t)(place.offset + worker->count) * sizeof(float);
      add_link(builder, builder->loops->fetch, (operand_t){.data = data, .is_tile = true});
    }
  }
}

static void add_fetch(builder_t *builder, kernel_link_function_t function, const void *tensor,
                      int64_t first) {
  unsigned char *data = (unsigned char *)(uintptr_t)tensor + (size_t)first * sizeof(float);
  int64_t row_step = builder->worker->space->row_length * (int64_t)sizeof(float);
  add_link(builder, function, (operand_t){.data = data, .row_step = row_step, .is_tile = true});
}

/* The loop that goes through the links so far, of all their operators at once; or NULL. */
static const kernel_whole_chain_t *find_whole(const builder_t *builder) {
  for (uint32_t k = 0; k < KERNEL_WHOLE_CHAINS; k++) {
    const kernel_whole_chain_t *chain = &builder->loops->whole[k];
    uint32_t n = 0;
    while (n < builder->count && n < KERNEL_WHOLE_LINKS && builder->links[n].run == chain->links[n]) {
      n++;
    }
    if (n == builder->count && (n == KERNEL_WHOLE_LINKS || chain->links[n] == NULL)) {
      return chain;
    }
  }
  return NULL;
}

/* In large spaces a tile is computed while the next one comes from memory: its inputs are fetched. If it is
 * rows, memory for its results is claimed, too, unless they go past the caches. On Zen 5 what has no rows
 * took 1.7 to 2.7 times as long as a copy without that, and takes 0.9 to 1.2. The prefetchers of Zen 4
 * foresee all of it: there it took 1.1 to 1.5 times as long with it, and a softmax 1.05 to 1.2 times. So do
 * all if one loop takes long for an element. */
static void add_fetches(builder_t *builder, const kernel_step_t *first) {
  kernel_worker_t *worker = builder->worker;
  const kernel_space_t *space = worker->space;
  const kernel_program_t *program = &worker->plan->program;
  if (worker->fetched == worker->fetchers || space->total < KERNEL_FETCHED_ELEMENTS ||
      !worker->plan->fetches || (worker->are_costly && !kernel_chain_is_costly(worker->plan, first))) {
    return;
  }
  uint32_t share = worker->fetched++;
  uint32_t number = 0;
  if (share == 0) {
    fetch_parts(builder);
  }
  bool claims =
      space->group > 1 || (space->group == 1 && (size_t)space->total * sizeof(float) <= KERNEL_STREAM_BYTES);
  int64_t next = worker->begin + worker->count * (builder->moves != NULL ? worker->batch : 1);
  int64_t claimed = builder->moves != NULL ? next : worker->begin;
  for (uint32_t k = 0; k < program->output_count && claims; k++) {
    if (worker->call->outputs[k] != NULL && program->outputs[k].dtype == CLEAVE_DTYPE_F32 &&
        number++ % worker->fetchers == share) {
      add_fetch(builder, builder->loops->claim, worker->call->outputs[k], claimed);
    }
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    if (space->flat[k] && program->inputs[k].dtype == CLEAVE_DTYPE_F32 &&
        next + worker->count <= space->total && number++ % worker->fetchers == share) {
      add_fetch(builder, builder->loops->fetch, worker->call->inputs[k].data, next);
    }
  }
}

static void run_links(builder_t *builder) {
  const kernel_worker_t *worker = builder->worker;
  kernel_chain_run_t run = builder->run;
  if (!builder->has_rows) {
    run(builder->links, worker->count);
    return;
  }
  for (int64_t row = 0; row < worker->row_count; row++) {
    run(builder->links, worker->space->row_length);
    for (uint32_t k = 0; k < builder->count; k++) {
      builder->links[k].data += builder->links[k].row_step;
    }
  }
}

/* Does the step have single elements alone? */
static bool is_single(const kernel_worker_t *worker, const kernel_step_t *step) {
  const kernel_value_t *value = &worker->plan->program.values[step->value];
  for (uint32_t k = 0; k < kernel_op_info(value->op)->operand_count; k++) {
    uint32_t operand = value->operands[k];
    bool is_row = worker->plan->rows[operand] != KERNEL_NO_SLOT;
    if (is_row ? worker->space->group > 1 && !worker->cells[operand].is_single
               : !kernel_worker_read(worker, operand, false).is_single) {
      return false;
    }
  }
  return true;
}

/* Links of the steps up to `end`; the last one's result is a tile if `keeps`. */
static void build(builder_t *builder, const kernel_step_t *first, const kernel_step_t *end, bool keeps) {
  uint32_t before = CLEAVE_INDEX_NONE;
  for (const kernel_step_t *step = first; step < end; step++) {
    kernel_step_t own = *step;
    own.is_read = own.is_read || (keeps && step + 1 == end);
    add_operator(builder, &builder->worker->plan->program.values[own.value], before);
    add_result(builder, &own);
    before = own.value;
  }
  uint32_t count = builder->count;
  const kernel_whole_chain_t *whole = find_whole(builder);
  if (whole == NULL || !whole->is_foreseen) {
    add_fetches(builder, first);
  }
  builder->run = whole != NULL && builder->count == count ? whole->run : builder->loops->run;
  add_link(builder, builder->loops->end, (operand_t){0});
}

/* The first step of a chain from which on it is not worth to go row by row: a costly one, if rows leave much
 * of their last block empty, which would be computed all the same. */
static const kernel_step_t *find_cut(const builder_t *builder, const kernel_step_t *step,
                                     const kernel_step_t *end) {
  bool is_cut = builder->has_rows && builder->worker->space->row_length < KERNEL_BLOCK;
  while (step < end && !(is_cut && kernel_step_is_costly(builder->worker->plan, step))) {
    step++;
  }
  return step;
}

void kernel_worker_chain(kernel_worker_t *worker, const kernel_step_t *first) {
  const kernel_step_t *end = first + first->chain;
  kernel_link_t links[MAX_LINKS]; /* set one by one */
  for (const kernel_step_t *step = first; step < end;) {
    if (is_single(worker, step)) {
      kernel_worker_apply(worker, step, false);
      step++;
      continue;
    }
    builder_t builder = {.worker = worker, .loops = worker->plan->loops->chain, .links = links};
    build(&builder, step, end, false);
    const kernel_step_t *cut = find_cut(&builder, step + 1, end);
    if (cut < end) {
      builder = (builder_t){.worker = worker, .loops = builder.loops, .links = links};
      build(&builder, step, cut, true);
    }
    run_links(&builder);
    step = cut;
  }
}

bool kernel_worker_make_chain(kernel_worker_t *worker, const kernel_step_t *first, int64_t *moves,
                              kernel_link_t *links, uint32_t *out_count, kernel_chain_run_t *out_run) {
  *out_count = 0;
  if (is_single(worker, first)) {
    return false;
  }
  builder_t builder = {.worker = worker, .loops = worker->plan->loops->chain, .links = links, .moves = moves};
  build(&builder, first, first + first->chain, false);
  *out_count = builder.count;
  *out_run = builder.run;
  return !builder.has_failed;
}
