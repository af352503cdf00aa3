// SPDX-License-Identifier: Apache-2.0
// Regions of the oneDNN backend: layouts spread through them, views cost nothing, memory is shared only where
// nobody needs it, steps are what they should be.
#include "kernels/instructions.h"
#include "onednn_case.h"

UNIT_TEST(runs_a_dense_block) {
  onednn_case(
      "x [1,16,8,8] = input\nw [20,16,3,3] = random\ng [36] = random\nb [36] = random\n"
      "m [36] = random\nv [36] = positive\nw2 [8,36,1,1] = random\n"
      "a [1,20,8,8] = Conv(x, w) kernel_shape=[3,3] pads=[1,1,1,1]\n"
      "c [1,36,8,8] = Concat(x, a) axis=1\n{\n"
      "n [1,36,8,8] = BatchNormalization(c, g, b, m, v) epsilon=0.001\nr [1,36,8,8] = Relu(n)\n}\n"
      "y [1,8,8,8] = Conv(r, w2) kernel_shape=[1,1]\nz [1,44,8,8] = Concat(c, y) axis=1",
      1e-5);
}

#define DENSE_BLOCKS                                                                                    \
  "x [1,32,12,12] = input\nw1 [32,32,3,3] = random\nw2 [32,64,3,3] = random\nw3 [16,96,3,3] = random\n" \
  "g [64] = random\nv [64] = positive\n{\n"                                                             \
  "a [1,32,12,12] = Conv(x, w1) kernel_shape=[3,3] pads=[1,1,1,1]\nra [1,32,12,12] = Relu(a)\n}\n"      \
  "b [1,32,12,12] = Tanh(ra)\n"                                                                         \
  "c [1,64,12,12] = Concat(ra, b) axis=1\n{\n"                                                          \
  "n [1,64,12,12] = BatchNormalization(c, g, g, g, v) epsilon=0.001\nrn [1,64,12,12] = Relu(n)\n}\n"    \
  "d [1,32,12,12] = Conv(rn, w2) kernel_shape=[3,3] pads=[1,1,1,1]\n"                                   \
  "e [1,96,12,12] = Concat(ra, b, d) axis=1\n"                                                          \
  "f [1,16,12,12] = Conv(e, w3) kernel_shape=[3,3] pads=[1,1,1,1]\n"                                    \
  "h [1,32,12,12] = Concat(f, f) axis=1\n"

UNIT_TEST(writes_the_inputs_of_a_concat_to_their_places) {
  char labels[4096];
  onednn_case(DENSE_BLOCKS, 1e-4);
  onednn_labels(DENSE_BLOCKS, labels, sizeof(labels));
  // The last one reads the same value twice: one part is copied.
  ck_assert_msg(onednn_occurrences(labels, "concat") == 0, "%s", labels);
  ck_assert_msg(onednn_occurrences(labels, "reorder") <= 3, "%s", labels);
}

UNIT_TEST(writes_them_in_blocks_of_eight_channels_for_avx2) {
  char labels[4096];
  ck_assert_int_eq(setenv("CLEAVE_INSTRUCTIONS", "avx2", 1), 0); /* of this test's process only */
  onednn_case(DENSE_BLOCKS, 1e-4);
  onednn_labels(DENSE_BLOCKS, labels, sizeof(labels));
  if (onednn_major() <
      3) { /* later versions have the channels last there, whose parts are not in one piece */
    ck_assert_msg(onednn_occurrences(labels, "8b") > 0, "%s", labels);
    ck_assert_msg(onednn_occurrences(labels, "concat") == 0, "%s", labels);
  }
}

UNIT_TEST(uses_winograd_for_windows_of_three_by_three) {
  char labels[1024];
  const char *text =
      "x [2,32,20,18] = input\nq [2,64,20,18] = input\nw [64,32,3,3] = random\nb [64] = random\n"
      "r [2,64,20,18] = Tanh(q)\n{\n"
      "y [2,64,20,18] = Conv(x, w, b) kernel_shape=[3,3] pads=[1,1,1,1]\ns [2,64,20,18] = Add(y, r)\n"
      "z [2,64,20,18] = Relu(s)\n}";
  onednn_case(text, 1e-4);
  onednn_labels(text, labels, sizeof(labels));
  int instructions = kernel_instructions(KERNEL_AVX512);
  bool has_it = instructions == KERNEL_AVX512 ? onednn_major() < 3 : instructions == KERNEL_AVX2;
  ck_assert_msg(onednn_occurrences(labels, "wino") == (has_it ? 1 : 0), "%s", labels);
  onednn_labels(
      "x [2,32,20,18] = input\nw [64,32,3,3] = random\n"
      "y [2,64,9,8] = Conv(x, w) kernel_shape=[3,3] strides=[2,2]",
      labels, sizeof(labels));
  ck_assert_msg(onednn_occurrences(labels, "wino") == 0, "%s", labels);
}

/* kernels/winograd computes it with what follows in one step, where oneDNN has no such code. */
static void expect_tiles(const char *text, uint32_t count) {
  char labels[1024];
  bool runs = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX2;
  onednn_case(text, 1e-4);
  onednn_labels(text, labels, sizeof(labels));
  ck_assert_msg(!runs || onednn_occurrences(labels, "winograd ") == count, "%s\n%s", text, labels);
}

UNIT_TEST(computes_by_tiles_what_follows_a_convolution) {
  static const char *const posts[] = {
      "",
      "z [2,32,15,13] = Relu(y)\n",
      "z [2,32,15,13] = LeakyRelu(y) alpha=0.25\n",
      "z [2,32,15,13] = Clip(y, low, high)\n",
      "z [2,32,15,13] = Swish(y) alpha=1.5\n",
      "z [2,32,15,13] = Add(y, r)\n",
      "s [2,32,15,13] = Add(r, y)\nz [2,32,15,13] = Relu(s)\n",
      "s [2,32,15,13] = Relu(y)\nz [2,32,15,13] = Add(s, r)\n",
      "s [2,32,15,13] = Add(y, r)\nt [2,32,15,13] = Swish(s)\nz [2,32,15,13] = Tanh(t)\n",
      "z [2,32,15,13] = Sigmoid(y)\n",
      "s [2,32,15,13] = Mul(y, g)\nt [2,32,15,13] = Add(s, g)\nz [2,32,15,13] = HardSwish(t)\n",
  };
  char text[1024];
  for (size_t k = 0; k < sizeof(posts) / sizeof(posts[0]); k++) {
    (void)snprintf(text, sizeof(text),
                   "x [2,24,15,13] = input\nw [32,24,3,3] = random\nb [32] = random\nr [2,32,15,13] = input\n"
                   "g [32,1,1] = random\nlow [] = -1\nhigh [] = 1.5\n{\n"
                   "y [2,32,15,13] = Conv(x, w, b) pads=[1,1,1,1]\n%s}",
                   posts[k]);
    expect_tiles(text, 1);
  }
}

/* At most four tiles read windows, which pays where oneDNN has other code; for one AMX may be faster. */
UNIT_TEST(computes_small_images_by_tiles) {
  static const char *const sizes[] = {"7,7", "8,8", "4,4", "5,4"};
  const bool is_wide = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
  char text[512];
  char labels[1024];
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
    (void)snprintf(text, sizeof(text),
                   "x [1,48,%s] = input\nw [80,48,3,3] = random\nb [80] = random\n{\n"
                   "y [1,80,%s] = Conv(x, w, b) pads=[1,1,1,1]\nz [1,80,%s] = Relu(y)\n}",
                   sizes[k], sizes[k], sizes[k]);
    onednn_case(text, 1e-4);
    onednn_labels(text, labels, sizeof(labels));
    bool is_ours = strstr(labels, "winograd 4x4") != NULL || strstr(labels, "thirds") != NULL;
    ck_assert_msg(!is_wide || is_ours, "%s\n%s", text, labels);
  }
}

/* Kernels of our own for AVX-512 compute them with all that follows, in either order of channels. */
UNIT_TEST(computes_one_pixel_and_one_channel_by_own_kernels) {
  static const char *const posts[] = {
      "z [1,C,7,7] = Conv(y, w, b)\n",
      "t [1,C,7,7] = Conv(y, w)\nz [1,C,7,7] = Relu(t)\n",
      "t [1,C,7,7] = Conv(y, w, b)\nz [1,C,7,7] = Clip(t, low, high)\n",
      "t [1,C,7,7] = Conv(y, w, b)\nz [1,C,7,7] = HardSwish(t)\n",
      "t [1,C,7,7] = Conv(y, w, b)\nz [1,C,7,7] = Swish(t) alpha=1.5\n",
      "t [1,C,7,7] = Conv(y, w, b)\nz [1,C,7,7] = Sigmoid(t)\n",
      "t [1,C,7,7] = Conv(y, w, b)\nz [1,C,7,7] = Add(t, y)\n",
      "s [1,C,7,7] = Conv(y, w, b)\nt [1,C,7,7] = Add(s, q)\nz [1,C,7,7] = Relu(t)\n",
      "z [1,C,7,7] = Conv(y, d, b) group=C pads=[1,1,1,1]\n",
      "t [1,C,7,7] = Conv(y, e, b) group=C pads=[2,2,2,2]\nz [1,C,7,7] = Swish(t)\n",
  };
  bool runs = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
  for (size_t k = 0; k < 2 * sizeof(posts) / sizeof(posts[0]); k++) {
    const char *channels = k % 2 == 0 ? "48" : "40";
    char text[2048];
    char labels[1024];
    size_t used = 0;
    char whole[1024];
    (void)snprintf(whole, sizeof(whole),
                   "x [1,C,7,7] = input\nf [C,C,1,1] = random\nw [C,C,1,1] = random\nb [C] = random\n"
                   "d [C,1,3,3] = random\ne [C,1,5,5] = random\nlow [] = -1\nhigh [] = 1.5\n"
                   "p [1,C,7,7] = Conv(x, f)\nq [1,C,7,7] = Conv(x, w, b)\ny [1,C,7,7] = Relu(p)\n{\n%s}",
                   posts[k / 2]);
    for (const char *c = whole; *c != '\0'; c++) {
      used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s",
                               *c == 'C' && c[1] != 'o' && c[1] != 'l' ? 2 : 1,
                               *c == 'C' && c[1] != 'o' && c[1] != 'l' ? channels : c);
    }
    onednn_case(text, 1e-4);
    onednn_labels(text, labels, sizeof(labels));
    const char *kernel = strstr(posts[k / 2], "group=C") == NULL ? " products" : " depthwise";
    ck_assert_msg(onednn_occurrences(labels, kernel) == (runs ? 1U : 0U), "%s\n%s", text, labels);
  }
}

UNIT_TEST(computes_by_tiles_windows_of_three_alone) {
  static const char *const other[] = {
      "x [1,32,20,20] = input\nw [32,16,3,3] = random\ny [1,32,20,20] = Conv(x, w) group=2 pads=[1,1,1,1]\n",
      "x [1,32,20,20] = input\nw [32,32,3,3] = random\ny [1,32,10,10] = Conv(x, w) strides=[2,2] "
      "pads=[1,1,1,1]\n",
      "x [1,32,20,20] = input\nw [32,32,3,3] = random\ny [1,32,16,16] = Conv(x, w) dilations=[2,2]\n",
      "x [1,32,20,20] = input\nw [32,32,3,1] = random\ny [1,32,18,20] = Conv(x, w)\n",
      "x [1,20,20,20] = input\nw [32,20,3,3] = random\ny [1,32,18,18] = Conv(x, w)\n",
      "x [1,32,20,20] = input\nw [20,32,3,3] = random\ny [1,20,18,18] = Conv(x, w)\n",
      "x [1,32,20,20] = input\nw [32,32,3,3] = input\ny [1,32,18,18] = Conv(x, w)\n",
      "x [1,8,20,20] = input\nw [8,8,3,3] = random\ny [1,8,18,18] = Conv(x, w)\n",
      "x [1,32,9] = input\nw [32,32,3] = random\ny [1,32,7] = Conv(x, w)\n"};
  static const char *const tiles[] = {
      "x [3,32,21,20] = input\nw [32,32,3,3] = random\ny [3,32,22,23] = Conv(x, w) pads=[2,3,1,2]\n",
      "x [1,64,17,17] = input\nw [40,64,3,3] = random\ny [1,40,16,16] = Conv(x, w) pads=[0,1,1,0]\n",
      "x [1,64,14,14] = input\nw [64,64,3,3] = random\ny [1,64,12,12] = Conv(x, w)\n"};
  for (size_t k = 0; k < sizeof(other) / sizeof(other[0]); k++) {
    expect_tiles(other[k], 0);
  }
  for (size_t k = 0; k < sizeof(tiles) / sizeof(tiles[0]); k++) {
    expect_tiles(tiles[k], 1);
  }
}

// By rows, whose windows overlap and reach into the padding above and below.
UNIT_TEST(computes_swish_behind_large_convolutions_by_rows) {
  static const char *const convolutions[] = {
      "x [1,9,60,60] = input\nw [66,9,1,1] = random\nm [66,1,1] = random\n{\nc [1,66,60,60] = Conv(x, w)\n",
      "x [1,9,119,120] = input\nw [66,9,3,3] = random\nm [60,60] = random\n{\n"
      "c [1,66,60,60] = Conv(x, w) strides=[2,2] pads=[1,1,1,1]\n",
      "x [1,66,60,60] = input\nw [66,1,5,5] = random\nm [1] = random\n{\n"
      "c [1,66,60,60] = Conv(x, w) group=66 pads=[2,2,2,2]\n",
      "x [1,9,62,60] = input\nw [66,9,3,3] = random\nm [66,60,60] = input\n{\n"
      "c [1,66,60,60] = Conv(x, w) dilations=[2,2] pads=[0,2,2,2]\n",
  };
  for (size_t k = 0; k < sizeof(convolutions) / sizeof(*convolutions); k++) {
    char text[512];
    char labels[512];
    (void)snprintf(text, sizeof(text),
                   "%ss [1,66,60,60] = Swish(c) alpha=1.5\ny [1,66,60,60] = Mul(s, m)\n}\n", convolutions[k]);
    onednn_case(text, 1e-4);
    onednn_labels(text, labels, sizeof(labels));
    uint32_t loops = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512 ? 2 : 0;
    ck_assert_msg(onednn_occurrences(labels, "swish loop") == loops, "%s", labels);
  }
}

UNIT_TEST(runs_squeeze_and_excitation) {
  onednn_case(
      "x [2,16,9,9] = input\nw [40,16,1,1] = random\nw1 [8,40,1,1] = random\nw2 [40,8,1,1] = random\n{\n"
      "c [2,40,9,9] = Conv(x, w) kernel_shape=[1,1]\nh [2,40,9,9] = HardSwish(c)\n}\n"
      "p [2,40,1,1] = GlobalAveragePool(h)\n{\na [2,8,1,1] = Conv(p, w1) kernel_shape=[1,1]\n"
      "r [2,8,1,1] = Relu(a)\n}\n{\nb [2,40,1,1] = Conv(r, w2) kernel_shape=[1,1]\n"
      "s [2,40,1,1] = Sigmoid(b)\n}\ny [2,40,9,9] = Mul(s, h)",
      1e-5);
}

// With channels last: means and factors of channels, by loops that share the pixels.
UNIT_TEST(shares_the_pixels_of_squeeze_and_excitation) {
  static const char *const products[] = {
      "y [N,66,60,60] = Mul(c, s)\n", "y [N,66,60,60] = Mul(s, c)\n", "y [N,66,60,60] = Mul(c, once)\n",
      "m [N,66,60,60] = Mul(c, s)\ny [N,66,60,60] = Add(m, c)\n",
      "m [N,66,60,60] = Mul(c, s)\noutput c\ny [N,66,59,60] = MaxPool(m) kernel_shape=[2,1]\n"};
  bool runs = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
  for (size_t k = 0; k < 2 * sizeof(products) / sizeof(*products); k++) {
    char text[1024];
    char labels[1024];
    (void)snprintf(text, sizeof(text),
                   "x [N,9,60,60] = input\nw [66,9,1,1] = random\nw2 [66,66,1,1] = random\n"
                   "once [1,66,1,1] = random\n{\na [N,66,60,60] = Conv(x, w)\n"
                   "c [N,66,60,60] = Swish(a) alpha=1.5\n}\np [N,66,1,1] = GlobalAveragePool(c)\n{\n"
                   "b [N,66,1,1] = Conv(p, w2)\ns [N,66,1,1] = Sigmoid(b)\n}\n%s",
                   products[k / 2]);
    for (char *c = text; *c != '\0'; c++) {
      *c = *c == 'N' ? (k % 2 == 0 ? '1' : '3') : *c;
    }
    onednn_case(text, 1e-4);
    onednn_labels(text, labels, sizeof(labels));
    ck_assert_msg(!runs || onednn_occurrences(labels, "avgpool acdb loop") == 1, "%s\n%s", text, labels);
    ck_assert_msg(!runs || onednn_occurrences(labels, "scale acdb loop") == 1, "%s\n%s", text, labels);
  }
}

UNIT_TEST(does_not_overwrite_what_is_still_needed) {
  onednn_case(
      "x [1,32,6,6] = input\nw [32,32,1,1] = random\nw2 [32,32,1,1] = random\n{\n"
      "c [1,32,6,6] = Conv(x, w) kernel_shape=[1,1]\ns [1,32,6,6] = Add(c, x)\nr [1,32,6,6] = Relu(s)\n}\n"
      "{\nd [1,32,6,6] = Conv(r, w2) kernel_shape=[1,1]\ne [1,32,6,6] = Add(d, r)\n}\n"
      "q [1,32,6,6] = Tanh(r)\nz [1,32,6,6] = Mul(e, q)\nu [1,32,6,6] = Sub(z, x)\n",
      1e-5);
  onednn_case(
      "x [4,6] = input\nn i64[1] = 24\na [4,6] = Relu(x)\nv [24] = Reshape(a, n)\n"
      "b [4,6] = Neg(a)\nc [4,6] = Exp(b)\noutput c\nw [24] = Tanh(v)",
      1e-5);
}

UNIT_TEST(keeps_outputs_that_are_read_again) {
  onednn_case(
      "x [2,16,6,6] = input\nw [32,16,1,1] = random\nw2 [32,32,1,1] = random\n"
      "c [2,32,6,6] = Conv(x, w) kernel_shape=[1,1]\noutput c\nr [2,32,6,6] = Relu(c)\noutput r\n{\n"
      "d [2,32,6,6] = Conv(r, w2) kernel_shape=[1,1]\ns [2,32,6,6] = Add(d, r)\n}",
      1e-5);
}

UNIT_TEST(views_reshape_transpose_slice_and_split) {
  onednn_case(
      "x [2,6,4] = input\nt i64[2] = 2 24\ny [2,4,6] = Transpose(x) perm=[0,2,1]\n"
      "z [2,24] = Reshape(y, t)",
      1e-6);
  onednn_case(
      "x [2,3,4] = input\nc [4] = random\ny [3,2,4] = Transpose(x) perm=[1,0,2]\nr [3,2,4] = Relu(y)\n"
      "z [3,2,4] = Add(r, c)",
      1e-6);
  onednn_case(
      "x [2,8,6] = input\nb i64[2] = 1 -3\ne i64[2] = 5 100\na i64[2] = 1 2\nk i64[2] = 1 1\n"
      "y [2,4,3] = Slice(x, b, e, a, k)\nz [2,4,3] = Relu(y)",
      1e-6);
  onednn_case(
      "x [2,8,6] = input\ns i64[2] = 3 5\na [2,3,6] & b [2,5,6] = Split(x, s) axis=1\n"
      "r [2,3,6] = Relu(a)\noutput b\nz [2,8,6] = Concat(b, r) axis=1",
      1e-6);
  onednn_case(
      "x [2,16,6,6] = input\nw [48,16,1,1] = random\nc [2,48,6,6] = Conv(x, w) kernel_shape=[1,1]\n"
      "s i64[3] = 16 16 16\na [2,16,6,6] & b [2,16,6,6] & d [2,16,6,6] = Split(c, s) axis=1\n"
      "r [2,16,6,6] = Relu(b)\nz [2,48,6,6] = Concat(r, a, d) axis=1",
      1e-5);
  onednn_case(
      "x [2,3,4] = input\nt i64[1] = 1\nu [2,1,3,4] = Unsqueeze(x, t)\nv [2,3,4] = Squeeze(u, t)\n"
      "f [2,12] = Flatten(v) axis=1\ng [2,12] = Relu(f)",
      1e-6);
}

UNIT_TEST(copies_inputs_that_are_outputs) {
  onednn_case("x [3,4] = input\ny [3,4] = Identity(x)", 0);
}

UNIT_TEST(broadcasts_both_ways) {
  onednn_case("a [3,1] = input\nb [1,4] = input\ny [3,4] = Sub(a, b)\nz [3,4] = Relu(y)", 1e-6);
  onednn_case("a [4] = input\nb [2,3,4] = input\ny [2,3,4] = Sub(a, b)\nz [2,3,4] = Tanh(y)", 1e-6);
  onednn_case(
      "a [4] = positive\nb [2,3,4] = positive\nc [2,3,4] = input\nd [2,3,4] = Exp(c)\n"
      "y [2,3,4] = Div(a, d)",
      1e-5);
  onednn_case("a [8,12,5,5] = input\nb [8,1,1,5] = input\ny [8,12,5,5] = Add(a, b)", 1e-6);
  onednn_case("a [2,1,2,1,2,1] = input\nb [1,2,1,2,1,2] = input\ny [2,2,2,2,2,2] = Mul(a, b)", 1e-6);
  onednn_case("a [] = input\nb [3,4] = input\ny [3,4] = Add(a, b)\nz [3,4] = Mul(y, a)", 1e-6);
}

UNIT_TEST(computes_softmax_and_normalizations) {
  onednn_case("x [2,5,7] = input\ny [2,5,7] = Softmax(x) axis=1\nz [2,5,7] = LogSoftmax(y) axis=-1", 1e-5);
  onednn_case("x [2,8,6,6] = input\ny [2,8,6,6] = LRN(x) size=5 alpha=0.01 beta=0.6 bias=1.5", 1e-5);
  onednn_case(
      "x [4,10,32] = input\ns [32] = random\nb [32] = random\n"
      "y [4,10,32] = LayerNormalization(x, s, b) axis=-1 epsilon=0.00001",
      1e-5);
  onednn_case(
      "x [4,10,32] = input\ns [10,32] = random\n"
      "y [4,10,32] = LayerNormalization(x, s) axis=1 epsilon=0.00001",
      1e-5);
  onednn_case("x [2,8,6,6] = input\ns [8,1,1] = random\ny [2,8,6,6] = PRelu(x, s)", 1e-6);
}

#define ATTENTION                                                                                          \
  "x [2,7,24] = input\nmask [2,1,1,7] = input\nsplit i64[4] = 2 7 3 8\nmerge i64[3] = 2 7 24\n"            \
  "root [] = 2.8284\nwq [24,24] = random\nwk [24,24] = random\nwv [24,24] = random\nwo [24,24] = random\n" \
  "bq [24] = random\nbk [24] = random\nbv [24] = random\nbo [24] = random\n"                               \
  "{\nqm [2,7,24] = MatMul(x, wq)\nqb [2,7,24] = Add(qm, bq)\n}\n"                                         \
  "{\nkm [2,7,24] = MatMul(x, wk)\nkb [2,7,24] = Add(km, bk)\n}\n"                                         \
  "{\nvm [2,7,24] = MatMul(x, wv)\nvb [2,7,24] = Add(vm, bv)\n}\n"                                         \
  "qr [2,7,3,8] = Reshape(qb, split)\nkr [2,7,3,8] = Reshape(kb, split)\n"                                 \
  "vr [2,7,3,8] = Reshape(vb, split)\nq [2,3,7,8] = Transpose(qr) perm=[0,2,1,3]\n"                        \
  "k [2,3,8,7] = Transpose(kr) perm=[0,2,3,1]\nv [2,3,7,8] = Transpose(vr) perm=[0,2,1,3]\n"               \
  "{\nqk [2,3,7,7] = MatMul(q, k)\nsc [2,3,7,7] = Div(qk, root)\nms [2,3,7,7] = Add(sc, mask)\n}\n"        \
  "p [2,3,7,7] = Softmax(ms) axis=-1\no [2,3,7,8] = MatMul(p, v)\n"                                        \
  "ot [2,7,3,8] = Transpose(o) perm=[0,2,1,3]\nor [2,7,24] = Reshape(ot, merge)\n"                         \
  "{\nom [2,7,24] = MatMul(or, wo)\nob [2,7,24] = Add(om, bo)\ny [2,7,24] = Add(ob, x)\n}\n"

UNIT_TEST(computes_attention_without_moving_anything) {
  onednn_case(ATTENTION, 1e-5);
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(ATTENTION, true);
  cleave_compile_options_t options = {.size = sizeof(options), .threads = 1, .profile = true};
  cleave_message_t message = {.text = ""};
  void *program = NULL;
  ck_assert_int_eq(
      onednn.backend->compile(onednn.state, fusion_region_view(region), &options, &program, &message),
      CLEAVE_OK);
  const cleave_step_time_t *steps = NULL;
  uint32_t count = onednn.backend->profile(program, &steps);
  // Four products, two batched ones and a softmax; no reorder, no transposition.
  ck_assert_uint_eq(count, 7);
  for (uint32_t k = 0; k < count; k++) {
    ck_assert_msg(strstr(steps[k].label, "ref") == NULL, "%s", steps[k].label);
    ck_assert_msg(strstr(steps[k].label, "reorder") == NULL, "%s", steps[k].label);
    ck_assert_uint_ne(steps[k].node, CLEAVE_INDEX_NONE);
  }
  onednn.backend->unload(program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

UNIT_TEST(packs_weights_once_and_scales_constants_only_while_compiling) {
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(
      "x [1,64,8,8] = input\nw [64,64,3,3] = random\nh [] = 0.5\n{\n"
      "y [1,64,8,8] = Conv(x, w) kernel_shape=[3,3] pads=[1,1,1,1]\nz [1,64,8,8] = Mul(y, h)\n}",
      true);
  view_program_t program;
  fusion_region_compile(region, &onednn, 1, &program);
  const cleave_program_info_t *info = onednn.backend->info(program.program);
  ck_assert_uint_ge(info->persistent_bytes, 64 * 64 * 9 * sizeof(float));
  ck_assert_uint_lt(info->persistent_bytes, 2 * 64 * 64 * 9 * sizeof(float));
  ck_assert_int_eq(view_program_run(&program), CLEAVE_OK);
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

UNIT_TEST(reuses_workspace_of_values_that_are_dead) {
  op_backend_t onednn = onednn_create();
  char text[4096] = "x [64,256] = input\nw [256,256] = random\nv0 [64,256] = MatMul(x, w)\n";
  for (int k = 0; k < 20; k++) {
    size_t used = strlen(text);
    (void)snprintf(text + used, sizeof(text) - used, "v%d [64,256] = MatMul(v%d, w)\n", k + 1, k);
  }
  fusion_region_t *region = fusion_region_create(text, true);
  view_program_t program;
  fusion_region_compile(region, &onednn, 1, &program);
  size_t one = 64 * 256 * sizeof(float);
  // Two values at a time; the rest is scratch memory of the products.
  ck_assert_uint_lt(onednn.backend->info(program.program)->workspace_bytes, 12 * one);
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

UNIT_TEST(checks_what_a_run_gets) {
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create("x [3,4] = input\ny [3,4] = Relu(x)", true);
  view_program_t program;
  fusion_region_compile(region, &onednn, 1, &program);
  view_program_input(&program, 0, 2, (int64_t[]){3, 5}, fusion_region_input(region, 0));
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_INVALID_ARGUMENT);
  ck_assert_str_eq(program.message.text, "input 0: expected 48 bytes, found 60");
  view_program_input(&program, 0, 2, (int64_t[]){3, 4}, NULL);
  ck_assert_int_eq(view_program_run(&program), CLEAVE_ERROR_INVALID_ARGUMENT);
  view_program_destroy(&program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

// Weights [N,K] or [K,N], with and without bias, and a factor that is folded into them; results in a Concat.
UNIT_TEST(products_of_few_rows_are_loops_that_read_the_weights_once) {
  static const int sizes[][2] = {{1, 1}, {3, 16}, {4, 31}, {37, 100}, {64, 48}, {150, 37}};
  for (int m = 1; m <= 6; m++) {
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
      int n = sizes[s][0];
      int k = sizes[s][1];
      char text[512];
      char labels[4096];
      (void)snprintf(text, sizeof(text),
                     "x [%d,%d] = input\nw [%d,%d] = random\nv [%d,%d] = random\nb [%d] = random\nf [%d] = "
                     "random\ng [%d,%d] = Gemm(x, w, b) transB=1\nr [%d,%d] = Relu(g)\np [%d,%d] = MatMul(x, "
                     "v)\nq [%d,%d] = Mul(p, f)\nc [%d,%d] = Concat(r, q) axis=1\n",
                     m, k, n, k, k, n, n, n, m, n, m, n, m, n, m, n, m, 2 * n);
      onednn_case(text, 2e-6);
      onednn_labels(text, labels, sizeof(labels));
      // Few rows are multiplied row by row if the model has the weights as [N,K], and without AVX2; others by
      // tiles with AVX2, and with AVX-512 if there is a panel of columns.
      int instructions = kernel_instructions(KERNEL_AVX512);
      bool is_wide = instructions == KERNEL_AVX512 && n >= 64;
      uint32_t loops = onednn_occurrences(labels, "matmul loop");
      uint32_t tiles = onednn_occurrences(labels, "matmul tiles");
      uint32_t by_rows = m > 4 || is_wide ? 0 : instructions == KERNEL_PLAIN ? 2 : 1;
      bool is_tiled = instructions == KERNEL_AVX2 || (is_wide && (m <= 4 || kernel_is_intel()));
      uint32_t tiled = is_tiled ? 2 - by_rows : 0;
      bool is_right = loops == by_rows && tiles == tiled;
      ck_assert_msg(is_right, "%d rows: %s", m, labels);
    }
  }
}

// A bias, a sum and a function behind a product are part of its step, whatever multiplies.
UNIT_TEST(functions_behind_products_take_no_step_of_their_own) {
  static const char *const functions[] = {
      "Relu(s)",           "Gelu(s)", "LeakyRelu(s) alpha=0.2",    "Sigmoid(s)", "HardSwish(s)",
      "Clip(s, low, six)", "Tanh(s)", "Gelu(s) approximate='tanh'"};
  for (int rows = 1; rows <= 130; rows += 3 * rows) {
    for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
      char text[512];
      char labels[4096];
      (void)snprintf(text, sizeof(text),
                     "x [%d,800] = input\nr [%d,150] = input\nw [800,150] = random\nb [150] = random\n"
                     "low [] = -1\nsix [] = 6\n{\ng [%d,150] = Gemm(x, w, b)\ns [%d,150] = Add(g, r)\n"
                     "y [%d,150] = %s\n}\n",
                     rows, rows, rows, rows, rows, functions[f]);
      onednn_case(text, 2e-5);
      onednn_labels(text, labels, sizeof(labels));
      bool may_be_apart = f >= 6 && kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
      ck_assert_msg(onednn_occurrences(labels, "matmul") == 1, "%d rows, %s: %s", rows, functions[f], labels);
      ck_assert_msg(may_be_apart || onednn_occurrences(labels, "eltwise") == 0, "%s: %s", text, labels);
    }
  }
}

// What is not constant may be transposed or cut out: oneDNN's products take it.
UNIT_TEST(products_of_few_rows_with_what_is_no_constant_are_right) {
  onednn_case("x [2,40] = input\nw [24,40] = input\ng [2,24] = Gemm(x, w) transB=1\n", 2e-6);
}

UNIT_TEST(the_rows_of_a_product_with_few_may_be_transposed) {
  onednn_case("x [40,3] = input\nw [24,40] = random\ng [3,24] = Gemm(x, w) transA=1 transB=1 alpha=0.5\n",
              2e-6);
  onednn_case(
      "x [1,2,40] = input\nw [40,24] = random\ng [1,2,24] = MatMul(x, w)\nt [1,24,2] = Transpose(g) "
      "perm=[0,2,1]\n",
      2e-6);
}

UNIT_SUITE("onednn_region")
