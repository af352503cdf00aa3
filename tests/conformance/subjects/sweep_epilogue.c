// SPDX-License-Identifier: Apache-2.0
// What follows a product: each kind of epilogue alone after each kind of product, and random chains of them.
// The rules decide what is fused; whatever that is, the numbers must be those of the single nodes.
#include <stdio.h>
#include <string.h>

#include "sweep.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* A product with result shape [dims], and operands that broadcast to it. `own` is one of its inputs with the
 * shape of the result, or "". */
typedef struct product {
  const char *text;
  const char *own;
  const char *full;
  const char *channel; /* along dimension 1 */
  const char *last;    /* along the last dimension */
  const char *middle;  /* ones in front and behind */
  const char *single;  /* of rank 1 or more */
  const char *channels;
} product_t;

static const product_t products[] = {
    {"Conv{pads=[1,1,1,1]}(x[2,17,5,6], $w[17,17,3,3])", "x", "[2,17,5,6]", "[17,1,1]", "[6]", "[1,17,5,1]",
     "[1,1,1]", "[17]"},
    {"Conv{pads=[1,1,1,1]}(x[1,16,5,6], $w[16,16,3,3], $wb[16])", "x", "[1,16,5,6]", "[1,16,1,1]", "[6]",
     "[16,5,1]", "[1]", "[16]"},
    {"Conv(x[2,3,6,6], $w[8,3,1,1])", "", "[2,8,6,6]", "[8,1,1]", "[6]", "[2,1,6,1]", "[1,1,1,1]", "[8]"},
    {"Conv{group=17, pads=[1,1,1,1]}(x[1,17,5,5], $w[17,1,3,3])", "x", "[1,17,5,5]", "[17,1,1]", "[5]",
     "[17,5,1]", "[1]", "[17]"},
    {"Conv{pads=[1,1]}(x[2,5,9], $w[5,5,3])", "x", "[2,5,9]", "[5,1]", "[9]", "[1,5,1]", "[1,1]", "[5]"},
    {"Conv{pads=[1,1,1,1]}(x[1,3,5,6], w[5,3,3,3], wb[5])", "", "[1,5,5,6]", "[5,1,1]", "[6]", "[5,5,1]",
     "[1]", "[5]"},
    {"ConvTranspose{strides=[2,2]}(x[1,3,3,3], $w[3,5,2,2])", "", "[1,5,6,6]", "[5,1,1]", "[6]", "[1,5,1,1]",
     "[1]", "[5]"},
    {"ConvTranspose(x[1,5,4,4], $w[5,5,1,1], $wb[5])", "x", "[1,5,4,4]", "[5,1,1]", "[4]", "[5,4,1]", "[1]",
     "[5]"},
    {"Gemm(x[3,17], $w[17,17])", "x", "[3,17]", "[17]", "[17]", "[3,1]", "[1,1]", "[17]"},
    {"Gemm{alpha=0.5, beta=2, transB=1}(x[3,8], $w[5,8], $wb[5])", "", "[3,5]", "[1,5]", "[5]", "[3,1]",
     "[1]", "[5]"},
    {"Gemm(x[1,4], w[4,6], wb[6])", "", "[1,6]", "[6]", "[6]", "[1,1]", "[1]", "[6]"},
    {"MatMul(x[4,17], $w[17,17])", "x", "[4,17]", "[17]", "[17]", "[4,1]", "[1]", "[17]"},
    {"MatMul(x[2,5,8], $w[8,8])", "x", "[2,5,8]", "[5,1]", "[8]", "[2,1,1]", "[1,1]", "[5]"},
    {"MatMul(x[2,3,4,5], w[2,3,5,6])", "", "[2,3,4,6]", "[3,1,1]", "[6]", "[3,4,1]", "[1]", "[3]"},
    {"MatMul(x[3,4,4], w[1,4,4])", "x", "[3,4,4]", "[4,1]", "[4]", "[3,1,4]", "[1]", "[4]"},
    {"MatMul($w[17,5], x[5,3])", "", "[17,3]", "[3]", "[3]", "[17,1]", "[1,1]", "[3]"},
    /* Large enough for the kernels that are chosen for real networks: Winograd, several blocks of channels.
     */
    {"Conv{pads=[1,1,1,1]}(x[1,16,8,9], $w^[16,16,3,3])", "x", "[1,16,8,9]", "[16,1,1]", "[9]", "[1,16,8,1]",
     "[1]", "[16]"},
    {"Conv{pads=[1,1,1,1]}(x[2,64,7,7], $w^[32,64,3,3], $wb[32])", "", "[2,32,7,7]", "[1,32,1,1]", "[7]",
     "[32,7,1]", "[1,1]", "[32]"},
    {"Conv(x[1,64,14,14], $w^[48,64,1,1])", "", "[1,48,14,14]", "[48,1,1]", "[14]", "[1,1,14,1]", "[1]",
     "[48]"},
    {"Conv{group=32, strides=[2,2], pads=[1,1,1,1]}(x[1,32,9,9], $w^[32,1,3,3], $wb[32])", "", "[1,32,5,5]",
     "[32,1,1]", "[5]", "[32,5,1]", "[1]", "[32]"},
    {"Conv{strides=[2,2], pads=[3,3,3,3]}(x[1,3,20,20], $w^[16,3,7,7])", "", "[1,16,10,10]", "[16,1,1]",
     "[10]", "[1,10,1]", "[1]", "[16]"},
    {"MatMul(x[2,33,64], $w^[64,96])", "", "[2,33,96]", "[33,1]", "[96]", "[2,1,96]", "[1]", "[33]"},
    {"Gemm(x[17,64], $w^[64,130], $wb[130])", "", "[17,130]", "[130]", "[130]", "[17,1]", "[1]", "[130]"},
};

static const char *const activations[] = {
    "Relu",
    "LeakyRelu{alpha=0.2}",
    "Elu{alpha=0.7}",
    "Selu",
    "Celu{alpha=2}",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "HardSwish",
    "Swish{alpha=1.702}",
    "Mish",
    "Gelu",
    "Gelu{approximate=tanh}",
    "Softplus",
    "Abs",
    "Neg",
    "Round",
};

static const char *const arithmetic[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};

/* Writes one step over `value` into `text`. `name` makes the operands of this step its own. */
static void print_step(const product_t *product, uint32_t kind, const char *value, unsigned name,
                       cleave_text_t *text) {
  static const char *const clips[] = {"#0, #6", "#-0.5", "_, #0.5", "#-1, #1"};
  if (kind < COUNT(activations)) {
    cleave_text_format(text, "%s(%s)", activations[kind], value);
    return;
  }
  kind -= (uint32_t)COUNT(activations);
  if (kind < COUNT(clips)) {
    cleave_text_format(text, "Clip(%s, %s)", value, clips[kind]);
    return;
  }
  kind -= (uint32_t)COUNT(clips);
  if (kind == 0) {
    cleave_text_format(text, "BatchNormalization(%s, $s%u%s, $b%u%s, $m%u%s, $v%u+%s)", value, name,
                       product->channels, name, product->channels, name, product->channels, name,
                       product->channels);
    return;
  }
  if (kind == 1) {
    cleave_text_format(text, "Pow(%s, #2)", value);
    return;
  }
  /* Arithmetic with an operand of some shape, on either side. */
  const char *shapes[] = {product->full,   product->channel, product->last,
                          product->middle, product->single,  "[]"};
  const char *op = arithmetic[(kind - 2) % COUNT(arithmetic)];
  uint32_t form = (kind - 2) / (uint32_t)COUNT(arithmetic);
  bool left = form % 2 != 0;
  form /= 2;
  char operand[64];
  /* Quotients stay away from zero, where they are right but nothing else is. */
  bool divides = strcmp(op, "Div") == 0;
  if (form < 2 * COUNT(shapes)) {
    (void)snprintf(operand, sizeof operand, "%so%u%s%s", form % 2 == 0 ? "" : "$", name, divides ? "+" : "",
                   shapes[form / 2]);
  } else {
    (void)snprintf(operand, sizeof operand, "%s",
                   form == 2 * COUNT(shapes) && product->own[0] != '\0' && !divides ? product->own : "#0.75");
  }
  const char *before = divides && left ? "Add(Abs(" : "";
  const char *behind = divides && left ? "), #1)" : "";
  if (left) {
    cleave_text_format(text, "%s(%s, %s%s%s)", op, operand, before, value, behind);
  } else {
    cleave_text_format(text, "%s(%s, %s)", op, value, operand);
  }
}

enum {
  ACTIVATIONS = COUNT(activations),
  KINDS = ACTIVATIONS + 4 + 2 + 6 * 2 * (2 * 6 + 2),
};

static void run(sweep_t *sweep, cleave_text_t *text) {
  sweep_rules(sweep, "%s", cleave_text_get(text));
  cleave_text_deinit(text);
}

static void singles(sweep_t *sweep) {
  for (size_t p = 0; p < COUNT(products); p++) {
    for (uint32_t kind = 0; kind < KINDS; kind++) {
      cleave_text_t text = {0};
      cleave_text_format(&text, "h = %s; ", products[p].text);
      print_step(&products[p], kind, "h", 0, &text);
      run(sweep, &text);
    }
  }
}

/* Two to six steps; often a value in the middle has another reader. */
static void chains(sweep_t *sweep) {
  enum { CHAINS = 1600, LONGEST = 6 };
  for (int round = 0; round < CHAINS; round++) {
    const product_t *product = &products[sweep_below(sweep, COUNT(products))];
    uint32_t steps = 2 + sweep_below(sweep, LONGEST - 1);
    uint32_t tap = sweep_below(sweep, 8); /* the step whose value is used twice */
    cleave_text_t text = {0};
    cleave_text_format(&text, "h0 = %s;", product->text);
    for (uint32_t k = 0; k < steps; k++) {
      /* An activation by one chance in three, else arithmetic or normalization. */
      uint32_t kind = sweep_below(sweep, 3) == 0
                          ? sweep_below(sweep, ACTIVATIONS + 6)
                          : ACTIVATIONS + 4 + sweep_below(sweep, KINDS - ACTIVATIONS - 4);
      /* Round makes two numbers out of two roundings of one; alone it is among the singles. */
      kind = kind == ACTIVATIONS - 1 ? 0 : kind;
      char value[16];
      (void)snprintf(value, sizeof value, "h%u", k);
      cleave_text_format(&text, " h%u = ", k + 1);
      print_step(product, kind, value, k, &text);
      cleave_text_add(&text, ";");
    }
    if (tap < steps) {
      cleave_text_format(&text, " %s(h%u)", tap % 2 == 0 ? "Neg" : "Identity", tap);
    } else {
      cleave_text_format(&text, " Abs(h%u)", steps);
    }
    if (tap != steps) {
      cleave_text_format(&text, " -> h%u", steps);
    }
    run(sweep, &text);
  }
}

/* Structure as well as numbers: these are one kernel. */
static void whole(sweep_t *sweep) {
  sweep_fused(sweep, 2, "Relu(Conv(x[1,3,5,5], $w[17,3,3,3]))");
  sweep_fused(sweep, 3,
              "Relu(BatchNormalization(Conv(x[1,3,5,5], $w[4,3,3,3]), $s[4], $b[4], $m[4], $v+[4]))");
  sweep_fused(sweep, 4,
              "Relu(Add(BatchNormalization(Conv(x[1,3,5,5], $w[4,3,3,3]), $s[4], $b[4], $m[4], $v+[4]), "
              "y[1,4,3,3]))");
  sweep_fused(sweep, 4,
              "Relu(Add(y[1,4,3,3], BatchNormalization(Conv(x[1,3,5,5], $w[4,3,3,3]), $s[4], $b[4], $m[4], "
              "$v+[4])))");
  sweep_fused(sweep, 3, "Gelu(Add(MatMul(x[2,5,8], $w[8,17]), $b[17]))");
  sweep_fused(sweep, 4, "Relu(Add(Add(MatMul(x[2,5,8], $w[8,17]), $b[17]), r[2,5,17]))");
  sweep_fused(sweep, 2, "Tanh(Gemm(x[2,8], $w[8,17], $b[17]))");
  sweep_fused_by(sweep, "onednn", 2, "Add(ConvTranspose{strides=[2,2]}(x[1,3,4,4], $w[3,5,2,2]), $b[5,1,1])");
  sweep_fused(sweep, 3, "Clip(Add(Conv{pads=[1,1,1,1]}(x[1,8,5,5], $w[8,8,3,3]), x), #0, #6)");
  sweep_fused(sweep, 3, "Mul(Div(MatMul(x[2,5,8], y[2,8,5]), #2), m[5,5])");
  sweep_fused_by(sweep, "onednn", 2, "Mul(GlobalAveragePool(x[2,17,5,5]), s[2,17,1,1])");
}

void sweep_epilogue(sweep_t *sweep) {
  whole(sweep);
  singles(sweep);
  /* Rounding of one step may be stretched by the next. */
  sweep_set_slack(sweep, 8.0);
  chains(sweep);
}
