// SPDX-License-Identifier: Apache-2.0
// Special values on the oneDNN backend: NaN, infinities, signed zeros, denormals, huge numbers, and the
// places where functions saturate. Each region runs with each of them, alone among ordinary numbers,
// everywhere, and all of them together, and must give what the reference backend gives: as single nodes and
// as fusions, on one thread and on several, and with ordinary numbers again right after.
#include <math.h>

#include "onednn_case.h"

enum { MAX_INPUTS = 8, MAX_ELEMENTS = 1 << 16 };

static const float specials[] = {NAN,    INFINITY, -INFINITY, 0.0F,  -0.0F,  1e-40F,  -1e-40F,
                                 1e-30F, 1e15F,    -1e15F,    1e30F, -1e30F, 3.4e38F, -3.4e38F,
                                 88.5F,  -87.2F,   -104.F,    40.0F, 20.0F,  -9.0F,   -12.0F,
                                 -17.0F, -20.0F,   -40.0F,    6.0F,  -3.0F};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* How a special value is laid out. */
typedef enum placing { FIRST, MIDDLE, LAST, ALL, MIXED, PLACINGS } placing_t;

typedef struct run {
  view_program_t program;
  float *inputs[MAX_INPUTS];
  uint32_t input_count;
  int64_t counts[MAX_INPUTS];
} run_t;

static void run_create(run_t *run, const op_backend_t *backend, const char *text, bool fused, int32_t threads,
                       fusion_region_t **region) {
  *region = fusion_region_create(text, fused);
  fusion_region_compile(*region, backend, threads, &run->program);
  const cleave_region_view_t *view = fusion_region_view(*region);
  run->input_count = view->input_count;
  ck_assert_uint_le(run->input_count, MAX_INPUTS);
  for (uint32_t k = 0; k < view->input_count; k++) {
    const cleave_tensor_view_t *tensor = &view->values[view->inputs[k]].tensor;
    run->counts[k] = cleave_view_element_count(tensor);
    run->inputs[k] = malloc((size_t)run->counts[k] * sizeof(float));
    ck_assert_ptr_nonnull(run->inputs[k]);
    view_program_input(&run->program, k, tensor->rank, tensor->dims, run->inputs[k]);
  }
}

static void run_destroy(run_t *run, fusion_region_t *region) {
  view_program_destroy(&run->program);
  fusion_region_destroy(region);
  for (uint32_t k = 0; k < run->input_count; k++) {
    free(run->inputs[k]);
  }
}

/* Ordinary numbers of the region, then the special one into the first input, or into all. */
static void fill(run_t *run, fusion_region_t *region, int special, placing_t placing, bool everywhere) {
  for (uint32_t k = 0; k < run->input_count; k++) {
    float *x = run->inputs[k];
    int64_t count = run->counts[k];
    memcpy(x, fusion_region_input(region, k), (size_t)count * sizeof(float));
    if (special < 0 || (k > 0 && !everywhere)) {
      continue;
    }
    float value = specials[special];
    switch (placing) {
      case FIRST: x[0] = value; break;
      case MIDDLE: x[count / 2] = value; break;
      case LAST: x[count - 1] = value; break;
      case ALL:
        for (int64_t e = 0; e < count; e++) {
          x[e] = value;
        }
        break;
      default:
        for (int64_t e = 0; e < count; e++) {
          x[e] = specials[(special + e) % SPECIALS];
        }
    }
  }
}

/* Gelu of oneDNN 3 with AVX-512 doubles its input on the way, and is off by 6e-7 near -3. */
static bool is_rough(const char *text) {
  return onednn_major() >= 3 && strstr(text, "Gelu(c)\n") != NULL;
}

static bool same(float a, float e, double absolute) {
  if (isnan(a) || isnan(e)) {
    return isnan(a) && isnan(e);
  }
  return a == e ||
         (isfinite(a) && isfinite(e) && fabs((double)a - (double)e) <= absolute + 2e-5 * fabs((double)e));
}

/* Number of elements that differ; the first one is printed. */
static int compare(const run_t *actual, const run_t *expected, double absolute, const char *what, int special,
                   placing_t placing, const char *text) {
  static const char *const placings[] = {"first", "in the middle", "last", "everywhere", "and the others"};
  for (uint32_t o = 0; o < expected->program.output_count; o++) {
    const float *a = actual->program.outputs[o].data;
    const float *e = expected->program.outputs[o].data;
    int64_t count = cleave_view_element_count(&expected->program.outputs[o]);
    for (int64_t k = 0; k < count; k++) {
      bool doubled = is_rough(text) && e[k] > 1.7e38F && a[k] == INFINITY;
      if (!same(a[k], e[k], absolute) && !doubled) {
        printf("%s, %g %s: output %u[%lld]: expected %.7g, found %.7g in\n%s\n", what,
               special < 0 ? 0.0 : (double)specials[special], special < 0 ? "(ordinary)" : placings[placing],
               (unsigned)o, (long long)k, (double)e[k], (double)a[k], text);
        (void)fflush(stdout);
        return 1;
      }
    }
  }
  return 0;
}

static int check_variant(const op_backend_t *onednn, const char *text, double absolute, bool sums, bool fused,
                         int32_t threads) {
  char what[32];
  int wrong = 0;
  op_backend_t cpu = op_backend_cpu();
  fusion_region_t *plain = NULL;
  fusion_region_t *region = NULL;
  run_t expected;
  run_t actual;
  (void)snprintf(what, sizeof what, "%s, %d threads", fused ? "fused" : "single", (int)threads);
  run_create(&expected, &cpu, text, false, 1, &plain);
  run_create(&actual, onednn, text, fused, threads, &region);
  for (int step = 0; step < SPECIALS * PLACINGS * 2; step++) {
    placing_t placing = (placing_t)(step / 2 % PLACINGS);
    int special = step / 2 / PLACINGS;
    bool everywhere = step % 2 == 1;
    // Sums of many huge numbers depend on their order.
    bool huge = fabsf(specials[special]) > 1e38F && placing == ALL;
    if ((everywhere && actual.input_count < 2) || (sums && (placing == MIXED || huge))) {
      continue;
    }
    for (int ordinary = 0; ordinary < 2; ordinary++) {
      if (ordinary == 1 && special > 1) {
        continue;
      }
      fill(&expected, plain, ordinary == 0 ? special : -1, placing, everywhere);
      fill(&actual, plain, ordinary == 0 ? special : -1, placing, everywhere);
      ck_assert_msg(view_program_run(&expected.program) == CLEAVE_OK, "cpu: %s",
                    expected.program.message.text);
      ck_assert_msg(view_program_run(&actual.program) == CLEAVE_OK, "run: %s", actual.program.message.text);
      wrong += compare(&actual, &expected, absolute, what, ordinary == 0 ? special : -1, placing, text);
    }
  }
  run_destroy(&actual, region);
  run_destroy(&expected, plain);
  op_backend_destroy(&cpu);
  return wrong;
}

/* As single nodes on one thread, and fused on two. */
static int check_text(const char *text, double absolute, bool sums) {
  op_backend_t onednn = onednn_create();
  int wrong = check_variant(&onednn, text, absolute, sums, false, 1);
  wrong += check_variant(&onednn, text, absolute, sums, true, 2);
  op_backend_destroy(&onednn);
  return wrong;
}

static const char *const unary[] = {
    "Abs",
    "Celu",
    "Clip(c, zero, six)",
    "Clip(c, one)",
    "Clip(c, -, one)",
    "Elu",
    "Exp",
    "Gelu",
    "Gelu tanh",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Max(c, one)",
    "Min(c, one)",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Sqrt",
    "Swish",
    "Tanh",
};

/* "Relu(c)" of "Relu". */
static void spell(char *out, size_t size, const char *op) {
  if (strchr(op, '(') != NULL) {
    (void)snprintf(out, size, "%s", op);
  } else if (strcmp(op, "Gelu tanh") == 0) {
    (void)snprintf(out, size, "Gelu(c) approximate='tanh'");
  } else {
    (void)snprintf(out, size, "%s(c)", op);
  }
}

static const char constants[] = "zero [] = 0\nsix [] = 6\none [] = 1\n";

UNIT_TEST(pointwise_operators_keep_them_alone) {
  int wrong = 0;
  for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
    char op[64];
    char text[512];
    spell(op, sizeof op, unary[k]);
    (void)snprintf(text, sizeof text, "%sc [1,83] = input\n{\ny [1,83] = %s\n}\n", constants, op);
    wrong += check_text(text, is_rough(text) ? 6e-7 : 3e-7, false);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_TEST(pointwise_operators_keep_them_after_products) {
  int wrong = 0;
  for (size_t k = 0; k < sizeof unary / sizeof *unary; k++) {
    char op[64];
    char text[512];
    spell(op, sizeof op, unary[k]);
    (void)snprintf(text, sizeof text,
                   "%sx [5,7] = input\nw [7,19] = 0.5\n{\nc [5,19] = MatMul(x, w)\ny [5,19] = %s\n}\n",
                   constants, op);
    wrong += check_text(text, 2e-6, true);
    (void)snprintf(text, sizeof text,
                   "%sx [1,3,5,5] = input\nw [20,3,1,1] = 0.25\nb [20] = random\n{\n"
                   "c [1,20,5,5] = Conv(x, w, b)\ny [1,20,5,5] = %s\n}\n",
                   constants, op);
    wrong += check_text(text, 2e-6, true);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_TEST(swish_of_large_images_keeps_them) {
  const char *text =
      "x [1,3,40,40] = input\nw [20,3,1,1] = 0.25\n{\nc [1,20,40,40] = Conv(x, w)\n"
      "y [1,20,40,40] = Swish(c)\n}\n";
  ck_assert_int_eq(check_text(text, 2e-6, true), 0);
}

UNIT_TEST(extremes_of_two_tensors_keep_them) {
  static const char *const operands[] = {"2,20,5,5", "1,20,1,1", "5", "1"};
  int wrong = 0;
  for (size_t k = 0; k < 2 * sizeof operands / sizeof *operands; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "x [2,3,5,5] = input\nm [%s] = input\nw [20,3,1,1] = 0.25\n{\n"
                   "c [2,20,5,5] = Conv(x, w)\ne [2,20,5,5] = %s(c, m)\ny [2,20,5,5] = Relu(e)\n}\n",
                   operands[k / 2], k % 2 == 0 ? "Max" : "Min");
    wrong += check_text(text, 2e-6, true);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_TEST(reductions_and_poolings_keep_them) {
  static const char *const texts[] = {
      "x [3,37] = input\na i64[1] = 1\n{\nm [3,1] = ReduceMax(x, a)\n}\n",
      "x [3,37] = input\na i64[1] = 0\n{\nm [1,37] = ReduceMin(x, a)\n}\n",
      "x [2,3,4,5] = input\na i64[2] = 0 2\n{\nm [3,5] = ReduceMax(x, a) keepdims=0\ny [3,5] = Exp(m)\n}\n",
      "x [2,3,4,5] = input\na i64[2] = 1 3\n{\nm [2,4] = ReduceMin(x, a) keepdims=0\n}\n",
      "x [41] = input\na i64[1] = 0\n{\nm [1] = ReduceMax(x, a)\n}\n",
      "x [2,5,4,3] = input\na i64[2] = 2 3\n{\nm [2,5,1,1] = ReduceMax(x, a)\ny [2,5,1,1] = Neg(m)\n}\n",
      "x [2,20,5,5] = input\n{\ny [2,20,1,1] = GlobalMaxPool(x)\n}\n",
      "x [2,20,5,5] = input\n{\ny [2,20,4,4] = MaxPool(x) kernel_shape=[2,2]\n}\n",
      "x [1,3,7] = input\n{\nm [1,3,4] = MaxPool(x) kernel_shape=[3] strides=[2] pads=[1,1]\n"
      "y [1,3,4] = Relu(m)\n}\n",
      "x [1,16,6,6] = input\nw [16,16,1,1] = 0.0625\nc [1,16,6,6] = Conv(x, w)\n"
      "y [1,16,3,3] = MaxPool(c) kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]\n",
      "x [1,2,4,4,4] = input\n{\ny [1,2,2,2,2] = MaxPool(x) kernel_shape=[2,2,2] dilations=[2,2,2]\n}\n",
      "x [2,20,5,5] = input\n{\nm [2,20,1,1] = GlobalAveragePool(x)\ny [2,20,1,1] = Relu(m)\n}\n",
      "x [2,20,5,5] = input\n{\ny [2,20,2,2] = AveragePool(x) kernel_shape=[2,2] strides=[2,2]\n}\n",
      "x [3,37] = input\na i64[1] = 1\n{\nm [3,1] = ReduceSum(x, a)\ny [3,1] = Sigmoid(m)\n}\n",
  };
  int wrong = 0;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    wrong += check_text(texts[k], 2e-6, true);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_TEST(softmax_keeps_them_along_any_axis) {
  int wrong = 0;
  for (int k = 0; k < 6; k++) {
    char text[512];
    (void)snprintf(text, sizeof text, "x [3,5,19] = input\ny [3,5,19] = %s(x) axis=%d\n",
                   k < 3 ? "Softmax" : "LogSoftmax", k % 3);
    wrong += check_text(text, 8e-6, true);
  }
  ck_assert_int_eq(wrong, 0);
}

/* The standard's own body of Attention and Softmax, and Attention itself, with masks. */
UNIT_TEST(attention_keeps_them) {
  static const char *const texts[] = {
      "s [2,4,9] = input\na i64[1] = -1\nm [2,4,1] = ReduceMax(s, a)\n{\nd [2,4,9] = Sub(s, m)\n"
      "e [2,4,9] = Exp(d)\n}\nt [2,4,1] = ReduceSum(e, a)\ny [2,4,9] = Div(e, t)\n",
      "q [1,2,5,8] = input\nk [1,2,8,7] = input\nv [1,2,7,8] = input\nm [5,7] = input\nc [] = 0.35\n{\n"
      "s [1,2,5,7] = MatMul(q, k)\nt [1,2,5,7] = Mul(s, c)\nu [1,2,5,7] = Add(t, m)\n}\n"
      "p [1,2,5,7] = Softmax(u) axis=-1\ny [1,2,5,8] = MatMul(p, v)\n",
      "q [1,2,5,8] = input\nk [1,2,7,8] = input\nv [1,2,7,8] = random\ny [1,2,5,8] = Attention(q, k, v)\n",
      "q [1,2,5,8] = input\nk [1,2,8,7] = input\na i64[1] = -1\nc [] = 0.6\nl [] = 30\n{\n"
      "p [1,2,5,8] = Mul(q, c)\ns [1,2,5,7] = MatMul(p, k)\n}\nt [1,2,5,7] = Div(s, l)\n"
      "u [1,2,5,7] = Tanh(t)\nw [1,2,5,7] = Mul(u, l)\nm [1,2,5,1] = ReduceMax(w, a)\n"
      "d [1,2,5,7] = Sub(w, m)\ne [1,2,5,7] = Exp(d)\nz [1,2,5,1] = ReduceSum(e, a)\n"
      "y [1,2,5,7] = Div(e, z)\n",
      "m [5,7] = input\nq [1,2,5,8] = random\nk [1,2,7,8] = random\nv [1,2,7,8] = random\n"
      "y [1,2,5,8] = Attention(q, k, v, m)\n",
  };
  int wrong = 0;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    wrong += check_text(texts[k], 2e-6, true);
  }
  ck_assert_int_eq(wrong, 0);
}

/* Where a mask leaves nothing to look at, Attention gives 0. */
UNIT_TEST(a_row_that_may_look_at_nothing_gives_zeros) {
  static const char *const masks[] = {"-inf", "-inf -inf -inf nan", "0 0 0 -inf -inf -inf"};
  for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "q [1,2,2,8] = input\nk [1,2,3,8] = input\nv [1,2,3,8] = random\nm [2,3] = %s\n"
                   "y [1,2,2,8] = Attention(q, k, v, m)\n",
                   masks[k]);
    ck_assert_int_eq(check_text(text, 2e-6, true), 0);
  }
}

/* Steps of the program whose label holds `word`. */
static int steps_with(const op_backend_t *onednn, const cleave_region_view_t *view, const char *word) {
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1, .profile = true};
  cleave_message_t message = {.text = ""};
  const cleave_step_time_t *steps = NULL;
  void *program = NULL;
  ck_assert_msg(onednn->backend->compile(onednn->state, view, &options, &program, &message) == CLEAVE_OK,
                "%s", message.text);
  int found = 0;
  for (uint32_t k = onednn->backend->profile(program, &steps); k-- > 0;) {
    found += strstr(steps[k].label, word) != NULL ? 1 : 0;
  }
  onednn->backend->unload(program);
  return found;
}

UNIT_TEST(an_attribute_of_the_region_gives_them_up) {
  static const char text[] =
      "x [1,16,8,8] = input\n{\nm [1,16,4,4] = MaxPool(x) kernel_shape=[2,2] strides=[2,2]\n"
      "r [1,16,4,4] = Relu(m)\n}\ny [1,16,4,4] = Softplus(r)\n";
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(text, true);
  cleave_attribute_view_t strict = {.size = sizeof strict, .name = "strict", .kind = CLEAVE_ATTRIBUTE_INT};
  cleave_region_view_t view = *fusion_region_view(region);
  view.size = sizeof view;
  view.attribute_count = 1;
  view.attributes = &strict;
  ck_assert_int_eq(steps_with(&onednn, &view, "watch"), 0);
  ck_assert_int_eq(steps_with(&onednn, &view, "loop"), 0);
  strict.i = 1;
  ck_assert_int_eq(steps_with(&onednn, &view, "watch"), 1);
  ck_assert_int_eq(steps_with(&onednn, &view, "loop"), 1);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

/* A NaN that a thread loses which later steps have no work for. */
UNIT_TEST(threads_that_end_keep_them) {
  static const char text[] =
      "x [8,4096] = input\na i64[1] = 1\nr [8,4096] = Relu(x)\nm [8,1] = ReduceMean(r, a)\n"
      "s [8,1] = Softmax(m) axis=0\ny [8,1] = Tanh(s)\n";
  op_backend_t onednn = onednn_create();
  ck_assert_int_eq(check_variant(&onednn, text, 2e-6, true, false, 4), 0);
  op_backend_destroy(&onednn);
}

/* Few rows and many, after which a chain and bounds come. */
UNIT_TEST(products_of_narrow_weights_keep_them) {
  static const int rows[] = {1, 4, 9};
  int wrong = 0;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "x [%d,32] = input\nw i8[32,20] = 3\ns [2,20] = positive\n{ integers\n"
                   "n [32,20] = DequantizeLinear(w, s) axis=0 block_size=16\nm [%d,20] = MatMul(x, n)\n"
                   "r [%d,20] = Relu(m)\n}\ny [%d,20] = Gelu(r)\n",
                   rows[k], rows[k], rows[k], rows[k]);
    wrong += check_text(text, 1e-5, true);
  }
  ck_assert_int_eq(wrong, 0);
}

/* The same with packed weights, for which the exact form has no kernel, and which it makes float32. */
UNIT_TEST(products_of_packed_weights_keep_them) {
  static const int rows[] = {1, 4, 9};
  op_backend_t onednn = onednn_create();
  int wrong = 0;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "x [%d,32] = input\nw u8[20,2,8] = 147\ns [2,20] = positive\n{ integers\n"
                   "q i8[32,20] = cleave.UnpackBits(w) bits=4 count=32 signed=1 transposed=1\n"
                   "n [32,20] = DequantizeLinear(q, s) axis=0 block_size=16\nm [%d,20] = MatMul(x, n)\n"
                   "y [%d,20] = Relu(m)\n}\n",
                   rows[k], rows[k], rows[k]);
    wrong += check_variant(&onednn, text, 1e-5, true, true, 2);
  }
  op_backend_destroy(&onednn);
  ck_assert_int_eq(wrong, 0);
}

/* By AMX, if the processor has it; deep sums round differently. */
UNIT_TEST(deep_products_and_convolutions_keep_them) {
  static const char *const texts[] = {
      "x [128,256] = input\nw [256,192] = positive\n{\nm [128,192] = MatMul(x, w)\ny [128,192] = "
      "Gelu(m)\n}\n",
      "x [1,64,9,9] = input\nw [64,64,3,3] = positive\n{\n"
      "c [1,64,5,5] = Conv(x, w) strides=[2,2] pads=[1,1,1,1]\ny [1,64,5,5] = Relu(c)\n}\n",
      "x [64,256] = input\nu [256,1024] = positive\nv [256,1024] = positive\nw [256,1024] = positive\n"
      "q [64,1024] = MatMul(x, u)\nk [64,1024] = MatMul(x, v)\nl [64,1024] = MatMul(x, w)\n",
  };
  int wrong = 0;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    wrong += check_text(texts[k], 1e-4, true);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_TEST(other_kernels_keep_them) {
  static const char *const texts[] = {
      "x [2,5,32] = input\ng [32] = random\nb [32] = random\ny [2,5,32] = LayerNormalization(x, g, b)\n",
      "x [2,20,5,5] = input\ns [20,1,1] = random\ny [2,20,5,5] = PRelu(x, s)\n",
      "x [2,20,5,5] = input\ns [20] = positive\nb [20] = random\nm [20] = random\nv [20] = positive\n{\n"
      "n [2,20,5,5] = BatchNormalization(x, s, b, m, v)\ny [2,20,5,5] = Relu(n)\n}\n",
      "x [2,33] = input\ny [2,33] = Swish(x) alpha=1.5\n",
      "x [2,33] = input\ny [2,33] = Mish(x)\n",
      "x [1,16,10,10] = input\nw [16,16,3,3] = random\n{\nc [1,16,8,8] = Conv(x, w)\n"
      "y [1,16,8,8] = Relu(c)\n}\n",
  };
  int wrong = 0;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    wrong += check_text(texts[k], 1e-5, true);
  }
  // Behind oneDNN's own code for Winograd's algorithm a NaN reaches more pixels if nothing follows.
  if (!__builtin_cpu_supports("avx512f")) {
    wrong +=
        check_text("x [1,16,10,10] = input\nw [16,16,3,3] = random\ny [1,16,8,8] = Conv(x, w)\n", 1e-5, true);
  }
  ck_assert_int_eq(wrong, 0);
}

UNIT_SUITE("onednn_values")
