// SPDX-License-Identifier: Apache-2.0
/* A library whose lists of what it adds are wrong. CLEAVE_TEST_MISDEED says how. */
#include "misdeed.h"

static cleave_custom_operator_t op = {.size = sizeof op, .domain = "bad.op", .name = "Op", .version = 1};
static cleave_custom_partitioner_t part = {.size = sizeof part, .name = "part"};
static cleave_custom_pass_t pass = {.size = sizeof pass, .name = "pass"};
static const cleave_custom_operator_t *operators[1100] = {&op};
static const cleave_custom_partitioner_t *partitioners[1100] = {&part};
static const cleave_custom_pass_t *passes[1100] = {&pass};
static cleave_backend_extensions_t extensions = {
    .size = sizeof extensions, .operators = operators, .partitioners = partitioners, .passes = passes};
static cleave_backend_t backend = {RELU_BACKEND("bad_lists"), .extensions = &extensions};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  extensions.operator_count = misdeed("operators") || misdeed("small operator") || misdeed("texts") ? 1 : 0;
  extensions.partitioner_count = misdeed("partitioners") || misdeed("small partitioner") ? 1 : 0;
  extensions.pass_count = misdeed("passes") || misdeed("small pass") ? 1 : 0;
  if (misdeed("small")) {
    extensions.size = 8;
  } else if (misdeed("many operators")) {
    extensions.operator_count = 1100;
  } else if (misdeed("many passes")) {
    extensions.pass_count = 1100;
  } else if (misdeed("no operators")) {
    extensions.operator_count = 3;
    extensions.operators = NULL;
  } else if (misdeed("no partitioners")) {
    extensions.partitioner_count = 3;
    extensions.partitioners = NULL;
  } else if (misdeed("no files")) {
    extensions.rule_file_count = 2;
  } else if (misdeed("null operator")) {
    extensions.operator_count = 2;
    operators[0] = NULL;
  } else if (misdeed("null pass")) {
    extensions.pass_count = 1;
    passes[0] = NULL;
  } else if (misdeed("small operator")) {
    op.size = 24;
  } else if (misdeed("small partitioner")) {
    part.size = 24;
  } else if (misdeed("small pass")) {
    pass.size = 8;
  } else if (misdeed("texts")) {
    op.inputs = "X !";
  }
  return &backend;
}
