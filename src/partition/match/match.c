// SPDX-License-Identifier: Apache-2.0
// The search: a stack of goals with choice points and an undo trail, as in a Prolog machine. A goal that has
// alternatives left leaves a choice point before it runs; a failure goes back to the last of them. Invariant:
// whatever a goal binds is on the trail, and a finished search undoes all.
//
// A long search remembers failed goals: the same goal, followed by the same goals, fails again, unless the
// failure depended on earlier bindings. So equivalent alternatives are not tried in all combinations.

#include "partition/match/match.h"

#include "base/hash.h"
#include "partition/match/match_state.h"

#define REMEMBER_FROM 32 /* steps */

// ---- goals ----

static cleave_status_t run_goal(cleave_matcher_t *m, step_t *step, cleave_error_t *error) {
  const goal_t *goal = &m->goals.items[step->index];
  step->next = goal->next;
  step->fits = true;
  switch ((goal_kind_t)goal->kind) {
    case GOAL_ANCHOR:
    case GOAL_FORWARD: return cleave_matcher_run_forward(m, step, error);
    case GOAL_FORWARD_NEXT:
    case GOAL_FORWARD_REPEAT: return cleave_matcher_run_forward_next(m, step, error);
    case GOAL_BACKWARD: return cleave_matcher_run_backward(m, step, error);
    case GOAL_BACKWARD_NEXT:
    case GOAL_BACKWARD_REPEAT: return cleave_matcher_run_backward_next(m, step, error);
    case GOAL_SWAP:
    case GOAL_INPUT: return cleave_matcher_run_input(m, step, error);
    case GOAL_VARIADIC: return cleave_matcher_run_variadic(m, step, error);
    case GOAL_ENTRY: return cleave_matcher_run_entry(m, step, error);
    case GOAL_FLOW: m->flow = (flow_t){goal->value, goal->link, goal->node}; return CLEAVE_OK;
    case GOAL_OUTPUT:
      return cleave_matcher_take_value(m, goal->pattern, m->flow.value, CLEAVE_INDEX_NONE, &step->fits,
                                       error);
    case GOAL_END_FORWARD:
    case GOAL_END_BACKWARD: return cleave_matcher_run_end(m, step, error);
    case GOAL_MEMBER: return cleave_matcher_run_member(m, step, error);
    case GOAL_CLIMB: return cleave_matcher_run_climb(m, step, error);
    case GOAL_EXIT: return cleave_matcher_run_exit(m, error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "matcher: goal %u is unknown", (unsigned)goal->kind);
}

// ---- failures ----

/* Starts to remember failures. On the stack, a goal lies above those that follow it. */
static void start_remembering(cleave_matcher_t *m) {
  for (size_t k = 0; k < m->goals.count; k++) {
    m->goals.items[k].signature = cleave_matcher_sign_goal(m, &m->goals.items[k]);
  }
  m->remembers = true;
}

/* Begins a goal. Sets *out_fails if the goal is known to fail. */
static cleave_status_t begin(cleave_matcher_t *m, uint32_t index, bool *out_fails, cleave_error_t *error) {
  uint64_t key = cleave_hash_combine(m->goals.items[index].signature,
                                     (uint64_t)m->flow.value.index << 32 | m->flow.node);
  *out_fails = cleave_key_set_has(&m->failures, key);
  if (!*out_fails) {
    frame_t frame = {key, (uint32_t)m->choices.count, (uint32_t)m->trail.count, false};
    CLEAVE_ARRAY_PUSH(&m->frames, frame, error);
  }
  return CLEAVE_OK;
}

/* Ends the frames that have no choice left: all their alternatives failed. */
static cleave_status_t end_frames(cleave_matcher_t *m, cleave_error_t *error) {
  while (m->frames.count > 0 && m->frames.items[m->frames.count - 1].choice_count >= m->choices.count) {
    frame_t frame = m->frames.items[--m->frames.count];
    if (!frame.depends && m->frames.count >= m->depending) {
      CLEAVE_TRY(cleave_key_set_add(&m->failures, frame.key, error));
    }
    m->depending = m->depending < m->frames.count ? m->depending : m->frames.count;
  }
  return CLEAVE_OK;
}

// ---- the search ----

/* All goals are done: tests the complete match and asks the request's `accept`. */
static cleave_status_t finish(cleave_matcher_t *m, const cleave_match_request_t *request,
                              cleave_match_answer_t *answer, cleave_error_t *error) {
  bool fits = false;
  answer->steps += m->taken.count;
  cleave_matcher_depend(m, 0);
  CLEAVE_TRY(cleave_matcher_sizes_hold(m, &fits, error));
  if (!fits || !cleave_matcher_is_closed(m)) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_describe(m, &answer->hash, error));
  if (request->accept == NULL || request->accept(request->context, &m->match, answer->hash)) {
    answer->match = &m->match;
    answer->unnamed = m->unnamed;
    answer->unnamed_count = m->unnamed_count;
  }
  return CLEAVE_OK;
}

/* Runs goals until a match is complete and accepted, or there is no choice left. */
static cleave_status_t search(cleave_matcher_t *m, const cleave_match_request_t *request,
                              cleave_match_answer_t *answer, cleave_error_t *error) {
  uint32_t last = CLEAVE_INDEX_NONE;
  if (m->has_exits) {
    CLEAVE_TRY(
        cleave_matcher_push_goal(m, cleave_matcher_goal(GOAL_EXIT, m->pattern->root, last), &last, error));
  }
  goal_t anchor = cleave_matcher_goal(GOAL_ANCHOR, m->pattern->root, last);
  anchor.node = request->anchor;
  step_t step = {.request = request};
  CLEAVE_TRY(cleave_matcher_push_goal(m, anchor, &step.next, error));
  for (;;) {
    if (step.next == CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(finish(m, request, answer, error));
      if (answer->match != NULL) {
        return CLEAVE_OK;
      }
      step.fits = false;
    } else {
      bool fails = false;
      step.index = step.next;
      if (m->is_tree && !m->remembers && answer->steps >= REMEMBER_FROM) {
        start_remembering(m);
      }
      if (m->remembers && step.alternative == 0) {
        CLEAVE_TRY(begin(m, step.index, &fails, error));
      }
      step.fits = false;
      if (!fails) {
        CLEAVE_TRY(run_goal(m, &step, error));
      }
    }
    step.alternative = 0;
    answer->steps += 1 + step.work / 8 + m->filter_work;
    step.work = 0;
    m->filter_work = 0;
    if (answer->steps > request->step_limit) {
      answer->limit = true;
      return CLEAVE_OK;
    }
    if (!step.fits) {
      CLEAVE_TRY(end_frames(m, error));
      if (m->choices.count == 0) {
        return CLEAVE_OK;
      }
      choice_t choice = m->choices.items[--m->choices.count];
      cleave_matcher_undo(m, choice.trail_count);
      m->goals.count = choice.goal_count;
      m->flow = choice.flow;
      step.next = choice.goal;
      step.alternative = choice.alternative;
    }
  }
}

cleave_status_t cleave_matcher_match(cleave_matcher_t *matcher, const cleave_match_request_t *request,
                                     cleave_match_answer_t *answer, cleave_error_t *error) {
  *answer = (cleave_match_answer_t){0};
  matcher->goals.count = 0;
  matcher->choices.count = 0;
  matcher->flows.count = 0;
  matcher->frames.count = 0;
  matcher->depending = 0;
  matcher->remembers = false;
  cleave_key_set_clear(&matcher->failures);
  matcher->filter_work = 0;
  matcher->filter_limit = request->step_limit;
  if (matcher->is_changing || matcher->passes_unnamed != request->passes_unnamed) {
    matcher->generation++;
  }
  matcher->passes_unnamed = request->passes_unnamed;
  matcher->flow = (flow_t){CLEAVE_VALUE_NONE, CLEAVE_INDEX_NONE, CLEAVE_INDEX_NONE};
  cleave_status_t status = search(matcher, request, answer, error);
  cleave_matcher_undo(matcher, 0);
  return status;
}
