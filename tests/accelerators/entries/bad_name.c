// SPDX-License-Identifier: Apache-2.0
/* Calls itself what no rule file can write. */
#include "relu.h"

static const cleave_backend_t backend = {RELU_BACKEND("bad name/")};

RELU_ENTRY()
