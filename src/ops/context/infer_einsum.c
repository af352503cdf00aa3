// SPDX-License-Identifier: Apache-2.0
// Einsum: reads the equation ("bij, bjk -> bik", "...ij->...ji", "ii->i") and relates the dims of all terms.
// The equation is hostile text: letters, blanks, commas, one "->" and one ellipsis per term, nothing else.

#include <string.h>

#include "ops/context/einsum.h"

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

uint32_t cleave_einsum_letter(char letter) {
  return letter >= 'a' ? (uint32_t)(letter - 'a') : (uint32_t)(letter - 'A') + 26;
}

static cleave_status_t fail(const cleave_infer_t *infer, cleave_error_t *error) {
  return cleave_infer_fail(infer, error, "equation '%.100s' cannot be read",
                           cleave_infer_text(infer, "equation", ""));
}

/* One term up to a comma, an arrow or the end. */
static bool parse_term(const char **cursor, cleave_einsum_term_t *term) {
  memset(term, 0, sizeof *term);
  term->ellipsis = -1;
  for (; **cursor != '\0' && **cursor != ',' && **cursor != '-'; (*cursor)++) {
    if (**cursor == ' ') {
      continue;
    }
    if (strncmp(*cursor, "...", 3) == 0 && term->ellipsis < 0) {
      term->ellipsis = term->count;
      *cursor += 2;
      continue;
    }
    if (!is_letter(**cursor) || term->count == CLEAVE_MAX_RANK) {
      return false;
    }
    term->letters[term->count++] = **cursor;
  }
  return true;
}

/* Without an arrow: the letters that occur once, in order of the alphabet, after the ellipsis. */
static bool default_output(cleave_einsum_t *einsum) {
  uint32_t uses[CLEAVE_EINSUM_LETTERS] = {0};
  memset(&einsum->output, 0, sizeof einsum->output);
  einsum->output.ellipsis = -1;
  for (uint32_t t = 0; t < einsum->term_count; t++) {
    for (int32_t k = 0; k < einsum->terms[t].count; k++) {
      uses[cleave_einsum_letter(einsum->terms[t].letters[k])]++;
    }
    einsum->output.ellipsis = einsum->terms[t].ellipsis >= 0 ? 0 : einsum->output.ellipsis;
  }
  for (char c = 'A'; c <= 'z'; c++) {
    if (is_letter(c) && uses[cleave_einsum_letter(c)] == 1) {
      if (einsum->output.count == CLEAVE_MAX_RANK) {
        return false;
      }
      einsum->output.letters[einsum->output.count++] = c;
    }
  }
  return true;
}

bool cleave_einsum_parse(const char *equation, uint32_t term_limit, cleave_einsum_t *out_einsum) {
  memset(out_einsum, 0, sizeof *out_einsum);
  const char *cursor = equation;
  for (;;) {
    if (out_einsum->term_count == CLEAVE_EINSUM_TERMS || out_einsum->term_count == term_limit ||
        !parse_term(&cursor, &out_einsum->terms[out_einsum->term_count])) {
      return false;
    }
    out_einsum->term_count++;
    if (*cursor != ',') {
      break;
    }
    cursor++;
  }
  if (*cursor == '\0') {
    return default_output(out_einsum);
  }
  if (strncmp(cursor, "->", 2) != 0) {
    return false;
  }
  cursor += 2;
  return parse_term(&cursor, &out_einsum->output) && *cursor == '\0';
}

/* Axis of letter k of a term over a value of this rank. */
static int32_t letter_axis(const cleave_einsum_term_t *term, int32_t rank, int32_t k) {
  return term->ellipsis >= 0 && k >= term->ellipsis ? rank - term->count + k : k;
}

static cleave_status_t check_term(const cleave_infer_t *infer, const cleave_einsum_term_t *term, int32_t rank,
                                  cleave_error_t *error) {
  bool fits = term->ellipsis >= 0 ? rank >= term->count : rank == term->count;
  if (rank < 0 || fits) {
    return CLEAVE_OK;
  }
  return cleave_infer_fail(infer, error, "a term of the equation has %d letter%s, the operand rank %d",
                           term->count, CLEAVE_PLURAL(term->count), rank);
}

/* Size of every letter, a known one before a symbolic one; 1 gives way (it broadcasts). */
static cleave_status_t collect_letters(cleave_infer_t *infer, const cleave_einsum_t *einsum,
                                       cleave_dim_t *sizes, cleave_error_t *error) {
  for (uint32_t t = 0; t < einsum->term_count; t++) {
    const cleave_einsum_term_t *term = &einsum->terms[t];
    const cleave_fact_t *fact = infer->inputs[t];
    CLEAVE_TRY(check_term(infer, term, cleave_fact_rank(fact), error));
    for (int32_t k = 0; k < term->count && cleave_fact_rank(fact) >= 0; k++) {
      cleave_dim_t *size = &sizes[cleave_einsum_letter(term->letters[k])];
      cleave_dim_t dim = fact->dims[letter_axis(term, fact->rank, k)];
      bool differ = cleave_dim_is_known(dim) && cleave_dim_is_known(*size) && dim != *size;
      if (differ && dim != 1 && *size != 1) {
        return cleave_infer_fail(infer, error, "axis '%c' has the sizes %lld and %lld", term->letters[k],
                                 (long long)*size, (long long)dim);
      }
      bool is_better = *size == CLEAVE_DIM_UNKNOWN || *size == 1 ||
                       (cleave_dim_is_symbolic(*size) && cleave_dim_is_known(dim) && dim != 1);
      *size = is_better && dim != CLEAVE_DIM_UNKNOWN ? dim : *size;
    }
  }
  return CLEAVE_OK;
}

/* Broadcast of what the ellipses stand for; *out_rank -1 if an operand with one has no rank yet. */
static cleave_status_t collect_ellipsis(cleave_infer_t *infer, const cleave_einsum_t *einsum,
                                        int32_t *out_rank, cleave_dim_t *dims, cleave_error_t *error) {
  *out_rank = 0;
  for (uint32_t t = 0; t < einsum->term_count; t++) {
    const cleave_einsum_term_t *term = &einsum->terms[t];
    const cleave_fact_t *fact = infer->inputs[t];
    if (term->ellipsis < 0) {
      continue;
    }
    if (cleave_fact_rank(fact) < 0) {
      *out_rank = -1;
      return CLEAVE_OK;
    }
    *out_rank = cleave_shape_broadcast(*out_rank, dims, fact->rank - term->count,
                                       fact->rank > 0 ? fact->dims + term->ellipsis : NULL, dims);
    if (*out_rank < 0) {
      return cleave_infer_fail(infer, error, "the dimensions of '...' do not broadcast");
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_einsum(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_einsum_t einsum;
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  if (!cleave_einsum_parse(cleave_infer_text(infer, "equation", ""), infer->input_count, &einsum) ||
      einsum.term_count != infer->input_count) {
    return fail(infer, error);
  }
  for (uint32_t t = 0; t < einsum.term_count; t++) {
    CLEAVE_TRY(cleave_infer_same_dtype(infer, infer->inputs[t], output, error));
    if (einsum.terms[t].ellipsis < 0) {
      CLEAVE_TRY(cleave_infer_set_rank(infer, infer->inputs[t], einsum.terms[t].count, error));
    }
  }
  cleave_dim_t sizes[CLEAVE_EINSUM_LETTERS];
  cleave_dim_t wild[CLEAVE_MAX_RANK];
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t wild_rank = 0;
  for (uint32_t k = 0; k < CLEAVE_EINSUM_LETTERS; k++) {
    sizes[k] = CLEAVE_DIM_UNKNOWN;
  }
  CLEAVE_TRY(collect_letters(infer, &einsum, sizes, error));
  CLEAVE_TRY(collect_ellipsis(infer, &einsum, &wild_rank, wild, error));
  wild_rank = einsum.output.ellipsis < 0 ? 0 : wild_rank;
  if (wild_rank < 0) {
    return CLEAVE_OK;
  }
  int32_t rank = 0;
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, (int64_t)einsum.output.count + wild_rank, error));
  for (int32_t k = 0; k <= einsum.output.count; k++) {
    for (int32_t d = 0; k == einsum.output.ellipsis && d < wild_rank; d++) {
      dims[rank++] = wild[d];
    }
    if (k < einsum.output.count) {
      dims[rank++] = sizes[cleave_einsum_letter(einsum.output.letters[k])];
    }
  }
  return cleave_infer_set_shape(infer, output, rank, dims, error);
}
