// SPDX-License-Identifier: Apache-2.0
// With more steps than places across, a place shows the mean of its steps.
#include "cli/training/train_picture.h"

#include <math.h>

#include "base/text.h"
#include "system/file.h"

enum { WIDTH = 760, PANEL = 240, LEFT = 70, RIGHT = 20, TOP = 40, GAP = 50, PLACES = 600, TICKS = 5 };

typedef struct panel {
  const char *title;
  bool is_norm;
  double top; /* in the picture */
  double low; /* logarithms to base 10 */
  double high;
} panel_t;

static bool is_shown(double value) {
  return isfinite(value) && value > 0.0;
}

static double value_of(const cleave_train_run_t *run, const panel_t *panel, int64_t index) {
  cleave_train_step_t step;
  if (cleave_trainer_history(run->trainer, index, &step, NULL) != CLEAVE_OK) {
    return NAN;
  }
  return panel->is_norm ? step.gradient_norm : step.loss;
}

/* The mean of the steps of a place, or NaN. */
static double mean_at(const cleave_train_run_t *run, const panel_t *panel, int64_t place, int64_t places) {
  int64_t steps = cleave_trainer_steps_done(run->trainer);
  int64_t count = 0;
  double sum = 0.0;
  for (int64_t k = place * steps / places; k < (place + 1) * steps / places; k++) {
    double value = value_of(run, panel, k);
    if (is_shown(value)) {
      sum += value;
      count++;
    }
  }
  return count > 0 ? sum / (double)count : NAN;
}

static void widen(panel_t *panel, double value) {
  if (is_shown(value)) {
    double place = log10(value);
    panel->low = fmin(panel->low, place);
    panel->high = fmax(panel->high, place);
  }
}

static double across(double share) {
  return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double down(const panel_t *panel, double value) {
  return panel->top + PANEL * (panel->high - log10(value)) / (panel->high - panel->low);
}

static void draw_frame(const panel_t *panel, int64_t steps, cleave_text_t *svg) {
  cleave_text_format(svg, "<text x='%d' y='%.1f' font-weight='bold'>%s</text>\n", LEFT, panel->top - 10.0,
                     panel->title);
  cleave_text_format(svg, "<rect x='%d' y='%.1f' width='%d' height='%d' fill='none' stroke='#999'/>\n", LEFT,
                     panel->top, WIDTH - LEFT - RIGHT, PANEL);
  for (int k = 0; k < TICKS; k++) {
    double share = (double)k / (TICKS - 1);
    double value = pow(10.0, panel->low + share * (panel->high - panel->low));
    double y = down(panel, value);
    cleave_text_format(svg, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n", LEFT, y,
                       WIDTH - RIGHT, y);
    cleave_text_format(svg, "<text x='%d' y='%.1f' text-anchor='end'>%.3g</text>\n", LEFT - 6, y + 4.0,
                       value);
    cleave_text_format(svg, "<text x='%.1f' y='%.1f' text-anchor='middle'>%lld</text>\n", across(share),
                       panel->top + PANEL + 16.0, (long long)llround(share * (double)steps));
  }
}

static void draw_steps(const cleave_train_run_t *run, const panel_t *panel, int64_t places,
                       cleave_text_t *svg) {
  bool is_open = false;
  for (int64_t k = 0; k <= places; k++) {
    double value = k < places ? mean_at(run, panel, k, places) : NAN;
    if (isnan(value)) {
      cleave_text_add(svg, is_open ? "'/>\n" : "");
      is_open = false;
      continue;
    }
    cleave_text_add(svg, is_open ? " " : "<polyline fill='none' stroke='#1f77b4' points='");
    cleave_text_format(svg, "%.1f,%.1f", across(((double)k + 0.5) / (double)places), down(panel, value));
    is_open = true;
  }
}

/* Losses of held-out samples, after the steps that they were measured behind. */
static void draw_held_out(const cleave_train_run_t *run, const panel_t *panel, int64_t steps,
                          cleave_text_t *svg) {
  for (size_t k = 0; k < run->epochs.count && !panel->is_norm; k++) {
    const cleave_train_epoch_t *epoch = &run->epochs.items[k];
    if (epoch->has_evaluation && is_shown(epoch->evaluation.loss)) {
      cleave_text_format(svg, "<circle cx='%.1f' cy='%.1f' r='3' fill='#d62728'/>\n",
                         across((double)epoch->step / (double)steps), down(panel, epoch->evaluation.loss));
    }
  }
}

static void draw_panel(const cleave_train_run_t *run, panel_t *panel, cleave_text_t *svg) {
  int64_t steps = cleave_trainer_steps_done(run->trainer);
  int64_t places = steps < PLACES ? steps : PLACES;
  panel->low = INFINITY;
  panel->high = -INFINITY;
  for (int64_t k = 0; k < places; k++) {
    widen(panel, mean_at(run, panel, k, places));
  }
  for (size_t k = 0; k < run->epochs.count && !panel->is_norm; k++) {
    widen(panel, run->epochs.items[k].has_evaluation ? run->epochs.items[k].evaluation.loss : NAN);
  }
  if (!(panel->high - panel->low > 1e-6)) {
    double middle = isfinite(panel->low) ? panel->low : 0.0;
    panel->low = middle - 0.5;
    panel->high = middle + 0.5;
  }
  draw_frame(panel, steps, svg);
  draw_steps(run, panel, places, svg);
  draw_held_out(run, panel, steps, svg);
}

cleave_status_t cleave_train_picture_write(const cleave_train_run_t *run, const char *path,
                                           cleave_error_t *error) {
  cleave_text_t svg = {0};
  panel_t loss = {.title = "loss of each step (line) and of held-out samples (dots)", .top = TOP};
  panel_t norm = {.title = "gradient norm", .is_norm = true, .top = TOP + PANEL + GAP};
  int height = TOP + 2 * PANEL + GAP + 40;
  cleave_text_format(&svg,
                     "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                     "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' "
                     "fill='white'/>\n",
                     WIDTH, height);
  draw_panel(run, &loss, &svg);
  draw_panel(run, &norm, &svg);
  cleave_text_add(&svg, "</svg>\n");
  cleave_status_t status = cleave_text_check(&svg, error);
  if (status == CLEAVE_OK) {
    status = cleave_file_write(path, svg.data, svg.length, error);
  }
  cleave_text_deinit(&svg);
  return status;
}
