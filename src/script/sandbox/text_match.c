// SPDX-License-Identifier: Apache-2.0
/*
 * string.find, match, gmatch and gsub with Lua's patterns (reference manual 6.4.1), where every step counts
 * against the time budget, so that endless backtracking ends. Otherwise the same as Lua's own functions,
 * except for positions captured in strings beyond 2 GiB, which the memory cap excludes.
 * Long file: one matcher, whose functions call each other in a ring.
 */
#include <ctype.h>
#include <string.h>

#include "script/sandbox/host.h"

enum { MAX_CAPTURES = 32, MAX_DEPTH = 200, ESCAPE = '%' };

#define CAPTURE_OPEN ((ptrdiff_t)-1)
#define CAPTURE_POSITION ((ptrdiff_t)-2)

typedef struct matcher {
  lua_State *state;
  const char *subject;
  const char *subject_end;
  const char *pattern_end;
  int depth;
  int level; /* captures so far, finished or not */
  struct {
    const char *start;
    ptrdiff_t length;
  } captures[MAX_CAPTURES];
} matcher_t;

static const char *match_here(matcher_t *m, const char *s, const char *p);

static int character(const char *p) {
  return (unsigned char)*p;
}

/* End of the single-character class at p. */
static const char *class_end(matcher_t *m, const char *p) {
  if (p == m->pattern_end) {
    luaL_error(m->state, "malformed pattern (ends with '%%')");
    return p;
  }
  int first = character(p++);
  if (first == ESCAPE) {
    if (p == m->pattern_end) {
      luaL_error(m->state, "malformed pattern (ends with '%%')");
    }
    return p + 1;
  }
  if (first != '[') {
    return p;
  }
  if (p < m->pattern_end && *p == '^') {
    p++;
  }
  do {
    if (p == m->pattern_end) {
      luaL_error(m->state, "malformed pattern (missing ']')");
      return p;
    }
    if (character(p++) == ESCAPE && p < m->pattern_end) {
      p++;
    }
  } while (p == m->pattern_end || *p != ']');
  return p + 1;
}

static bool in_named_class(int c, int name) {
  bool found = false;
  switch (tolower(name)) {
    case 'a': found = isalpha(c) != 0; break;
    case 'c': found = iscntrl(c) != 0; break;
    case 'd': found = isdigit(c) != 0; break;
    case 'g': found = isgraph(c) != 0; break;
    case 'l': found = islower(c) != 0; break;
    case 'p': found = ispunct(c) != 0; break;
    case 's': found = isspace(c) != 0; break;
    case 'u': found = isupper(c) != 0; break;
    case 'w': found = isalnum(c) != 0; break;
    case 'x': found = isxdigit(c) != 0; break;
    default: return name == c;
  }
  return isupper(name) != 0 ? !found : found;
}

/* `p` is at '[', `last` at the closing ']'. */
static bool in_set(int c, const char *p, const char *last) {
  bool wanted = true;
  if (p[1] == '^') {
    wanted = false;
    p++;
  }
  while (++p < last) {
    if (*p == ESCAPE) {
      p++;
      if (in_named_class(c, character(p))) {
        return wanted;
      }
    } else if (p[1] == '-' && p + 2 < last) {
      p += 2;
      if (character(p - 2) <= c && c <= character(p)) {
        return wanted;
      }
    } else if (character(p) == c) {
      return wanted;
    }
  }
  return !wanted;
}

static bool matches_one(matcher_t *m, const char *s, const char *p, const char *end) {
  if (s >= m->subject_end) {
    return false;
  }
  cleave_script_step(m->state, 1 + (uint32_t)((end - p) / 8));
  switch (*p) {
    case '.': return true;
    case ESCAPE: return in_named_class(character(s), character(p + 1));
    case '[': return in_set(character(s), p, end - 1);
    default: return *p == *s;
  }
}

static const char *match_balance(matcher_t *m, const char *s, const char *p) {
  if (p >= m->pattern_end - 1) {
    luaL_error(m->state, "malformed pattern (missing arguments to '%%b')");
    return NULL;
  }
  if (s >= m->subject_end || *s != *p) {
    return NULL;
  }
  int depth = 1;
  while (++s < m->subject_end) {
    cleave_script_step(m->state, 1);
    if (*s == p[1]) {
      if (--depth == 0) {
        return s + 1;
      }
    } else if (*s == *p) {
      depth++;
    }
  }
  return NULL;
}

static const char *match_longest(matcher_t *m, const char *s, const char *p, const char *end) {
  ptrdiff_t count = 0;
  while (matches_one(m, s + count, p, end)) {
    count++;
  }
  for (; count >= 0; count--) {
    const char *found = match_here(m, s + count, end + 1);
    if (found != NULL) {
      return found;
    }
  }
  return NULL;
}

static const char *match_shortest(matcher_t *m, const char *s, const char *p, const char *end) {
  for (;;) {
    const char *found = match_here(m, s, end + 1);
    if (found != NULL) {
      return found;
    }
    if (!matches_one(m, s, p, end)) {
      return NULL;
    }
    s++;
  }
}

static const char *open_capture(matcher_t *m, const char *s, const char *p, ptrdiff_t length) {
  if (m->level >= MAX_CAPTURES) {
    luaL_error(m->state, "too many captures");
    return NULL;
  }
  m->captures[m->level].start = s;
  m->captures[m->level].length = length;
  m->level++;
  const char *found = match_here(m, s, p);
  if (found == NULL) {
    m->level--;
  }
  return found;
}

static const char *close_capture(matcher_t *m, const char *s, const char *p) {
  int level = m->level - 1;
  while (level >= 0 && m->captures[level].length != CAPTURE_OPEN) {
    level--;
  }
  if (level < 0) {
    luaL_error(m->state, "invalid pattern capture");
    return NULL;
  }
  m->captures[level].length = s - m->captures[level].start;
  const char *found = match_here(m, s, p);
  if (found == NULL) {
    m->captures[level].length = CAPTURE_OPEN;
  }
  return found;
}

static const char *match_back_reference(matcher_t *m, const char *s, int digit) {
  int level = digit - '1';
  if (level < 0 || level >= m->level || m->captures[level].length == CAPTURE_OPEN) {
    luaL_error(m->state, "invalid capture index %%%d", level + 1);
    return NULL;
  }
  if (m->captures[level].length == CAPTURE_POSITION) {
    return NULL;
  }
  size_t length = (size_t)m->captures[level].length;
  cleave_script_step(m->state, (uint32_t)(length / 64 + 1));
  if ((size_t)(m->subject_end - s) >= length && memcmp(m->captures[level].start, s, length) == 0) {
    return s + length;
  }
  return NULL;
}

/* %f[set]: the place where the set begins. */
static bool at_frontier(matcher_t *m, const char *s, const char *p, const char *end) {
  cleave_script_step(m->state, 2 + (uint32_t)((end - p) / 4));
  int before = s == m->subject ? '\0' : character(s - 1);
  int here = s < m->subject_end ? character(s) : '\0';
  return !in_set(before, p, end - 1) && in_set(here, p, end - 1);
}

/* Matches one class with its suffix; sets *next if the caller continues in its loop, and returns the end
 * otherwise. */
static const char *match_class(matcher_t *m, const char **s, const char **p, bool *go_on) {
  const char *end = class_end(m, *p);
  char suffix = end < m->pattern_end ? *end : '\0';
  cleave_script_step(m->state, (uint32_t)((end - *p) / 8));
  *go_on = false;
  switch (suffix) {
    case '?':
      if (matches_one(m, *s, *p, end)) {
        const char *found = match_here(m, *s + 1, end + 1);
        if (found != NULL) {
          return found;
        }
      }
      *p = end + 1;
      *go_on = true;
      return NULL;
    case '+': return matches_one(m, *s, *p, end) ? match_longest(m, *s + 1, *p, end) : NULL;
    case '*': return match_longest(m, *s, *p, end);
    case '-': return match_shortest(m, *s, *p, end);
    default:
      if (!matches_one(m, *s, *p, end)) {
        return NULL;
      }
      (*s)++;
      *p = end;
      *go_on = true;
      return NULL;
  }
}

/* %b, %f and %1: as match_class. */
static const char *match_special(matcher_t *m, const char **s, const char **p, bool *go_on) {
  *go_on = false;
  if ((*p)[1] == 'b') {
    *s = match_balance(m, *s, *p + 2);
    *p += 4;
  } else if ((*p)[1] == 'f') {
    *p += 2;
    if (*p >= m->pattern_end || **p != '[') {
      luaL_error(m->state, "missing '[' after '%%f' in pattern");
      return NULL;
    }
    const char *end = class_end(m, *p);
    *s = at_frontier(m, *s, *p, end) ? *s : NULL;
    *p = end;
  } else {
    *s = match_back_reference(m, *s, character(*p + 1));
    *p += 2;
  }
  *go_on = *s != NULL;
  return NULL;
}

static const char *match_here(matcher_t *m, const char *s, const char *p) {
  if (m->depth-- == 0) {
    luaL_error(m->state, "pattern too complex");
  }
  cleave_script_step(m->state, 1);
  const char *found = NULL;
  bool go_on = true;
  while (go_on) {
    if (p == m->pattern_end) {
      found = s;
      break;
    }
    if (*p == '(') {
      found = p + 1 < m->pattern_end && p[1] == ')' ? open_capture(m, s, p + 2, CAPTURE_POSITION)
                                                    : open_capture(m, s, p + 1, CAPTURE_OPEN);
      break;
    }
    if (*p == ')') {
      found = close_capture(m, s, p + 1);
      break;
    }
    if (*p == '$' && p + 1 == m->pattern_end) {
      found = s == m->subject_end ? s : NULL;
      break;
    }
    bool special =
        *p == ESCAPE && p + 1 < m->pattern_end && (p[1] == 'b' || p[1] == 'f' || isdigit(character(p + 1)));
    found = special ? match_special(m, &s, &p, &go_on) : match_class(m, &s, &p, &go_on);
  }
  m->depth++;
  return found;
}

/* ---- results ---- */

static void push_capture(matcher_t *m, int level, const char *start, const char *end) {
  if (level >= m->level) {
    if (level != 0) {
      luaL_error(m->state, "invalid capture index %%%d", level + 1);
    }
    lua_pushlstring(m->state, start, (size_t)(end - start));
  } else if (m->captures[level].length == CAPTURE_OPEN) {
    luaL_error(m->state, "unfinished capture");
  } else if (m->captures[level].length == CAPTURE_POSITION) {
    lua_pushinteger(m->state, m->captures[level].start - m->subject + 1);
  } else {
    lua_pushlstring(m->state, m->captures[level].start, (size_t)m->captures[level].length);
  }
}

static int push_captures(matcher_t *m, const char *start, const char *end) {
  int count = m->level == 0 && start != NULL ? 1 : m->level;
  luaL_checkstack(m->state, count, "too many captures");
  for (int k = 0; k < count; k++) {
    push_capture(m, k, start, end);
  }
  return count;
}

static matcher_t make_matcher(lua_State *state, const char *subject, size_t length, const char *pattern,
                              size_t pattern_length) {
  return (matcher_t){.state = state,
                     .subject = subject,
                     .subject_end = subject + length,
                     .pattern_end = pattern + pattern_length,
                     .depth = MAX_DEPTH};
}

static const char *try_match(matcher_t *m, const char *s, const char *p) {
  m->level = 0;
  m->depth = MAX_DEPTH;
  return match_here(m, s, p);
}

static const char *find_plain(lua_State *state, const char *text, size_t length, const char *wanted,
                              size_t wanted_length) {
  if (wanted_length == 0) {
    return text;
  }
  while (length >= wanted_length) {
    const char *first = memchr(text, wanted[0], length - wanted_length + 1);
    if (first == NULL) {
      return NULL;
    }
    size_t skipped = (size_t)(first - text);
    cleave_script_step(state, (uint32_t)((skipped + wanted_length) / 16 + 1));
    if (memcmp(first, wanted, wanted_length) == 0) {
      return first;
    }
    text = first + 1;
    length -= skipped + 1;
  }
  return NULL;
}

static size_t start_position(lua_Integer position, size_t length) {
  if (position > 0) {
    return (size_t)position;
  }
  if (position == 0 || position < -(lua_Integer)length) {
    return 1;
  }
  return length + (size_t)(position + 1);
}

static bool has_specials(const char *pattern, size_t length) {
  for (size_t k = 0; k < length; k++) {
    if (pattern[k] != '\0' && strchr("^$*+?.([%-", pattern[k]) != NULL) {
      return true;
    }
  }
  return false;
}

static int find_or_match(lua_State *state, bool find) {
  size_t length = 0;
  size_t pattern_length = 0;
  const char *s = luaL_checklstring(state, 1, &length);
  const char *p = luaL_checklstring(state, 2, &pattern_length);
  size_t start = start_position(luaL_optinteger(state, 3, 1), length) - 1;
  if (start > length) {
    luaL_pushfail(state);
    return 1;
  }
  cleave_script_step(state, (uint32_t)(pattern_length / 4));
  bool plain = find && (lua_toboolean(state, 4) != 0 || !has_specials(p, pattern_length));
  if (plain) {
    const char *found = find_plain(state, s + start, length - start, p, pattern_length);
    if (found != NULL) {
      lua_pushinteger(state, found - s + 1);
      lua_pushinteger(state, found - s + (ptrdiff_t)pattern_length);
      return 2;
    }
  } else {
    bool anchored = pattern_length > 0 && *p == '^';
    matcher_t m = make_matcher(state, s, length, p, pattern_length);
    p += anchored ? 1 : 0;
    for (const char *at = s + start; at <= m.subject_end; at++) {
      const char *end = try_match(&m, at, p);
      if (end != NULL && find) {
        lua_pushinteger(state, at - s + 1);
        lua_pushinteger(state, end - s);
        return push_captures(&m, NULL, NULL) + 2;
      }
      if (end != NULL) {
        return push_captures(&m, at, end);
      }
      if (anchored) {
        break;
      }
    }
  }
  luaL_pushfail(state);
  return 1;
}

static int text_find(lua_State *state) {
  return find_or_match(state, true);
}

static int text_match(lua_State *state) {
  return find_or_match(state, false);
}

/* Upvalues: subject, pattern, position to go on from, end of the last match (-1: none). */
static int next_match(lua_State *state) {
  size_t length = 0;
  size_t pattern_length = 0;
  const char *s = lua_tolstring(state, lua_upvalueindex(1), &length);
  const char *p = lua_tolstring(state, lua_upvalueindex(2), &pattern_length);
  lua_Integer last = lua_tointeger(state, lua_upvalueindex(4));
  matcher_t m = make_matcher(state, s, length, p, pattern_length);
  for (const char *at = s + lua_tointeger(state, lua_upvalueindex(3)); at <= m.subject_end; at++) {
    const char *end = try_match(&m, at, p);
    if (end != NULL && end - s != last) {
      lua_pushinteger(state, end - s);
      lua_copy(state, -1, lua_upvalueindex(3));
      lua_replace(state, lua_upvalueindex(4));
      return push_captures(&m, at, end);
    }
  }
  lua_pushinteger(state, (lua_Integer)length + 1);
  lua_replace(state, lua_upvalueindex(3));
  return 0;
}

static int text_gmatch(lua_State *state) {
  size_t length = 0;
  (void)luaL_checklstring(state, 1, &length);
  (void)luaL_checkstring(state, 2);
  size_t start = start_position(luaL_optinteger(state, 3, 1), length) - 1;
  lua_settop(state, 2);
  lua_pushinteger(state, (lua_Integer)(start > length ? length + 1 : start));
  lua_pushinteger(state, -1);
  lua_pushcclosure(state, next_match, 4);
  return 1;
}

/* ---- gsub ---- */

static void add_template(matcher_t *m, luaL_Buffer *buffer, const char *s, const char *end) {
  size_t length = 0;
  const char *text = lua_tolstring(m->state, 3, &length);
  cleave_script_step(m->state, (uint32_t)(length / 2));
  for (size_t k = 0; k < length; k++) {
    if (text[k] != ESCAPE) {
      luaL_addchar(buffer, text[k]);
      continue;
    }
    k++;
    if (k < length && text[k] == ESCAPE) {
      luaL_addchar(buffer, ESCAPE);
    } else if (k < length && text[k] == '0') {
      luaL_addlstring(buffer, s, (size_t)(end - s));
    } else if (k < length && isdigit(character(text + k))) {
      push_capture(m, text[k] - '1', s, end);
      (void)luaL_tolstring(m->state, -1, NULL);
      lua_remove(m->state, -2);
      luaL_addvalue(buffer);
    } else {
      luaL_error(m->state, "invalid use of '%%' in replacement string");
    }
  }
}

static void add_replacement(matcher_t *m, luaL_Buffer *buffer, const char *s, const char *end) {
  switch (lua_type(m->state, 3)) {
    case LUA_TFUNCTION:
      lua_pushvalue(m->state, 3);
      lua_call(m->state, push_captures(m, s, end), 1);
      break;
    case LUA_TTABLE:
      push_capture(m, 0, s, end);
      lua_gettable(m->state, 3);
      break;
    default: add_template(m, buffer, s, end); return;
  }
  if (!lua_toboolean(m->state, -1)) {
    lua_pop(m->state, 1);
    luaL_addlstring(buffer, s, (size_t)(end - s));
  } else if (!lua_isstring(m->state, -1)) {
    luaL_error(m->state, "invalid replacement value (a %s)", luaL_typename(m->state, -1));
  } else {
    luaL_addvalue(buffer);
  }
}

static int text_gsub(lua_State *state) {
  size_t length = 0;
  size_t pattern_length = 0;
  const char *s = luaL_checklstring(state, 1, &length);
  const char *p = luaL_checklstring(state, 2, &pattern_length);
  int type = lua_type(state, 3);
  luaL_argexpected(state,
                   type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE,
                   3, "string/function/table");
  lua_Integer limit = luaL_optinteger(state, 4, (lua_Integer)length + 1);
  bool anchored = pattern_length > 0 && *p == '^';
  matcher_t m = make_matcher(state, s, length, p, pattern_length);
  p += anchored ? 1 : 0;
  lua_Integer count = 0;
  const char *last = NULL;
  luaL_Buffer buffer;
  luaL_buffinit(state, &buffer);
  while (count < limit) {
    const char *end = try_match(&m, s, p);
    if (end != NULL && end != last) {
      count++;
      add_replacement(&m, &buffer, s, end);
      s = last = end;
    } else if (s < m.subject_end) {
      luaL_addchar(&buffer, *s);
      s++;
    } else {
      break;
    }
    if (anchored) {
      break;
    }
  }
  luaL_addlstring(&buffer, s, (size_t)(m.subject_end - s));
  luaL_pushresult(&buffer);
  lua_pushinteger(state, count);
  return 2;
}

void cleave_text_match_register(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {
      {"find", text_find}, {"match", text_match}, {"gmatch", text_gmatch}, {"gsub", text_gsub}, {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
