// SPDX-License-Identifier: Apache-2.0
// Plans of regions for a GPU, without one: what it takes to make them grows with the region, and memory that
// is shared out belongs to one slot at a time.
#include <time.h>

#include "cuda/emit/emit.h"
#include "unit.h"

/* ---- growth ---- */

/* A region of tensors of 1 x 4 x 2 x 2, behind value 0, an input, and constants 1 (weights) and 2 (bias). */
typedef struct plan_case {
  cleave_region_view_t region;
  cleave_value_view_t *values;
  cleave_node_view_t *nodes;
  cleave_fusion_view_t *fusions;
  uint32_t *ids; /* three of each node: what it reads, and what it makes */
  uint32_t *pairs;
} plan_case_t;

static const int64_t dims[4] = {1, 4, 2, 2};
static const int64_t w_dims[4] = {4, 1, 1, 1};
static const float numbers[4] = {1.0f, 2.0f, 3.0f, 4.0f};
static const uint32_t input = 0;
enum { X = 0, W = 1, B = 2, CONSTANTS = 3 };

static plan_case_t plan_case(uint32_t most_nodes) {
  plan_case_t c = {.values = calloc(most_nodes + CONSTANTS, sizeof *c.values),
                   .nodes = calloc(most_nodes, sizeof *c.nodes),
                   .fusions = calloc(most_nodes, sizeof *c.fusions),
                   .ids = calloc(most_nodes, 4 * sizeof *c.ids),
                   .pairs = calloc(most_nodes, 2 * sizeof *c.pairs)};
  ck_assert(c.values != NULL && c.nodes != NULL && c.fusions != NULL && c.ids != NULL && c.pairs != NULL);
  for (uint32_t v = 0; v < most_nodes + CONSTANTS; v++) {
    c.values[v] = (cleave_value_view_t){.size = sizeof c.values[v],
                                        .name = "",
                                        .producer = CLEAVE_INDEX_NONE,
                                        .tensor = {.size = sizeof(cleave_tensor_view_t),
                                                   .dtype = CLEAVE_DTYPE_F32,
                                                   .rank = v == B ? 1 : 4,
                                                   .dims = v == W || v == B ? w_dims : dims,
                                                   .data = v == W || v == B ? numbers : NULL}};
  }
  c.region = (cleave_region_view_t){.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED,
                                    .name = "",
                                    .rule = "",
                                    .values = c.values,
                                    .nodes = c.nodes,
                                    .fusions = c.fusions,
                                    .value_count = CONSTANTS,
                                    .input_count = 1,
                                    .inputs = &input};
  return c;
}

/* The value that it makes. */
static uint32_t add(plan_case_t *c, const char *op, uint32_t count, const uint32_t *inputs) {
  static const cleave_attribute_view_t group = {
      .size = sizeof group, .name = "group", .kind = CLEAVE_ATTRIBUTE_INT, .i = 4};
  uint32_t n = c->region.node_count++;
  uint32_t v = c->region.value_count++;
  uint32_t *ids = c->ids + 4 * (size_t)n;
  memcpy(ids, inputs, count * sizeof *ids);
  ids[3] = v;
  c->values[v].producer = n;
  c->nodes[n] = (cleave_node_view_t){.size = sizeof c->nodes[n],
                                     .op = op,
                                     .domain = "",
                                     .name = "",
                                     .opset_version = 14,
                                     .input_count = count,
                                     .output_count = 1,
                                     .inputs = ids,
                                     .outputs = ids + 3,
                                     .attribute_count = strcmp(op, "Conv") == 0,
                                     .attributes = &group,
                                     .fusion = CLEAVE_INDEX_NONE};
  return v;
}

/* The nodes that make two values. */
static void fuse(plan_case_t *c, uint32_t first, uint32_t second) {
  uint32_t f = c->region.fusion_count++;
  uint32_t *pair = c->pairs + 2 * (size_t)f;
  pair[0] = c->values[first].producer;
  pair[1] = c->values[second].producer;
  c->nodes[pair[0]].fusion = f;
  c->nodes[pair[1]].fusion = f;
  c->fusions[f] =
      (cleave_fusion_view_t){.size = sizeof c->fusions[f], .rule = "", .node_count = 2, .nodes = pair};
}

/* The time that a plan took. */
static double make_plan(plan_case_t *c, const uint32_t *output, cuda_plan_options_t options,
                        cuda_plan_t *out_plan) {
  cleave_message_t message = {.text = ""};
  c->region.outputs = output;
  c->region.output_count = 1;
  options.is_dry = true;
  clock_t start = clock();
  cleave_status_t status = cuda_plan_init(out_plan, &c->region, options, &message);
  status = status == CLEAVE_OK ? cuda_emit_region(out_plan) : status;
  double milliseconds = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  return milliseconds;
}

static void free_case(plan_case_t *c) {
  free(c->values);
  free(c->nodes);
  free(c->fusions);
  free(c->ids);
  free(c->pairs);
}

/* Plans, frees the case, and tells the time that it took. */
static double finish(plan_case_t *c, uint32_t output, cuda_plan_options_t options, uint32_t steps) {
  cuda_plan_t plan;
  double milliseconds = make_plan(c, &output, options, &plan);
  ck_assert_uint_eq(plan.step_count, steps);
  for (uint32_t k = 0; k < plan.slot_count; k++) { /* chains of views would be walked by each step */
    ck_assert(plan.slots[k].kind != CUDA_SLOT_VIEW || plan.slots[plan.slots[k].index].kind != CUDA_SLOT_VIEW);
  }
  cuda_plan_deinit(&plan);
  free_case(c);
  return milliseconds;
}

/* Convolutions with bias and Relu, one behind the other. */
static double time_of_convolutions(uint32_t nodes, cuda_plan_options_t options, uint32_t steps_of_each) {
  plan_case_t c = plan_case(nodes);
  uint32_t last = X;
  for (uint32_t k = 0; k < nodes / 2; k++) {
    uint32_t conv = add(&c, "Conv", 3, (uint32_t[]){last, W, B});
    last = add(&c, "Relu", 1, &conv);
    fuse(&c, conv, last);
  }
  return finish(&c, last, options, nodes / 2 * steps_of_each);
}

static double time_of_kernels_with_bias(uint32_t nodes) {
  return time_of_convolutions(nodes, (cuda_plan_options_t){0}, 2);
}

/* A tree: half of the values live together, then each level lies in holes of the one before. */
static double time_of_wide(uint32_t nodes) {
  plan_case_t c = plan_case(nodes);
  uint32_t *all = calloc(nodes, sizeof *all);
  ck_assert_ptr_nonnull(all);
  uint32_t count = nodes / 2;
  for (uint32_t k = 0; k < count; k++) {
    all[k] = add(&c, "Neg", 1, (uint32_t[]){X});
  }
  while (count > 1) {
    for (uint32_t k = 0; k < count / 2; k++) {
      all[k] = add(&c, "Add", 2, (uint32_t[]){all[2 * k], all[2 * k + 1]});
    }
    all[count / 2] = all[count - 1];
    count = (count + 1) / 2;
  }
  uint32_t last = all[0];
  free(all);
  return finish(&c, last, (cuda_plan_options_t){0}, nodes - 1);
}

/* Fusions that wait for one behind them, again and again. */
static double time_of_late(uint32_t nodes) {
  uint32_t count = nodes / 3;
  plan_case_t c = plan_case(nodes);
  for (uint32_t k = 0; k < count; k++) {
    uint32_t early = add(&c, "Neg", 1, (uint32_t[]){X});
    (void)add(&c, "Exp", 1, &early);
  }
  uint32_t last = X;
  for (uint32_t k = count; k-- > 0;) {
    uint32_t early = CONSTANTS + 2 * k;
    uint32_t late = add(&c, "Add", 2, (uint32_t[]){early, last});
    fuse(&c, early, late);
    last = early + 1;
  }
  return finish(&c, last, (cuda_plan_options_t){0}, 2 * count);
}

/* Views of views, each of which somebody reads. */
static double time_of_views(uint32_t nodes) {
  plan_case_t c = plan_case(nodes);
  uint32_t view = X;
  uint32_t last = X;
  for (uint32_t k = 0; k < nodes / 2; k++) {
    view = add(&c, "Identity", 1, &view);
    last = add(&c, "Neg", 1, &view);
  }
  return finish(&c, last, (cuda_plan_options_t){0}, nodes / 2);
}

static void expect_growth(double (*time_of)(uint32_t nodes)) {
  double small = time_of(2000);
  for (int k = 0; k < 2; k++) {
    double again = time_of(2000);
    small = again < small ? again : small;
  }
  double large = time_of(16000);
  ck_assert_msg(large < 24.0 * small + 20.0, "2000 nodes: %g ms, 16000: %g ms", small, large);
}

UNIT_TEST(a_plan_of_kernels_with_bias_grows_with_the_region) {
  expect_growth(time_of_kernels_with_bias);
}

UNIT_TEST(a_plan_of_values_that_live_together_grows_with_the_region) {
  expect_growth(time_of_wide);
}

UNIT_TEST(a_plan_of_fusions_that_wait_grows_with_the_region) {
  expect_growth(time_of_late);
}

UNIT_TEST(a_plan_of_views_grows_with_the_region) {
  expect_growth(time_of_views);
}

/* ---- nodes behind a bias ---- */

static uint32_t uses_of(const cuda_step_t *step, uint32_t slot) {
  uint32_t uses = 0;
  for (uint32_t k = 0; k < step->pointer_count; k++) {
    uses += step->pointers[k].slot == slot;
  }
  return uses;
}

UNIT_TEST(a_kernel_adds_the_bias_and_stores_what_others_read) {
  for (uint32_t is_read = 0; is_read < 2; is_read++) {
    plan_case_t c = plan_case(3);
    cuda_plan_t plan;
    uint32_t conv = add(&c, "Conv", 3, (uint32_t[]){X, W, B});
    uint32_t relu = add(&c, "Relu", 1, &conv);
    fuse(&c, conv, relu);
    uint32_t last = add(&c, "Add", 2, (uint32_t[]){relu, is_read == 1 ? conv : X});
    (void)make_plan(&c, &last, (cuda_plan_options_t){0}, &plan);
    ck_assert_uint_eq(plan.step_count, 3);
    const cuda_step_t *kernel = &plan.steps[1];
    uint32_t raw = plan.steps[0].pointers[2].slot;
    ck_assert_uint_ne(raw, conv);
    ck_assert_uint_eq(uses_of(kernel, raw), 1);
    ck_assert_uint_eq(uses_of(kernel, B), 1);
    ck_assert_uint_eq(uses_of(kernel, relu), 1);
    ck_assert_uint_eq(uses_of(kernel, conv), is_read);
    ck_assert_uint_eq(kernel->pointer_count, 3 + is_read);
    cuda_plan_deinit(&plan);
    free_case(&c);
  }
}

/* ---- memory ---- */

typedef struct life {
  uint32_t first, last;
  int64_t bytes;
} life_t;

static int64_t least_bytes(const life_t *lives, uint32_t count, uint32_t steps) {
  int64_t least = 0;
  for (uint32_t s = 0; s < steps; s++) {
    int64_t live = 0;
    for (uint32_t k = 0; k < count; k++) {
      live += lives[k].first <= s && s <= lives[k].last ? cuda_round_up(lives[k].bytes) : 0;
    }
    least = live > least ? live : least;
  }
  return least;
}

static const cleave_region_view_t nothing = {.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED};

/* Shares out memory for slots with these lives; the time that it took. */
static double finish_lives(cuda_plan_t *plan, const life_t *lives, uint32_t count, uint32_t steps) {
  cleave_message_t message = {.text = ""};
  unit_ok(cuda_plan_init(plan, &nothing, (cuda_plan_options_t){.is_dry = true}, &message));
  for (uint32_t k = 0; k < count; k++) {
    uint32_t slot = 0;
    unit_ok(cuda_plan_scratch(plan, lives[k].bytes, &slot));
    ck_assert_uint_eq(slot, k);
  }
  for (uint32_t s = 0; s < steps; s++) {
    cuda_step_t *step = NULL;
    unit_ok(cuda_plan_step(plan, CUDA_STEP_KERNEL, "", NULL, 0, &step));
  }
  for (uint32_t k = 0; k < count; k++) {
    plan->slots[k].first = lives[k].first;
    plan->slots[k].last = lives[k].last;
  }
  clock_t start = clock();
  unit_ok(cuda_plan_finish(plan));
  return (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
}

/* The workspace of slots with these lives, none of which may meet; and the least that it can be. */
static int64_t share(const life_t *lives, uint32_t count, uint32_t steps, int64_t *out_least) {
  cuda_plan_t plan;
  (void)finish_lives(&plan, lives, count, steps);
  int64_t bytes = plan.workspace_bytes;
  for (uint32_t k = 0; k < count; k++) {
    int64_t end = plan.slots[k].offset + lives[k].bytes;
    ck_assert_int_eq(plan.slots[k].offset % CUDA_ALIGNMENT, 0);
    ck_assert_int_le(end, bytes);
    for (uint32_t j = 0; j < k; j++) {
      bool meets = lives[j].first <= lives[k].last && lives[k].first <= lives[j].last &&
                   plan.slots[j].offset < end && plan.slots[k].offset < plan.slots[j].offset + lives[j].bytes;
      ck_assert_msg(!meets, "slots %u and %u share memory", (unsigned)j, (unsigned)k);
    }
  }
  cuda_plan_deinit(&plan);
  *out_least = least_bytes(lives, count, steps);
  return bytes;
}

/* Lives of up to so many steps. */
static void draw_lives(life_t *lives, uint32_t count, uint32_t steps, uint32_t longest) {
  uint32_t state = 12345;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t parts[3];
    for (int p = 0; p < 3; p++) {
      state = state * 1664525u + 1013904223u;
      parts[p] = state >> 8;
    }
    uint32_t first = parts[0] % steps;
    uint32_t last = first + parts[1] % longest;
    lives[k] = (life_t){first, last < steps ? last : steps - 1, parts[2] % 5000};
  }
}

enum { LIVES = 1500, STEPS = 500, MANY = 16000 };
static life_t lives[MANY];

static void expect_share(uint32_t longest, double most) {
  int64_t least = 0;
  draw_lives(lives, LIVES, STEPS, longest);
  int64_t bytes = share(lives, LIVES, STEPS, &least);
  ck_assert_msg((double)bytes <= most * (double)least, "%lld bytes, expected at most %g times %lld",
                (long long)bytes, most, (long long)least);
}

UNIT_TEST(values_that_grow_along_a_chain_take_no_more_than_two_of_them) {
  int64_t least = 0;
  for (uint32_t k = 0; k < 40; k++) {
    lives[k] = (life_t){k, k + 1, 1000 * (int64_t)(k + 1)};
  }
  int64_t bytes = share(lives, 40, 41, &least);
  ck_assert_int_eq(bytes, least);
}

UNIT_TEST(few_slots_that_live_together_share_memory) {
  expect_share(10, 1.1);
}

UNIT_TEST(many_slots_that_live_together_share_memory) {
  expect_share(STEPS, 1.3);
}

/* A tenth of all slots live at a time. */
static double time_of_sharing(uint32_t count) {
  cuda_plan_t plan;
  draw_lives(lives, count, count, count / 5);
  double milliseconds = finish_lives(&plan, lives, count, count);
  cuda_plan_deinit(&plan);
  return milliseconds;
}

UNIT_TEST(sharing_memory_of_many_slots_grows_with_them) {
  expect_growth(time_of_sharing);
}

UNIT_SUITE("cuda_plan")
