// SPDX-License-Identifier: Apache-2.0
/* The exact message for everything that can be wrong in a rule file. */
#include "script/rules/rules.h"

#include "unit.h"

typedef struct mistake {
  const char *text;
  const char *message;
  const char *rule; /* in the error; NULL: none */
} mistake_t;

static void check_mistakes(const mistake_t *mistakes, size_t count, const char *head, const char *tail) {
  for (size_t k = 0; k < count; k++) {
    char text[1024];
    cleave_rules_t *rules = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)snprintf(text, sizeof text, "%s%s%s", head, mistakes[k].text, tail);
    const cleave_rule_source_t source = {.path = "r.lua", .text = text, .length = strlen(text)};
    ck_assert_msg(cleave_rules_load(NULL, &source, NULL, NULL, &rules, &error) == CLEAVE_ERROR_RULE,
                  "%s: status %d %s", text, error.status, error.message);
    ck_assert_ptr_null(rules);
    ck_assert_str_eq(error.message, mistakes[k].message);
    ck_assert_str_eq(error.rule, mistakes[k].rule != NULL ? mistakes[k].rule : "");
    ck_assert_str_eq(error.file, "r.lua");
  }
}

UNIT_TEST(says_what_is_wrong_in_an_operator) {
  static const mistake_t MISTAKES[] = {
      {"op 'Convv'", "r.lua:3: fuse 'x': operator 'Convv' is unknown (did you mean 'Conv'?)", "x"},
      {"op { 'Conv', 'Reluu' }", "r.lua:3: fuse 'x': operator 'Reluu' is unknown (did you mean 'Relu'?)",
       "x"},
      {"op { 'Conv', az = 'x' }", "r.lua:3: fuse 'x': op has no key 'az' (did you mean 'as'?)", "x"},
      {"op { 'Conv', strides = { 1, 1 } }",
       "r.lua:3: fuse 'x': op has no key 'strides' (attributes go into attrs = { strides = ... })", "x"},
      {"op { 'Conv', attrs = { stride = { 1, 1 } } }",
       "r.lua:3: fuse 'x': operator 'Conv' has no attribute 'stride' (did you mean 'strides'?)", "x"},
      {"op { 'Conv', attrs = { strides = 1 } }",
       "r.lua:3: fuse 'x': attribute 'strides': expected a value of kind list of integers, found 1", "x"},
      {"op { 'Conv', attrs = { group = 1.5 } }",
       "r.lua:3: fuse 'x': attribute 'group': expected a value of kind integer, found 1.5", "x"},
      {"op { 'Conv', attrs = { auto_pad = 3 } }",
       "r.lua:3: fuse 'x': attribute 'auto_pad': expected a value of kind string, found 3", "x"},
      {"op { 'Conv', attrs = { strides = range { min = 2 } } }",
       "r.lua:3: fuse 'x': attribute 'strides': a range fits numbers, this is a list of integers", "x"},
      {"op { 'Conv', attrs = { group = one_of { 1, 'x' } } }",
       "r.lua:3: fuse 'x': attribute 'group': expected a value of kind integer, found 'x'", "x"},
      {"op { attrs = { group = 1 } }", "r.lua:3: fuse 'x': op: attribute 'group' is named, but no operator",
       "x"},
      {"op { 'Conv', inputs = { weight = constant 'w' } }",
       "r.lua:3: fuse 'x': operator 'Conv' has no input 'weight' (it has X, W, B)", "x"},
      {"op { 'BatchNormalization', inputs = { input_meen = constant 'm' } }",
       "r.lua:3: fuse 'x': operator 'BatchNormalization' has no input 'input_meen' (did you mean "
       "'input_mean'?)",
       "x"},
      {"op { 'Conv', inputs = { w = 'w' } }",
       "r.lua:3: fuse 'x': op: input 'w' is the string 'w' (write any 'w', constant 'w' or op 'w')", "x"},
      {"op { 'Conv', inputs = { any 'a', any 'b', any 'c', any 'd' } }",
       "r.lua:3: fuse 'x': operator 'Conv' has 3 inputs, the pattern gives 4", "x"},
      {"op { 'Conv', inputs = { w = constant 'w', any 'x', any 'y' } }",
       "r.lua:3: fuse 'x': op: input 2 is given twice", "x"},
      {"op { { 'Conv', 'Gemm' }, inputs = { B = any 'x' } }",
       "r.lua:3: fuse 'x': input 'B' is input 3 of 'Conv' but 2 of 'Gemm'", "x"},
      {"op { 'Conv', dtype = 'float33' }",
       "r.lua:3: fuse 'x': op: dtype 'float33' is unknown (did you mean 'float32'?); there are float32, "
       "uint8, int8, uint16, int16, int32, int64, string, bool, float16, float64, uint32, uint64, bfloat16",
       "x"},
      {"op { 'Conv', rank = 9 }", "r.lua:3: fuse 'x': op: rank is 9, expected 0 to 8", "x"},
      {"op { 'Conv', rank = 3, shape = { 'N', 'C' } }",
       "r.lua:3: fuse 'x': op: rank is 3, but shape has 2 dimensions", "x"},
      {"op { 'Conv', shape = { 'N', -1 } }",
       "r.lua:3: fuse 'x': op: shape: expected a size, a name or '?', found -1", "x"},
      {"op { 'Conv', as = 'a b' }",
       "r.lua:3: fuse 'x': op: as: 'a b' is not a name (letters, digits, '_', '-' and '.', at most 63)", "x"},
      {"op { 'Conv', shared = 1 }", "r.lua:3: fuse 'x': op: shared: expected a boolean, found 1", "x"},
      {"op { 'Conv', output = 2 }",
       "r.lua:3: fuse 'x': operator 'Conv' has 1 output, the pattern asks for output 2", "x"},
      {"op { 'Conv', output = 'Z' }",
       "r.lua:3: fuse 'x': operator 'Conv' has no output 'Z' (did you mean 'Y'?)", "x"},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0],
                 "return ruleset { name = 'r',\n fuse 'x' {\n pattern = ", " } }");
}

UNIT_TEST(says_what_is_wrong_in_a_pattern) {
  static const mistake_t MISTAKES[] = {
      {"maybe(op 'Conv')", "r.lua:2: fuse 'x': pattern must begin with an operator", "x"},
      {"any 'x'", "r.lua:2: fuse 'x': pattern must begin with an operator", "x"},
      {"any { name = 'x' } >> op 'Relu'", "r.lua:2: fuse 'x': any has no key 'name'", "x"},
      {"constant { tolerance = 1 } >> op 'Relu'",
       "r.lua:2: fuse 'x': constant: tolerance is given, but no value", "x"},
      {"constant { valeu = 1 } >> op 'Relu'",
       "r.lua:2: fuse 'x': constant has no key 'valeu' (did you mean 'value'?)", "x"},
      {"op 'Conv' >> 3", "r.lua:2: '>>': expected a pattern or the name of an operator, found 3", NULL},
      {"op 'Conv' >> nil", "r.lua:2: '>>': expected a pattern or the name of an operator, found nothing",
       NULL},
      {"op 'Conv' | {}", "r.lua:2: '|': expected a pattern or the name of an operator, found a table", NULL},
      {"op 'Conv' >> one_of { 1 }",
       "r.lua:2: '>>': expected a pattern or the name of an operator, found a list of values", NULL},
      {"op 'Conv' >> function() return 1 end",
       "r.lua:2: '>>': what the function returned: expected a pattern or the name of an operator, found 1",
       NULL},
      {"3", "r.lua:2: fuse 'x': pattern: expected a pattern or the name of an operator, found 3", "x"},
      {"nil", "r.lua:2: fuse 'x': no pattern, and none of ops, supported and selector", "x"},
      {"op 'Conv' >> any 'x'", "r.lua:2: fuse 'x': only the first part of a sequence can be a value", "x"},
      {"op 'Conv' >> repeated { op 'Relu', min = 3, max = 2 }",
       "r.lua:2: fuse 'x': repeated: 3 to 2 times, expected 0 <= min <= max, 1 <= max <= 4096", "x"},
      {"op 'Conv' >> repeated { op 'Relu', mix = 3 }",
       "r.lua:2: repeated has no key 'mix' (did you mean 'min'?)", NULL},
      {"op 'Conv' >> repeated(maybe(op 'Relu'))", "r.lua:2: fuse 'x': 'repeated' needs an operator in it",
       "x"},
      {"op 'Conv' >> oneof {}", "r.lua:2: oneof: expected at least one alternative", NULL},
      {"op 'Conv' >> maybe {}",
       "r.lua:2: maybe: expected one pattern, found 0 (write maybe(a >> b) for one after the other, maybe(a "
       "| b) for one of them)",
       NULL},
      {"op 'Conv' >> maybe { op 'Relu', when = 1 }",
       "r.lua:2: fuse 'x': maybe: when: expected a boolean, found 1", "x"},
      {"range { min = 2, mux = 3 }", "r.lua:2: range has no key 'mux' (did you mean 'max'?)", NULL},
      {"op(3)", "r.lua:2: op: expected a table, found 3", NULL},
      {"op { 'Conv', inputs = { x = op { 'Relu', inputs = { y = any 'z' } } } }",
       "r.lua:2: fuse 'x': operator 'Relu' has no input 'y' (did you mean 'X'?)", "x"},
      {"op 'Conv', were = function() end",
       "r.lua:2: fuse 'x': fuse has no key 'were' (did you mean 'where'?)", "x"},
      {"op 'Conv', where = true",
       "r.lua:2: fuse 'x': where: expected a function or a condition as a string, found true", "x"},
      {"op 'Conv', priority = 1.5", "r.lua:2: fuse 'x': priority: expected an integer, found 1.5", "x"},
      {"op 'Conv', enabled = 'yes'", "r.lua:2: fuse 'x': enabled: expected a boolean, found 'yes'", "x"},
      {"op 'Conv', doc = 7", "r.lua:2: fuse 'x': doc: expected a string, found 7", "x"},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0],
                 "return ruleset { name = 'r',\n fuse 'x' { pattern = ", " } }");
}

UNIT_TEST(says_what_is_wrong_in_a_ruleset) {
  static const mistake_t MISTAKES[] = {
      {"return 5", "r.lua:1: the file returns 5: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"", "r.lua:1: the file returns nothing: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"return op 'Conv'",
       "r.lua:1: the file returns a pattern: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"return fuse 'x' { pattern = op 'Conv' }",
       "r.lua:1: the file returns a fuse: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"-- one\n\nlocal x = 2\n\n",
       "r.lua:3: the file returns nothing: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"\nlocal r = ruleset { name = 'r' }\nlocal x = 1",
       "r.lua:2: the ruleset is made, but not returned: write 'return ruleset { ... }'", NULL},
      {"return ruleset { name = 'r',\n ruleset 'a' { ruleset 'b' {} } }",
       "r.lua:2: ruleset 'a': entry 1 is a ruleset with a name, expected fuse, gradient, pass, region, "
       "rewrite, stage, "
       "test or ruleset, or a list of them",
       NULL},
      {"return ruleset { name = 'r',\n ruleset 'a' {}, strategy 'a' {} }",
       "r.lua:2: ruleset 'a' is defined twice, first in line 2", NULL},
      {"return ruleset 'a' {}",
       "r.lua:1: the file returns a ruleset: end it with 'return ruleset { name = ..., ... }'", NULL},
      {"\nlocal p = 'Conv' >> 'Relu'",
       "r.lua:2: 'Conv' >> 'Relu': neither side is a pattern (write op 'Conv' >> 'Relu')", NULL},
      {"local p = 'Conv' | 'Gemm'",
       "r.lua:1: 'Conv' | 'Gemm': neither side is a pattern (write op 'Conv' | 'Gemm')", NULL},
      {"\n\nlocal p = maybe { 'Add', 'Relu' }",
       "r.lua:3: maybe: expected one pattern, found 2 (write maybe(a >> b) for one after the other, "
       "maybe(a | b) for one of them)",
       NULL},
      {"return ruleset { name = 'r',\n options = { m = option.enum('a', 'doc', { 'a', {} }) } }",
       "r.lua:2: option.enum: choice 2 is a table, expected a string", NULL},
      {"return ruleset { name = 'r',\n options = { m = option.enum('a', 'doc', {}) } }",
       "r.lua:2: option.enum: expected a list of the choices as third argument", NULL},
      {"\nlocal m = option.number(0/0, 'doc')",
       "r.lua:2: option.number: default is not a number, expected a number", NULL},
      {"\nlocal m = option.number(1, 'doc', { max = 0/0 })",
       "r.lua:2: option.number: max is not a number, expected a number", NULL},
      {"\nlocal m = option.integer(1, 'doc', { min = 2, max = 1 })",
       "r.lua:2: option.integer: min is 2, more than max, which is 1", NULL},
      {"return ruleset {}", "r.lua:1: ruleset: name: expected a string, found nothing", NULL},
      {"return ruleset { name = 'r', bakend = 'cpu' }",
       "r.lua:1: ruleset has no key 'bakend' (did you mean 'backend'?)", NULL},
      {"return ruleset { name = 'r', backend = 5 }", "r.lua:1: ruleset: backend: expected a string, found 5",
       NULL},
      {"return ruleset { name = 'r',\n\n fuse 'x' }",
       "r.lua:1: ruleset: entry 1 is a function, expected fuse, gradient, pass, region, rewrite, stage, "
       "test or ruleset, or a list of them (fuse 'name' without { ... }?)",
       NULL},
      {"return ruleset { name = 'r', 'x' }",
       "r.lua:1: ruleset: entry 1 is 'x', expected fuse, gradient, pass, region, rewrite, stage, test or "
       "ruleset, or a list of them",
       NULL},
      {"return ruleset { name = 'r',\n { region 'f' {}, op 'Conv' } }",
       "r.lua:1: ruleset: entry 1: entry 2 is a pattern, expected fuse, gradient, pass, region, rewrite, "
       "stage, test "
       "or ruleset, or a list of them",
       NULL},
      {"return ruleset { name = 'r',\n { pattern = op 'Conv' } }",
       "r.lua:1: ruleset: entry 1 is a table, expected fuse, gradient, pass, region, rewrite, stage, test or "
       "ruleset, or a list of them",
       NULL},
      {"return ruleset { name = 'r', options = { o = option.integer(1, 'doc') },\n"
       " { options = { o = option.integer(2, 'doc') } , region 'g' {} } }",
       "r.lua:1: ruleset: two options are called 'o' in what it contains, expected one", NULL},
      {"return ruleset { name = 'r',\nregion 'g' {},\nregion 'g' {} }",
       "r.lua:3: region 'g' is defined twice, first in line 2", NULL},
      {"return ruleset { name = 'r', region 'g' { ops = { 'Cnv' } } }",
       "r.lua:1: region 'g': operator 'Cnv' is unknown (did you mean 'Conv'?)", "g"},
      {"return ruleset { name = 'r', region 'g' { opps = { 'Conv' } } }",
       "r.lua:1: region 'g': region has no key 'opps' (did you mean 'ops'?)", "g"},
      {"return ruleset { name = 'r', region 'g' { ops = {}, selector = function() end } }",
       "r.lua:1: region 'g': has both ops and selector, expected one of ops, supported, selector and "
       "partitioner",
       "g"},
      {"return ruleset { name = 'r', region 'g' { ops = {}, once = true } }",
       "r.lua:1: region 'g': has once without selector: only a selector grows from seeds", "g"},
      {"return ruleset { name = 'r', region 'g' { ops = 'Conv' } }",
       "r.lua:1: region 'g': ops: expected a table, found 'Conv'", "g"},
      {"return ruleset { name = 'r', region 'g' { min_nodes = -1 } }",
       "r.lua:1: region 'g': min_nodes is -1, expected 0 to 2147483647", "g"},
      {"return ruleset { name = 'r', options = { x = 3 } }",
       "r.lua:1: options: 'x' is 3, expected option.boolean(...) or its like", NULL},
      {"return ruleset { name = 'r', options = { x = option.integer(3.5) } }",
       "r.lua:1: option.integer: default is 3.5, expected an integer", NULL},
      {"return ruleset { name = 'r', options = { x = option.number(3, 'd', { 5, 7 }) } }",
       "r.lua:1: option.number: default is 3, expected 5 to 7", NULL},
      {"return ruleset { name = 'r', options = { x = option.enum('a', 'd') } }",
       "r.lua:1: option.enum: expected a list of the choices as third argument", NULL},
      {"return ruleset { name = 'r', options = { x = option.enum('a', 'd', { 'b', 'c' }) } }",
       "r.lua:1: option.enum: default is 'a', expected one of b, c", NULL},
      {"return ruleset { name = 'r', test 'a b' { graph = 1 } }",
       "r.lua:1: test 'a b': graph: expected a function, found 1", "a b"},
      {"return ruleset { name = 'r', test 'a b' { grph = 1 } }",
       "r.lua:1: test 'a b': test has no key 'grph' (did you mean 'graph'?)", "a b"},
      {"local unused = op { 'Conv',\n attrs = { bad = 1 } }\nreturn ruleset { name = 'r' }",
       "r.lua:1: operator 'Conv' has no attribute 'bad'", NULL},
      {"fuse 'a b' {}", "r.lua:1: fuse: 'a b' is not a name (letters, digits, '_', '-' and '.', at most 63)",
       NULL},
      {"local t = {} t.t = t op(t)", "r.lua:1: tables are nested more than 8 deep", NULL},
      {"local p = op 'Relu' for k = 1, 5000 do p = p >> op 'Relu' end",
       "r.lua:1: '>>': more than 1000 parts in a row", NULL},
      {"local p = op 'Relu' for k = 1, 70 do p = oneof { p } end return ruleset { name = 'r', fuse 'x' { "
       "pattern "
       "= p } }",
       "r.lua:1: fuse 'x': the pattern is nested more than 64 deep", "x"},
      {"local function f(x) return nil .. x end\nlocal p = op 'Relu' >> f",
       "r.lua:1: attempt to concatenate a nil value; called at line 2", NULL},
  };
  check_mistakes(MISTAKES, sizeof MISTAKES / sizeof MISTAKES[0], "", "");
}

UNIT_TEST(keeps_long_paths_whole_in_messages) {
  static const char PATH[] = "/a/very/long/path/that/lua/would/show/cut/off/in/its/own/messages/rules.lua";
  static const char TEXT[] = "\nlocal p = opp 'x'";
  cleave_rules_t *rules = NULL;
  unit_fails(
      cleave_rules_load(NULL, &(cleave_rule_source_t){.path = PATH, .text = TEXT, .length = sizeof TEXT - 1},
                        NULL, NULL, &rules, e),
      CLEAVE_ERROR_RULE,
      "/a/very/long/path/that/lua/would/show/cut/off/in/its/own/messages/rules.lua:2: unknown word 'opp' "
      "(did you mean 'op'?)");
}

UNIT_SUITE("script mistakes")
