// SPDX-License-Identifier: Apache-2.0
// Weights for Winograd's algorithm: what the backend makes is what oneDNN's own reorder makes, bit for bit,
// in every layout that convolutions ask for; anything else it leaves to oneDNN.
#include <math.h>
#include <stdlib.h>

#include "onednn_case.h"

#include "onednn/weights/winograd.h"

/* Panels for kernels/winograd: G w G' in double, zeros behind the last output. */
static void check_panels(int64_t outputs, int64_t inputs, int side) {
  static const double SMALL[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const double a = 0.625;
  const double b = 1.5;
  const double at_a = 1 / (2 * a * a * (a * a - b * b));
  const double at_b = 1 / (2 * b * b * (b * b - a * a));
  const double large[6][3] = {{1 / (a * a * b * b), 0, 0},     {at_a, at_a * a, at_a * a * a},
                              {at_a, -at_a * a, at_a * a * a}, {at_b, at_b * b, at_b * b * b},
                              {at_b, -at_b * b, at_b * b * b}, {0, 0, 1}};
  const double(*g)[3] = side == 4 ? SMALL : large;
  int64_t panels = (outputs + 15) / 16;
  int64_t points = (int64_t)side * side;
  onednn_shape_t from_shape = {.rank = 4, .dims = {outputs, inputs, 3, 3}};
  onednn_shape_t to_shape = {.rank = 3, .dims = {outputs, points, inputs}};
  onednn_layout_t from = onednn_layout_plain(&from_shape);
  onednn_layout_t to = onednn_layout_panels(&to_shape);
  float *weights = malloc((size_t)(outputs * inputs * 9) * sizeof(float));
  float *packed = malloc((size_t)(panels * points * inputs * 16) * sizeof(float));
  ck_assert(weights != NULL && packed != NULL && onednn_winograd_packs(&from, &to));
  for (int64_t k = 0; k < outputs * inputs * 9; k++) {
    weights[k] = (float)(rand() % 4001 - 2000) / 1000.0F;
  }
  memset(packed, 0xff, (size_t)(panels * points * inputs * 16) * sizeof(float));
  const int64_t all[2] = {0, outputs};
  onednn_winograd_pack(view_builder_host(), 2, &to, all, weights, packed);
  for (int64_t k = 0; k < panels * points * inputs * 16; k++) {
    int64_t output = k / (points * inputs * 16) * 16 + k % 16;
    int64_t input = k / 16 % inputs;
    int64_t point = k / (inputs * 16) % points;
    double expected = 0;
    for (int i = 0; i < 9 && output < outputs; i++) {
      expected += g[point / side][i / 3] * g[point % side][i % 3] *
                  (double)weights[(output * inputs + input) * 9 + i];
    }
    ck_assert_msg(fabs((double)packed[k] - expected) <= 1e-5, "%dx%d, side %d: [%d] is %.9g, expected %.9g",
                  (int)outputs, (int)inputs, side, (int)k, (double)packed[k], expected);
  }
  free(weights);
  free(packed);
}

UNIT_TEST(packs_panels_for_tiles) {
  for (int side = 4; side <= 6; side += 2) {
    check_panels(16, 16, side);
    check_panels(24, 40, side);
    check_panels(72, 8, side);
  }
}

#if ONEDNN_LIBRARY_WINOGRAD /* the other versions of oneDNN have no convolutions by this algorithm */

#define dnnl_ok(call) ck_assert_int_eq((call), dnnl_success)

typedef struct shape_case {
  dnnl_dim_t outputs;
  dnnl_dim_t inputs;
  dnnl_dim_t size; /* of the image */
  dnnl_dim_t batch;
} shape_case_t;

static onednn_layout_t blocked(dnnl_dim_t batch, dnnl_dim_t channels, dnnl_dim_t size) {
  onednn_shape_t shape = {.rank = 4, .dims = {batch, channels, size, size}};
  return onednn_layout_blocked(&shape);
}

static onednn_layout_t plain_weights(const shape_case_t *c) {
  onednn_shape_t shape = {.rank = 4, .dims = {c->outputs, c->inputs, 3, 3}};
  return onednn_layout_plain(&shape);
}

/* The layout of the weights that a convolution asks for; false where it has no such algorithm. */
static bool ask(dnnl_engine_t engine, const shape_case_t *c, onednn_layout_t *out) {
  onednn_layout_t x = blocked(c->batch, c->inputs, c->size);
  onednn_layout_t y = blocked(c->batch, c->outputs, c->size);
  onednn_shape_t shape = {.rank = 4, .dims = {c->outputs, c->inputs, 3, 3}};
  onednn_layout_t weights = onednn_layout_any(&shape);
  const dnnl_dim_t one[DNNL_MAX_NDIMS] = {1, 1};
  dnnl_convolution_desc_t description;
  dnnl_primitive_desc_t primitive = NULL;
  dnnl_ok(dnnl_convolution_forward_desc_init(&description, dnnl_forward_inference, dnnl_convolution_winograd,
                                             &x, &weights, NULL, &y, one, one, one));
  if (dnnl_primitive_desc_create(&primitive, &description, NULL, engine, NULL) != dnnl_success) {
    return false;
  }
  *out = *dnnl_primitive_desc_query_md(primitive, dnnl_query_weights_md, 0);
  dnnl_ok(dnnl_primitive_desc_destroy(primitive));
  return true;
}

static void reorder(dnnl_engine_t engine, const onednn_layout_t *from, float *weights,
                    const onednn_layout_t *to, float *out) {
  dnnl_stream_t stream = NULL;
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t memories[2];
  dnnl_ok(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
  dnnl_ok(dnnl_reorder_primitive_desc_create(&description, from, engine, to, engine, NULL));
  dnnl_ok(dnnl_primitive_create(&primitive, description));
  dnnl_ok(dnnl_memory_create(&memories[0], from, engine, weights));
  dnnl_ok(dnnl_memory_create(&memories[1], to, engine, out));
  dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, memories[0]}, {DNNL_ARG_TO, memories[1]}};
  dnnl_ok(dnnl_primitive_execute(primitive, stream, 2, arguments));
  dnnl_ok(dnnl_stream_wait(stream));
  for (int k = 0; k < 2; k++) {
    dnnl_ok(dnnl_memory_destroy(memories[k]));
  }
  dnnl_ok(dnnl_primitive_destroy(primitive));
  dnnl_ok(dnnl_primitive_desc_destroy(description));
  dnnl_ok(dnnl_stream_destroy(stream));
}

/* Numbers of all magnitudes, zeros of both signs among them. */
static float *make_weights(size_t count) {
  float *weights = malloc(count * sizeof *weights);
  uint32_t state = 1;
  ck_assert_ptr_nonnull(weights);
  for (size_t k = 0; k < count; k++) {
    state = state * 1664525U + 1013904223U;
    float number = (float)(int32_t)state * 0x1p-31F;
    weights[k] = k % 31 == 0 ? -0.0F : (k % 17 == 0 ? number * 1e-42F : number);
  }
  return weights;
}

static void check(dnnl_engine_t engine, const shape_case_t *c, const onednn_layout_t *packed) {
  onednn_layout_t plain = plain_weights(c);
  size_t bytes = dnnl_memory_desc_get_size(packed);
  size_t count = (size_t)(c->outputs * c->inputs) * 9;
  float *weights = make_weights(count);
  float *expected = aligned_alloc(64, bytes);
  float *found = aligned_alloc(64, bytes);
  ck_assert(expected != NULL && found != NULL);
  ck_assert(onednn_winograd_packs(&plain, packed));
  reorder(engine, &plain, weights, packed, expected);
  for (int32_t threads = 1; threads <= 3; threads += 2) {
    memset(found, 0xff, bytes);
    const int64_t halves[3] = {0, c->outputs / 32 * 16, c->outputs};
    for (int k = 0; k < 2; k++) {
      onednn_winograd_pack(view_builder_host(), threads, packed, halves + k,
                           weights + halves[k] * c->inputs * 9, found);
    }
    ck_assert_mem_eq(found, expected, bytes);
  }
  free(weights);
  free(expected);
  free(found);
}

static const char *lacks_avx512(void) {
  return __builtin_cpu_supports("avx512dq") ? NULL : "oneDNN has this algorithm for AVX-512 alone";
}

UNIT_TEST_UNLESS(packs_to_the_bit_what_onednn_packs, lacks_avx512) {
  static const shape_case_t cases[] = {
      {64, 64, 56, 1}, {128, 128, 28, 1}, {256, 128, 14, 1}, {512, 256, 7, 1}, {64, 32, 20, 2},
      {16, 16, 9, 1},  {48, 32, 30, 1},   {96, 96, 35, 1},   {192, 64, 56, 1}, {160, 160, 9, 1},
      {32, 512, 7, 1}, {512, 64, 15, 4},  {64, 256, 112, 1}, {80, 48, 24, 3}};
  dnnl_engine_t engine = NULL;
  uint32_t layouts[5] = {0};
  dnnl_ok(dnnl_engine_create(&engine, dnnl_cpu, 0));
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    onednn_layout_t packed;
    if (ask(engine, &cases[k], &packed)) {
      check(engine, &cases[k], &packed);
      layouts[packed.format_desc.wino_desc.wino_format]++;
    }
  }
  dnnl_ok(dnnl_engine_destroy(engine));
  ck_assert_uint_gt(layouts[dnnl_wino_wei_aaOio], 0);
  ck_assert_uint_gt(layouts[dnnl_wino_wei_aaOBiOo], 0);
  ck_assert_uint_gt(layouts[dnnl_wino_wei_OBaaIBOIio], 0);
}

/* As a convolution of 32 to 64 channels may ask for it. */
static onednn_layout_t small_tiles(void) {
  static const shape_case_t c = {64, 32, 9, 1};
  onednn_layout_t layout = plain_weights(&c);
  layout.format_kind = dnnl_format_kind_wino;
  layout.format_desc.wino_desc = (dnnl_wino_desc_t){.wino_format = dnnl_wino_wei_aaOio,
                                                    .r = 3,
                                                    .alpha = 4,
                                                    .ic = 32,
                                                    .oc = 64,
                                                    .ic_block = 16,
                                                    .oc_block = 16,
                                                    .ic2_block = 1,
                                                    .oc2_block = 1,
                                                    .adj_scale = 1.0F,
                                                    .size = sizeof(float) * 4 * 4 * 32 * 64};
  return layout;
}

UNIT_TEST(leaves_to_onednn_what_it_does_not_know) {
  static const shape_case_t c = {64, 32, 9, 1};
  onednn_layout_t plain = plain_weights(&c);
  onednn_layout_t packed = small_tiles();
  ck_assert(onednn_winograd_packs(&plain, &packed));
  ck_assert(!onednn_winograd_packs(&plain, &plain));
  ck_assert(!onednn_winograd_packs(&packed, &packed));
  static const shape_case_t others[] = {{32, 64, 9, 1}, {64, 48, 9, 1}, {80, 32, 9, 1}};
  for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
    onednn_layout_t other = plain_weights(&others[k]);
    ck_assert(!onednn_winograd_packs(&other, &packed));
  }
  onednn_shape_t wide = {.rank = 4, .dims = {64, 32, 5, 5}};
  onednn_layout_t wide_windows = onednn_layout_plain(&wide);
  ck_assert(!onednn_winograd_packs(&wide_windows, &packed));
  onednn_shape_t shape = {.rank = 4, .dims = {64, 32, 3, 3}};
  onednn_layout_t turned = onednn_layout_channels_last(&shape);
  ck_assert(!onednn_winograd_packs(&turned, &packed));
  packed.extra.flags = dnnl_memory_extra_flag_compensation_conv_s8s8;
  ck_assert(!onednn_winograd_packs(&plain, &packed));
  for (int k = 0; k < 7; k++) {
    packed = small_tiles();
    dnnl_wino_desc_t *wino = &packed.format_desc.wino_desc;
    wino->alpha = k == 0 ? 6 : wino->alpha;
    wino->wino_format = k == 1 ? dnnl_wino_wei_aaOIoi : wino->wino_format;
    wino->wino_format = k == 2 ? dnnl_wino_wei_OBaaIBOIio : wino->wino_format;
    wino->oc_block = k == 3 ? 8 : wino->oc_block;
    wino->oc2_block = k == 4 ? 3 : wino->oc2_block;
    wino->ic2_block = k == 5 ? 0 : wino->ic2_block;
    wino->size += k == 6 ? sizeof(float) : 0;
    ck_assert_msg(!onednn_winograd_packs(&plain, &packed), "case %d", k);
  }
}
#endif

UNIT_SUITE("onednn_winograd")
