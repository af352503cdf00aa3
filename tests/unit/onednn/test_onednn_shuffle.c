// SPDX-License-Identifier: Apache-2.0
// Channel shuffles of the oneDNN backend: one pass over the pixels that joins, deals out and cuts, the same
// numbers as the nodes one by one, and a reason for what only looks like one.
#include "onednn_case.h"

/* Labels of the steps of a region, each on a line of its own. */
/* A unit of ShuffleNet: half of 58 + 58 channels goes through convolutions, all are shuffled and cut. */
#define UNIT                                                                                              \
  "x [1,24,12,10] = input\nw1 [58,24,1,1] = random\nw2 [58,24,1,1] = random\nw3 [58,58,1,1] = random\n"   \
  "d [58,1,3,3] = random\nw4 [116,58,1,1] = random\nw5 [116,58,1,1] = random\n"                           \
  "groups i64[5] = 1 2 58 12 10\nall i64[4] = 1 116 12 10\nchannels i64[1] = 1\nnone i64[1] = 0\n"        \
  "half i64[1] = 58\nend i64[1] = 116\n"                                                                  \
  "a [1,58,12,10] = Conv(x, w1) kernel_shape=[1,1]\nb [1,58,12,10] = Conv(x, w2) kernel_shape=[1,1]\n{\n" \
  "c [1,116,12,10] = Concat(a, b) axis=1\ng [1,2,58,12,10] = Reshape(c, groups)\n"                        \
  "t [1,58,2,12,10] = Transpose(g) perm=[0,2,1,3,4]\ny [1,116,12,10] = Reshape(t, all)\n"                 \
  "low [1,58,12,10] = Slice(y, none, half, channels)\nhigh [1,58,12,10] = Slice(y, half, end, "           \
  "channels)\n}\n"                                                                                        \
  "p [1,58,12,10] = Conv(high, w3) kernel_shape=[1,1]\n"                                                  \
  "q [1,58,12,10] = Conv(p, d) kernel_shape=[3,3] pads=[1,1,1,1] group=58\n{\n"                           \
  "c2 [1,116,12,10] = Concat(low, q) axis=1\ng2 [1,2,58,12,10] = Reshape(c2, groups)\n"                   \
  "t2 [1,58,2,12,10] = Transpose(g2) perm=[0,2,1,3,4]\ny2 [1,116,12,10] = Reshape(t2, all)\n"             \
  "s [1,58,12,10] & u [1,58,12,10] = Split(y2) axis=1\n}\n"                                               \
  "e [1,116,12,10] = Conv(s, w4) kernel_shape=[1,1]\nf [1,116,12,10] = Conv(u, w5) kernel_shape=[1,1]\n"  \
  "z [1,116,12,10] = Add(e, f)\n"

UNIT_TEST(a_unit_of_shuffle_net_copies_its_channels_once) {
  char labels[4096];
  onednn_case(UNIT, 1e-5);
  onednn_labels(UNIT, labels, sizeof(labels));
  ck_assert_msg(onednn_occurrences(labels, "shuffle loop") == 2, "%s", labels);
  ck_assert_msg(onednn_occurrences(labels, "concat") == 0, "%s", labels);
  // The input becomes channels last, and the output row-major.
  ck_assert_msg(onednn_occurrences(labels, "reorder") <= 2, "%s", labels);
}

/* Behind a convolution channels are last; without one, planes are copied. */
UNIT_TEST(shuffles_any_number_of_groups_and_parts) {
  static const struct {
    int batch;
    int groups;
    int channels;
    int cut;
  } cases[] = {{1, 2, 58, 58}, {2, 2, 5, 4},   {3, 2, 20, 21}, {1, 3, 7, 9},
               {2, 4, 8, 1},   {1, 16, 2, 15}, {1, 2, 1, 1}};
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    int n = cases[k].batch;
    int g = cases[k].groups;
    int c = cases[k].channels;
    int cut = cases[k].cut;
    for (int last = 0; last < 2; last++) {
      char first[256];
      char text[2048];
      (void)snprintf(first, sizeof(first),
                     last ? "x0 [%d,6,5,3] = input\nw [%d,6,1,1] = random\na [%d,%d,5,3] = Conv(x0, w) "
                            "kernel_shape=[1,1]\n"
                          : "x0 [%d,%d,5,3] = input\na [%d,%d,5,3] = Tanh(x0)\n",
                     n, c, n, c);
      (void)snprintf(text, sizeof(text),
                     "%sx1 [%d,%d,5,3] = input\n"
                     "groups i64[5] = %d %d %d 5 3\nall i64[4] = %d %d 5 3\nsizes i64[2] = %d %d\n"
                     "{\nc [%d,%d,5,3] = Concat(a, x1) axis=1\nm [%d,%d,%d,5,3] = Reshape(c, groups)\n"
                     "t [%d,%d,%d,5,3] = Transpose(m) perm=[0,2,1,3,4]\ny [%d,%d,5,3] = Reshape(t, all)\n"
                     "low [%d,%d,5,3] & high [%d,%d,5,3] = Split(y, sizes) axis=1\n}\n"
                     "output low\nz [%d,%d,5,3] = Tanh(high)\n",
                     first, n, (g - 1) * c, n, g, c, n, g * c, cut, g * c - cut, n, g * c, n, g, c, n, c, g,
                     n, g * c, n, cut, n, g * c - cut, n, g * c - cut);
      onednn_case(text, 1e-5);
    }
  }
}

UNIT_TEST(shuffles_planes_of_its_inputs) {
  onednn_case(
      "x [2,6,5,3] = input\ngroups i64[5] = 2 3 2 5 3\nall i64[4] = 2 6 5 3\n{\n"
      "m [2,3,2,5,3] = Reshape(x, groups)\nt [2,2,3,5,3] = Transpose(m) perm=[0,2,1,3,4]\n"
      "y [2,6,5,3] = Reshape(t, all)\n}\n",
      0);
  onednn_case(
      "x [1,4,5,3] = input\nq [1,8,5,3] = input\ngroups i64[5] = 1 3 4 5 3\nall i64[4] = 1 12 5 3\n"
      "from i64[2] = 3 0\nto i64[2] = 9 99\naxes i64[2] = 1 2\n{\n"
      "c [1,12,5,3] = Concat(x, q) axis=-3\n"
      "m [1,3,4,5,3] = Reshape(c, groups)\nt [1,4,3,5,3] = Transpose(m) perm=[0,2,1,3,4]\n"
      "y [1,12,5,3] = Reshape(t, all)\ns [1,6,5,3] = Slice(y, from, to, axes)\n}\nz [1,6,5,3] = Tanh(s)\n",
      1e-6);
}

UNIT_TEST(says_what_is_no_shuffle_of_channels) {
  static const char reason[] =
      "Transpose 'node' and the views around it are not a shuffle of the channels of images";
  onednn_refuses(
      "x [1,24,8,8] = input\ngroups i64[5] = 2 2 12 8 4\nall i64[4] = 1 24 8 8\n{\n"
      "m [2,2,12,8,4] = Reshape(x, groups)\nt [2,12,2,8,4] = Transpose(m) perm=[0,2,1,3,4]\n"
      "y [1,24,8,8] = Reshape(t, all)\n}\n",
      reason);
  onednn_refuses(
      "x [1,24,8,8] = input\ngroups i64[5] = 1 2 12 8 8\nall i64[4] = 1 24 8 8\nfrom i64[1] = 1\nto i64[1] = "
      "3\n"
      "axes i64[1] = 2\n{\nm [1,2,12,8,8] = Reshape(x, groups)\n"
      "t [1,12,2,8,8] = Transpose(m) perm=[0,2,1,3,4]\ny [1,24,8,8] = Reshape(t, all)\n"
      "s [1,24,2,8] = Slice(y, from, to, axes)\n}\n",
      reason);
  onednn_refuses(
      "x [1,9,8,8] = input\nq [1,15,8,8] = input\ngroups i64[5] = 1 2 12 8 8\nall i64[4] = 1 24 8 8\n{\n"
      "c [1,24,8,8] = Concat(x, q) axis=1\nm [1,2,12,8,8] = Reshape(c, groups)\n"
      "t [1,12,2,8,8] = Transpose(m) perm=[0,2,1,3,4]\ny [1,24,8,8] = Reshape(t, all)\n}\n",
      reason);
}

UNIT_SUITE("onednn_shuffle")
