// SPDX-License-Identifier: Apache-2.0
// The operators of random graphs: how each is written, and the shape of its result; false where it does not
// fit.
#include "sweep_maker.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum { LARGEST = 4000 };

typedef sweep_value_t value_t;
typedef sweep_maker_t maker_t;

static int below(maker_t *maker, int bound) {
  return (int)sweep_below(maker->sweep, (uint32_t)bound);
}

static int elements(const value_t *value) {
  int count = 1;
  for (int d = 0; d < value->rank; d++) {
    count *= value->dims[d];
  }
  return count;
}

/* A value, the later ones more often. */
static int pick(maker_t *maker) {
  int reach = below(maker, 3) == 0 ? maker->count : (maker->count < 4 ? maker->count : 4);
  return maker->count - 1 - below(maker, reach);
}

static void print_dims(maker_t *maker, const value_t *value) {
  for (int d = 0; d < value->rank; d++) {
    cleave_text_format(&maker->text, "%s%d", d == 0 ? "[" : ",", value->dims[d]);
  }
  cleave_text_add(&maker->text, value->rank == 0 ? "[]" : "]");
}

/* Begins "vK = ", and gives the statement's result a shape. */
static value_t *start(maker_t *maker, const value_t *shape) {
  value_t *value = &maker->values[maker->count];
  *value = *shape;
  value->uses = 0;
  cleave_text_format(&maker->text, "%sv%d = ", maker->count == 0 ? "" : "; ", maker->count);
  maker->count++;
  return value;
}

static void read_value(maker_t *maker, int index) {
  cleave_text_format(&maker->text, "v%d", index);
  maker->values[index].uses++;
}

static bool end(maker_t *maker) {
  cleave_text_add(&maker->text, ") ");
  return true;
}

/* The operand, what follows it, and the end. */
static bool finish(maker_t *maker, int from, const char *rest) {
  read_value(maker, from);
  cleave_text_add(&maker->text, rest);
  return end(maker);
}

/* ", $cK^[dims]" */
static void add_constant(maker_t *maker, const char *content, const value_t *shape) {
  cleave_text_format(&maker->text, ", $c%d%s", maker->constants++, content);
  print_dims(maker, shape);
}

static bool add_convolution(maker_t *maker, int from) {
  static const int outs[] = {3, 8, 16, 17, 5, 32, 16};
  value_t x = maker->values[from];
  if (x.rank != 4 || x.dims[2] < 2 || x.dims[3] < 2) {
    return false;
  }
  bool deep = below(maker, 4) == 0;
  int kernel = below(maker, 2) == 0 && x.dims[2] > 2 && x.dims[3] > 2 ? 3 : 1;
  int stride = kernel == 3 ? 1 + below(maker, 2) : 1;
  int groups = deep ? x.dims[1] : 1;
  value_t w = {
      .rank = 4,
      .dims = {deep ? x.dims[1] : outs[below(maker, COUNT(outs))], x.dims[1] / groups, kernel, kernel}};
  value_t bias = {.rank = 1, .dims = {w.dims[0]}};
  value_t y = x;
  y.dims[1] = w.dims[0];
  y.dims[2] = (x.dims[2] - 1) / stride + 1;
  y.dims[3] = (x.dims[3] - 1) / stride + 1;
  (void)start(maker, &y);
  cleave_text_format(&maker->text, "Conv{group=%d, strides=[%d,%d], pads=[%d,%d,%d,%d]}(", groups, stride,
                     stride, kernel / 2, kernel / 2, kernel / 2, kernel / 2);
  read_value(maker, from);
  add_constant(maker, "^", &w);
  if (below(maker, 2) == 0) {
    add_constant(maker, "", &bias);
  }
  return end(maker);
}

static bool add_transposed(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank != 4 || elements(&x) > LARGEST / 4) {
    return false;
  }
  value_t w = {.rank = 4, .dims = {x.dims[1], 3 + below(maker, 3), 2, 2}};
  value_t y = {.rank = 4, .dims = {x.dims[0], w.dims[1], 2 * x.dims[2], 2 * x.dims[3]}};
  (void)start(maker, &y);
  cleave_text_add(&maker->text, "ConvTranspose{strides=[2,2]}(");
  read_value(maker, from);
  add_constant(maker, "^", &w);
  return end(maker);
}

static bool add_product(maker_t *maker, int from) {
  static const int outs[] = {4, 16, 17, 8};
  value_t x = maker->values[from];
  if (x.rank < 2 || x.rank > 4) {
    return false;
  }
  int inner = x.dims[x.rank - 1];
  value_t w = {.rank = 2, .dims = {inner, outs[below(maker, COUNT(outs))]}};
  value_t bias = {.rank = 1, .dims = {w.dims[1]}};
  value_t y = x;
  bool gemm = x.rank == 2 && below(maker, 2) == 0;
  y.dims[y.rank - 1] = w.dims[1];
  (void)start(maker, &y);
  cleave_text_add(&maker->text, gemm ? "Gemm(" : "MatMul(");
  read_value(maker, from);
  /* Deviation goes by the first dim, which here is what is summed over. */
  value_t turned = {.rank = 2, .dims = {w.dims[1], w.dims[0]}};
  if (gemm) {
    add_constant(maker, "", &w);
    add_constant(maker, "", &bias);
  } else {
    cleave_text_add(&maker->text, ", Transpose(");
    cleave_text_format(&maker->text, "$c%d^", maker->constants++);
    print_dims(maker, &turned);
    cleave_text_add(&maker->text, ")");
  }
  return end(maker);
}

/* x times its own transpose, scaled. */
static bool add_square(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank < 2 || x.rank > 3 || x.dims[x.rank - 2] > 24) {
    return false;
  }
  value_t y = x;
  y.dims[y.rank - 1] = x.dims[x.rank - 2];
  (void)start(maker, &y);
  cleave_text_add(&maker->text, "Mul(MatMul(");
  read_value(maker, from);
  cleave_text_add(&maker->text, x.rank == 2 ? ", Transpose{perm=[1,0]}(" : ", Transpose{perm=[0,2,1]}(");
  read_value(maker, from);
  cleave_text_format(&maker->text, ")), #%.4f", 1.0 / (double)x.dims[x.rank - 1]);
  return end(maker);
}

static bool add_pooling(maker_t *maker, int from) {
  static const char *const ops[] = {
      "MaxPool{kernel_shape=[2,2], strides=[2,2]}(", "AveragePool{kernel_shape=[2,2], strides=[2,2]}(",
      "MaxPool{kernel_shape=[3,3], pads=[1,1,1,1]}(", "GlobalAveragePool(", "ReduceMean("};
  value_t x = maker->values[from];
  int kind = below(maker, COUNT(ops));
  if (x.rank != 4 || (kind < 2 && (x.dims[2] < 2 || x.dims[3] < 2))) {
    return false;
  }
  value_t y = x;
  for (int d = 2; d < 4; d++) {
    y.dims[d] = kind < 2 ? x.dims[d] / 2 : (kind == 2 ? x.dims[d] : 1);
  }
  (void)start(maker, &y);
  cleave_text_add(&maker->text, ops[kind]);
  return finish(maker, from, kind == 4 ? ", #[2,3]" : "");
}

static bool add_normalization(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank < 2 || x.dims[x.rank - 1] < 2) {
    return false;
  }
  value_t last = {.rank = 1, .dims = {x.dims[x.rank - 1]}};
  value_t channels = {.rank = 1, .dims = {x.dims[1]}};
  int kind = below(maker, 3);
  (void)start(maker, &x);
  if (kind == 0) {
    cleave_text_format(&maker->text, "Softmax{axis=%d}(", below(maker, x.rank));
    read_value(maker, from);
  } else if (kind == 1) {
    cleave_text_add(&maker->text, "LayerNormalization{epsilon=0.1}(");
    read_value(maker, from);
    add_constant(maker, "", &last);
    add_constant(maker, "", &last);
  } else {
    cleave_text_add(&maker->text, "BatchNormalization(");
    read_value(maker, from);
    add_constant(maker, "", &channels);
    add_constant(maker, "", &channels);
    add_constant(maker, "", &channels);
    add_constant(maker, "+", &channels);
  }
  return end(maker);
}

static bool add_unary(maker_t *maker, int from) {
  static const char *const ops[] = {"Relu(",       "Sigmoid(",  "Tanh(", "LeakyRelu{alpha=0.2}(",
                                    "HardSwish(",  "Elu(",      "Abs(",  "Neg(",
                                    "Gelu(",       "Softplus(", "Mish(", "Identity(",
                                    "HardSigmoid("};
  value_t x = maker->values[from];
  (void)start(maker, &x);
  if (below(maker, 6) == 0) {
    cleave_text_add(&maker->text, "Clip(");
    read_value(maker, from);
    cleave_text_add(&maker->text, ", #-0.5, #1.5");
  } else {
    cleave_text_add(&maker->text, ops[below(maker, COUNT(ops))]);
    read_value(maker, from);
  }
  return end(maker);
}

/* With another value of the same shape, or one that broadcasts to it, or a constant. */
static bool add_binary(maker_t *maker, int from) {
  static const char *const ops[] = {"Add(", "Sub(", "Mul(", "Max(", "Min("};
  value_t x = maker->values[from];
  value_t operand = x;
  const char *op = ops[below(maker, COUNT(ops))];
  int other = -1;
  for (int tries = 0; tries < 8 && other < 0; tries++) {
    int k = below(maker, maker->count);
    bool fits = k != from && maker->values[k].rank == x.rank;
    for (int d = 0; fits && d < x.rank; d++) {
      fits = maker->values[k].dims[d] == x.dims[d] || maker->values[k].dims[d] == 1;
    }
    other = fits ? k : -1;
  }
  for (int d = 0; d < operand.rank; d++) {
    operand.dims[d] = below(maker, 2) == 0 ? 1 : operand.dims[d];
  }
  (void)start(maker, &x);
  cleave_text_add(&maker->text, op);
  /* The product of two sums is squashed. */
  bool squash = strcmp(op, "Mul(") == 0;
  if (other >= 0 && below(maker, 2) == 0) {
    cleave_text_add(&maker->text, squash ? "Sigmoid(" : "");
    read_value(maker, other);
    cleave_text_add(&maker->text, squash ? "), " : ", ");
    read_value(maker, from);
  } else {
    read_value(maker, from);
    if (other >= 0) {
      cleave_text_add(&maker->text, squash ? ", Tanh(" : ", ");
      read_value(maker, other);
      cleave_text_add(&maker->text, squash ? ")" : "");
    } else {
      add_constant(maker, "", &operand);
    }
  }
  return end(maker);
}

static bool add_transpose(maker_t *maker, int from) {
  value_t x = maker->values[from];
  value_t y = x;
  value_t order = {.rank = x.rank};
  for (int d = 0; d < x.rank; d++) {
    /* Shuffled from the inside out. */
    int other = below(maker, d + 1);
    order.dims[d] = order.dims[other];
    order.dims[other] = d;
  }
  for (int d = 0; d < x.rank; d++) {
    y.dims[d] = x.dims[order.dims[d]];
  }
  (void)start(maker, &y);
  cleave_text_add(&maker->text, "Transpose{perm=");
  print_dims(maker, &order);
  cleave_text_add(&maker->text, "}(");
  return finish(maker, from, "");
}

/* Merges two neighbours, or splits a dimension. */
static bool add_reshape(maker_t *maker, int from) {
  value_t x = maker->values[from];
  value_t y = x;
  int at = x.rank > 1 ? below(maker, x.rank - 1) : 0;
  if (x.rank > 2 && below(maker, 2) == 0) {
    y.dims[at] *= x.dims[at + 1];
    for (int d = at + 1; d + 1 < x.rank; d++) {
      y.dims[d] = x.dims[d + 1];
    }
    y.rank--;
  } else if (x.rank > 0 && x.rank < 4) {
    int part = x.dims[at] % 2 == 0 ? 2 : 1;
    for (int d = x.rank; d > at; d--) {
      y.dims[d] = x.dims[d - 1];
    }
    y.dims[at] = x.dims[at] / part;
    y.dims[at + 1] = part;
    y.rank++;
  } else {
    return false;
  }
  (void)start(maker, &y);
  cleave_text_add(&maker->text, "Reshape(");
  read_value(maker, from);
  cleave_text_add(&maker->text, ", #");
  print_dims(maker, &y);
  return end(maker);
}

static bool add_concat(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank < 1 || elements(&x) > LARGEST / 2) {
    return false;
  }
  int axis = below(maker, 2) == 0 && x.rank > 1 ? 1 : below(maker, x.rank);
  int other = below(maker, maker->count);
  value_t b = maker->values[other];
  bool fits = b.rank == x.rank && elements(&b) <= LARGEST / 2;
  for (int d = 0; fits && d < x.rank; d++) {
    fits = d == axis || b.dims[d] == x.dims[d];
  }
  other = fits ? other : from;
  value_t y = x;
  y.dims[axis] += maker->values[other].dims[axis];
  (void)start(maker, &y);
  cleave_text_format(&maker->text, "Concat{axis=%d}(", axis);
  read_value(maker, from);
  cleave_text_add(&maker->text, ", ");
  read_value(maker, other);
  return end(maker);
}

static bool add_slice(maker_t *maker, int from) {
  value_t x = maker->values[from];
  int axis = x.rank > 0 ? below(maker, x.rank) : 0;
  if (x.rank < 1 || x.dims[axis] < 2) {
    return false;
  }
  int begin = below(maker, x.dims[axis]);
  int size = 1 + below(maker, x.dims[axis] - begin);
  value_t y = x;
  y.dims[axis] = size;
  (void)start(maker, &y);
  cleave_text_add(&maker->text, "Slice(");
  read_value(maker, from);
  cleave_text_format(&maker->text, ", #[%d], #[%d], #[%d]", begin, begin + size, axis);
  return end(maker);
}

static bool add_reduction(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank < 2) {
    return false;
  }
  int axis = below(maker, x.rank);
  value_t y = x;
  y.dims[axis] = 1;
  (void)start(maker, &y);
  cleave_text_add(&maker->text, below(maker, 2) == 0 ? "ReduceMax(" : "ReduceMean(");
  read_value(maker, from);
  cleave_text_format(&maker->text, ", #[%d]", axis);
  return end(maker);
}

static bool add_resize(maker_t *maker, int from) {
  value_t x = maker->values[from];
  if (x.rank != 4 || elements(&x) > LARGEST / 4) {
    return false;
  }
  value_t y = x;
  y.dims[2] *= 2;
  y.dims[3] *= 2;
  (void)start(maker, &y);
  cleave_text_format(&maker->text, "Resize{mode=%s}(", below(maker, 2) == 0 ? "linear" : "nearest");
  read_value(maker, from);
  cleave_text_add(&maker->text, ", _, _, #");
  print_dims(maker, &y);
  return end(maker);
}

void sweep_maker_input(maker_t *maker, int name, const value_t *shape) {
  (void)start(maker, shape);
  cleave_text_format(&maker->text, "Identity(x%d", name);
  print_dims(maker, shape);
  (void)end(maker);
}

bool sweep_maker_step(maker_t *maker) {
  static bool (*const operators[])(maker_t *, int) = {
      add_convolution, add_convolution, add_convolution,   add_transposed, add_product,   add_product,
      add_square,      add_pooling,     add_normalization, add_unary,      add_unary,     add_unary,
      add_binary,      add_binary,      add_binary,        add_binary,     add_transpose, add_reshape,
      add_concat,      add_slice,       add_reduction,     add_resize};
  int from = pick(maker);
  return operators[below(maker, COUNT(operators))](maker, from);
}
