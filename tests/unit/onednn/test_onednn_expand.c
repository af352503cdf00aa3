// SPDX-License-Identifier: Apache-2.0
// Operators that the oneDNN backend spells out: Attention and RMSNormalization, alone and between products;
// and Swish. The reference backend computes what they must give.

#include "onednn_case.h"

UNIT_TEST(attends_with_heads_apart_or_side_by_side) {
  onednn_case(
      "q [2,3,5,8] = input\nk [2,3,7,8] = input\nv [2,3,7,6] = input\ny [2,3,5,6] = Attention(q, k, v)\n",
      1e-5);
  onednn_case(
      "q [2,5,24] = input\nk [2,7,24] = input\nv [2,7,18] = input\n"
      "y [2,5,18] = Attention(q, k, v) q_num_heads=3 kv_num_heads=3\n",
      1e-5);
  onednn_case(
      "q [6,5,8] = input\nk [6,7,8] = input\nv [6,7,4] = input\n"
      "y [6,5,4] = Attention(q, k, v) q_num_heads=1 kv_num_heads=1 scale=0.75\n",
      1e-5);
}

UNIT_TEST(adds_masks_of_every_shape) {
  static const char *const masks[] = {"7",       "5,7",     "3,5,7",   "1,1,7",
                                      "2,1,1,7", "2,3,5,7", "1,3,5,7", "2,1,5,1"};
  for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "q [2,3,5,8] = input\nk [2,3,7,8] = input\nv [2,3,7,6] = input\nm [%s] = %s\n"
                   "y [2,3,5,6] = Attention(q, k, v, m) scale=0.5\n",
                   masks[k], k % 2 == 0 ? "input" : "random");
    onednn_case(text, 1e-5);
  }
  onednn_case(
      "q [4,5,8] = input\nk [4,7,8] = input\nv [4,7,8] = input\nm [4,1,5,7] = input\n"
      "y [4,5,8] = Attention(q, k, v, m) q_num_heads=1 kv_num_heads=1\n",
      1e-5);
  onednn_case(
      "q [4,5,8] = input\nk [4,7,8] = input\nv [4,7,8] = input\nm [5,7] = random\n"
      "y [4,5,8] = Attention(q, k, v, m) q_num_heads=1 kv_num_heads=1\n",
      1e-5);
}

UNIT_TEST(looks_only_back_and_caps_scores) {
  onednn_case(
      "q [1,2,9,8] = input\nk [1,2,9,8] = input\nv [1,2,9,8] = input\n"
      "y [1,2,9,8] = Attention(q, k, v) is_causal=1\n",
      1e-5);
  onednn_case(
      "q [2,4,16] = input\nk [2,6,16] = input\nv [2,6,16] = input\nm [4,6] = random\n"
      "y [2,4,16] = Attention(q, k, v, m) q_num_heads=2 kv_num_heads=2 is_causal=1 softcap=1.5\n",
      1e-5);
}

UNIT_TEST(attends_with_heads_of_keys_that_serve_several) {
  onednn_case(
      "q [2,6,5,8] = input\nk [2,2,7,8] = input\nv [2,2,7,8] = input\ny [2,6,5,8] = Attention(q, k, v)\n",
      1e-5);
  onednn_case(
      "q [2,70,32] = input\nk [2,70,16] = input\nv [2,70,8] = input\nm [70,70] = random\n"
      "y [2,70,16] = Attention(q, k, v, m) q_num_heads=4 kv_num_heads=2 is_causal=1\n",
      1e-5);
}

/* Longer than what products are faster for. */
UNIT_TEST(attends_over_long_sequences) {
  onednn_case(
      "q [1,2,260,8] = input\nk [1,2,270,8] = input\nv [1,2,270,4] = input\nm [260,270] = random\n"
      "y [1,2,260,4] = Attention(q, k, v, m) scale=0.5\n",
      1e-5);
  onednn_case(
      "q [2,300,16] = input\nk [2,300,16] = input\nv [2,300,16] = input\n"
      "y [2,300,16] = Attention(q, k, v) q_num_heads=2 kv_num_heads=2 is_causal=1 softcap=1.5\n",
      1e-5);
}

/* Bytes of the first output on that many threads; the caller frees them. */
static char *attend(const char *text, int32_t threads, size_t *out_size) {
  op_backend_t onednn = onednn_create();
  view_program_t program;
  fusion_region_t *region = fusion_region_create(text, false);
  const cleave_region_view_t *view = fusion_region_view(region);
  fusion_region_compile(region, &onednn, threads, &program);
  for (uint32_t k = 0; k < view->input_count; k++) {
    const cleave_tensor_view_t *tensor = &view->values[view->inputs[k]].tensor;
    view_program_input(&program, k, tensor->rank, tensor->dims, fusion_region_input(region, k));
  }
  ck_assert_msg(view_program_run(&program) == CLEAVE_OK, "%s", program.message.text);
  *out_size = (size_t)cleave_view_element_count(&program.outputs[0]) * sizeof(float);
  char *bytes = malloc(*out_size);
  ck_assert_ptr_nonnull(bytes);
  memcpy(bytes, program.outputs[0].data, *out_size);
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
  return bytes;
}

/* By blocks of queries: how many threads share the work changes no sum. Shorter sequences are products of
 * oneDNN, whose code for AVX2 adds up in an order that depends on the number of threads. */
UNIT_TEST(attention_gives_the_same_bits_on_any_number_of_threads) {
  static const char *const TEXTS[] = {
      "q [2,300,48] = input\nk [2,300,48] = input\nv [2,300,48] = input\n"
      "y [2,300,48] = Attention(q, k, v) q_num_heads=3 kv_num_heads=3 is_causal=1\n",
      "q [1,6,65,16] = input\nk [1,2,270,16] = input\nv [1,2,270,16] = input\n"
      "y [1,6,65,16] = Attention(q, k, v)\n",
  };
  for (size_t k = 0; k < sizeof TEXTS / sizeof TEXTS[0]; k++) {
    size_t size = 0;
    char *expected = attend(TEXTS[k], 1, &size);
    for (int32_t threads = 2; threads <= 7; threads++) {
      size_t found_size = 0;
      char *found = attend(TEXTS[k], threads, &found_size);
      ck_assert_uint_eq(found_size, size);
      ck_assert_msg(memcmp(found, expected, size) == 0, "%d threads in\n%s", (int)threads, TEXTS[k]);
      free(found);
    }
    free(expected);
  }
}

UNIT_TEST(attends_between_products_and_views) {
  onednn_case(
      "x [2,6,16] = input\nwq [16,16] = random\nwk [16,16] = random\nwv [16,16] = random\nwo [16,16] = "
      "random\n"
      "bq [16] = random\nbo [16] = random\n"
      "{\nq0 [2,6,16] = MatMul(x, wq)\nq [2,6,16] = Add(q0, bq)\n}\n"
      "k [2,6,16] = MatMul(x, wk)\nv [2,6,16] = MatMul(x, wv)\n"
      "a [2,6,16] = Attention(q, k, v) q_num_heads=4 kv_num_heads=4\n"
      "{\no [2,6,16] = MatMul(a, wo)\np [2,6,16] = Add(o, bo)\ny [2,6,16] = Add(p, x)\n}",
      1e-5);
  onednn_case(
      "x [2,5,3,2,4] = input\nzero i64[] = 0\none i64[] = 1\ntwo i64[] = 2\n"
      "t [3,2,2,5,4] = Transpose(x) perm=[2,0,3,1,4]\n"
      "q [2,2,5,4] = Gather(t, zero) axis=0\nk [2,2,5,4] = Gather(t, one) axis=0\n"
      "v [2,2,5,4] = Gather(t, two) axis=0\nb [1,2,5,5] = random\n"
      "a [2,2,5,4] = Attention(q, k, v, b)\nr [2,5,2,4] = Transpose(a) perm=[0,2,1,3]\n"
      "s i64[3] = 2 5 8\ny [2,5,8] = Reshape(r, s)\n",
      1e-5);
}

UNIT_TEST(attends_twice_in_one_region) {
  onednn_case(
      "q [1,2,5,8] = input\nk [1,2,7,8] = input\nv [1,2,7,8] = input\n"
      "a [1,2,5,8] = Attention(q, k, v)\nb [1,2,5,8] = Attention(a, k, v) scale=0.25\n"
      "{\nc [1,2,5,8] = Add(a, b)\ny [1,2,5,8] = Relu(c)\n}",
      1e-5);
}

UNIT_TEST(normalizes_by_the_mean_square) {
  onednn_case("x [2,5,32] = input\ng [32] = random\ny [2,5,32] = RMSNormalization(x, g) epsilon=0.001\n",
              1e-5);
  onednn_case("x [2,5,8] = input\ng [5,8] = random\ny [2,5,8] = RMSNormalization(x, g) axis=1\n", 1e-5);
  onednn_case(
      "x [4,16] = input\ng [16] = input\nw [16,8] = random\n"
      "n [4,16] = RMSNormalization(x, g) axis=-1\ny [4,8] = MatMul(n, w)\n",
      1e-5);
}

UNIT_TEST(swishes_as_a_post_op_and_alone) {
  onednn_case("x [2,32] = input\ny [2,32] = Swish(x) alpha=1.702\n", 1e-5);
  onednn_case(
      "x [1,16,6,6] = input\nw [16,16,3,3] = random\n{\n"
      "c [1,16,4,4] = Conv(x, w)\ny [1,16,4,4] = Swish(c)\n}",
      1e-5);
}

UNIT_TEST(refuses_attention_that_primitives_cannot_say) {
  static const struct {
    const char *text;
    const char *reason;
  } cases[] = {
      {"q [1,4,5,8] = input\nk [1,3,5,8] = input\nv [1,3,5,8] = input\ny [1,4,5,8] = Attention(q, k, v)\n",
       "several heads of queries share one head of keys"},
      {"q [1,2,5,8] = input\nk [1,2,5,8] = input\nv [1,2,5,8] = input\nm i64[5] = 1\n"
       "y [1,2,5,8] = Attention(q, k, v, m)\n",
       "its mask is not float32, or its rank is unknown"},
      {"q [1,2,5,8] = input\nk [1,2,5,8] = input\nv [1,2,5,8] = input\np [1,2,3,8] = input\n"
       "y [1,2,5,8] = Attention(q, k, v, -, p, p)\n",
       "it has past keys, or its scores are used outside"},
      {"q [1,2,5,8] = input\nk [1,2,5,6] = input\nv [1,2,5,8] = input\ny [1,2,5,8] = Attention(q, k, v)\n",
       "the sizes of heads do not fit"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char reason[256];
    (void)snprintf(reason, sizeof reason, "Attention 'node': %s", cases[k].reason);
    onednn_refuses(cases[k].text, reason);
  }
  onednn_refuses("x [2,?] = input\ng [?] = input\ny [2,?] = RMSNormalization(x, g)\n",
                 "RMSNormalization 'node': the normalized size is unknown");
  onednn_refuses(
      "q [1,2,5,8] = input\nk [1,2,5,8] = input\nv [1,2,5,8] = input\n"
      "{\na [1,2,5,8] = Attention(q, k, v)\ny [1,2,5,8] = Relu(a)\n}",
      "Attention 'node': it cannot be fused with other nodes");
}

UNIT_SUITE("onednn_expand")
