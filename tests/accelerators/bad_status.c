/* SPDX-License-Identifier: Apache-2.0 */
/* Returns what is no status, and a message without end. */
#include "hostile.h"

HOSTILE_RUN("bad_status", memset(message->text, 'x', sizeof message->text); return (cleave_status_t)77;)
