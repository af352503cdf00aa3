// SPDX-License-Identifier: Apache-2.0
// Generated kernels (backends/kernels) inside regions of the oneDNN backend: in plain and blocked layouts,
// with channels last, over rows, with several results, alone where oneDNN has no primitive.
#include "onednn_case.h"

UNIT_TEST(runs_what_oneDNN_has_no_primitive_for_as_single_nodes) {
  static const char *const nodes[] = {
      "x [3,70] = input\ny [3,70] = Erf(x)\n",
      "x [3,70] = input\ny [3,70] = Sub(x, x)\n",
      "x [3,70] = input\na i64[1] = -1\ny [3,1] = ReduceLogSumExp(x, a) keepdims=1\n",
      "x [2,4,5,7] = input\ns [4] = random\nb [4] = random\ny [2,4,5,7] = InstanceNormalization(x, s, b) "
      "epsilon=0.001\n",
      "x [] = input\ny [] = Sin(x)\n",
  };
  for (size_t k = 0; k < sizeof(nodes) / sizeof(*nodes); k++) {
    onednn_case(nodes[k], 1e-5);
  }
}

UNIT_TEST(runs_fusions_that_read_values_twice_and_have_several_results) {
  onednn_case(
      "x [6,50,48] = input\ny [6,50,48] = input\nb [48] = random\nr [6,50,1] = input\nhalf [] = 0.5\n{ "
      "kernel\n"
      "s [6,50,48] = Add(x, b)\nt [6,50,48] = Tanh(s)\nm [6,50,48] = Mul(t, s)\nu [6,50,48] = Sub(m, y)\n"
      "v [6,50,48] = Mul(u, r)\nw [6,50,48] = Mul(v, half)\n}\noutput s\noutput m\n",
      1e-5);
}

UNIT_TEST(bools_and_integers_stay_inside_of_a_fusion) {
  onednn_case(
      "x [6,50,48] = input\ny [6,50,48] = input\nzero [] = 0\n{ kernel\n"
      "p bool[6,50,48] = Greater(x, zero)\nq bool[6,50,48] = Less(x, y)\nr bool[6,50,48] = And(p, q)\n"
      "w [6,50,48] = Where(r, x, y)\n}\n",
      1e-6);
}

UNIT_TEST(reduces_rows_with_what_is_around_them) {
  onednn_case(
      "x [5,20,96] = input\ny [5,20,96] = input\ns [96] = random\nb [96] = random\n{ kernel\n"
      "z [5,20,96] = Add(x, y)\nn [5,20,96] = LayerNormalization(z, s, b) axis=-1 epsilon=0.001\n"
      "e [5,20,96] = Erf(n)\n}\noutput z\n",
      1e-5);
  onednn_case(
      "x [2,3,20,30] = input\nm [20,30] = input\nc [] = 0.25\na i64[1] = -1\n{ kernel\n"
      "q [2,3,20,30] = Mul(x, c)\nk [2,3,20,30] = Add(q, m)\np [2,3,20,30] = Softmax(k) axis=-1\n"
      "t [2,3,20,1] = ReduceMax(p, a) keepdims=1\nu [2,3,20,30] = Div(p, t)\n}\noutput t\n",
      1e-5);
}

/* Behind convolutions: whole tensors, vectors of channels, images and scalars, in whatever layout they are.
 */
#define AROUND(channels)                                                                             \
  "x [2,16,10,12] = input\nw [" channels ",16,3,3] = random\nv [" channels                           \
  ",16,1,1] = random\n"                                                                              \
  "s [" channels ",1,1] = random\nk [2," channels ",1,1] = input\nm [10,12] = input\nz [2," channels \
  ",10,12] = input\nc [2," channels ",10,12] = Conv(x, w) pads=[1,1,1,1]\nd [2," channels            \
  ",10,12] = Conv(x, v)\n"                                                                           \
  "{ kernel\n"                                                                                       \
  "e [2," channels ",10,12] = Mul(c, s)\nf [2," channels ",10,12] = Add(e, d)\ng [2," channels       \
  ",10,12] = Tanh(f)\nh [2," channels ",10,12] = Mul(g, f)\ni [2," channels                          \
  ",10,12] = Add(h, m)\nj [2," channels ",10,12] = Mul(i, k)\nl [2," channels                        \
  ",10,12] = Sub(j, z)\n}\noutput g\n"                                                               \
  "o [2," channels ",5,6] = MaxPool(l) kernel_shape=[2,2] strides=[2,2]\n"

UNIT_TEST(runs_in_the_layout_of_its_operands) {
  onednn_case(AROUND("64"), 1e-4);
  onednn_case(AROUND("24"), 1e-4);
  onednn_case(AROUND("5"), 1e-4);
}

UNIT_TEST(refuses_what_is_no_program) {
  onednn_refuses("x [4,8] = input\n{ kernel\ny [4,8] = Relu(x)\nz [8,4] = Transpose(y)\n}",
                 "Transpose 'node': its operand is computed inside");
  onednn_refuses("x [?,8] = input\n{ kernel\ny [?,8] = Relu(x)\nz [?,8] = Tanh(y)\n}",
                 "Relu 'node': a shape is not known");
  onednn_refuses("x i64[4,8] = input\n{ kernel\ny i64[4,8] = Neg(x)\nz i64[4,8] = Abs(y)\n}",
                 "Neg 'node': value 'value' is not float32");
}

UNIT_SUITE("onednn_generated")
