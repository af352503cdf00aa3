// SPDX-License-Identifier: Apache-2.0
/* Brings two operators; the schema of the second is wrong, so that the library is refused with both. */
#include "relu.h"

static cleave_status_t infer(void *self, const cleave_region_view_t *node, cleave_tensor_view_t *outputs,
                             int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  (void)self;
  (void)node;
  (void)outputs;
  (void)dims;
  (void)message;
  return CLEAVE_OK;
}

static const cleave_custom_operator_t right = {.size = sizeof right,
                                               .domain = "bad.operator",
                                               .name = "Right",
                                               .version = 1,
                                               .inputs = "X",
                                               .outputs = "Y",
                                               .infer = infer};
static const cleave_custom_operator_t wrong = {.size = sizeof wrong,
                                               .domain = "bad.operator",
                                               .name = "Wrong",
                                               .version = 1,
                                               .inputs = "X",
                                               .outputs = "Y",
                                               .attributes = "alpha:float",
                                               .infer = infer};
static const cleave_custom_operator_t *const operators[] = {&right, &wrong};
static const cleave_backend_extensions_t extensions = {
    .size = sizeof extensions, .operators = operators, .operator_count = 2};

static const cleave_backend_t backend = {RELU_BACKEND("bad_operator"), .extensions = &extensions};

RELU_ENTRY()
