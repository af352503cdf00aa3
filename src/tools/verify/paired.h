// SPDX-License-Identifier: Apache-2.0
/* Two sessions that run alternately, and what their times say: how much slower the second is, and how sure
 * that is. */
#ifndef CLEAVE_TOOLS_VERIFY_PAIRED_H
#define CLEAVE_TOOLS_VERIFY_PAIRED_H

#include "runtime/session/session.h"

enum { CLEAVE_PAIRED_MAX = 200 };

typedef struct cleave_paired {
  uint32_t count;
  double first_ms[CLEAVE_PAIRED_MAX];
  double second_ms[CLEAVE_PAIRED_MAX];
} cleave_paired_t;

typedef struct cleave_paired_summary {
  double first_ms; /* medians; 0 without pairs */
  double second_ms;
  double change;     /* median over the pairs of second / first - 1 */
  bool has_interval; /* there are pairs enough (6) for the interval below; otherwise it is 0 */
  double low;        /* of `change`, with at least 95 % confidence */
  double high;
} cleave_paired_summary_t;

/* Runs both once, in the other order from time to time, and adds the pair; nothing when there are
 * CLEAVE_PAIRED_MAX. The caller has run both before, so that both are warm. */
CLEAVE_STATUS cleave_paired_run(cleave_paired_t *paired, cleave_session_t *first, cleave_session_t *second,
                                cleave_error_t *error);

/* The interval is that of the sign test: order statistics of the ratios, which assume nothing about how times
 * are distributed. */
void cleave_paired_summarise(const cleave_paired_t *paired, cleave_paired_summary_t *out_summary);

#endif /* CLEAVE_TOOLS_VERIFY_PAIRED_H */
