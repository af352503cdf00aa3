#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program from outside: help, mistakes and their exit statuses, what commands print, the keys of --json.
set -u
program=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

cat >tiny.lua <<'LUA'
-- y = Relu(x * w + b), z = Softmax(y)
local size = options.size or 4
local x = g.input("x", "float32", { 2, size })
local y = g.Relu(g.Add(g.MatMul(x, g.weight { size, 3, name = "w" }), g.zeros { 3, name = "b" }))
g.output("y", y)
g.output("z", g.Softmax(y))
LUA
cat >rules.lua <<'LUA'
return ruleset {
  name = "tiny", backend = "cpu",
  options = { bias = option.boolean(true, "fuse the bias") },
  fuse "product" { doc = "a product and its bias", pattern = op { "MatMul", as = "product" } >> op { "Add" } },
  region "island" { doc = "all but the end", ops = { "MatMul", "Add", "Relu" } },
}
LUA
printf 'return ruleset {\n  name = "bad", backend = "cpu",\n  region "r" { ops = { "Convv" } },\n}\n' >bad.lua

# keys NAME KEYS: every key is in the JSON of the last command.
keys() {
  for key in $2; do
    if grep -q "\"$key\":" out; then
      passed=$((passed + 1))
    else
      echo "$1: key '$key' is not in the JSON"
      failed=$((failed + 1))
    fi
  done
}

# Help and versions.
check "lists commands" 0 '^  conform ' "$program" --help
check "lists commands" 0 '^  run ' "$program" help
check "help that cannot be written" 1 'could not be written' sh -c "'$program' --help >/dev/full"
check "tells the version" 0 '^cleave [0-9]*\.[0-9]*\.[0-9]*$' "$program" --version
check "lists backends" 0 '^  cpu ' "$program" version
for command in run partition inspect conform version; do
  check "explains $command" 0 "^usage: cleave $command" "$program" $command --help
  check "explains $command" 0 '^options:' "$program" help $command
done

# docs/commands.md has every option, and no other (--bind-to and --map-by are options of mpirun).
for command in $("$program" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
  "$program" $command --help | sed -n 's/^  [-, a-z]\{4\}--\([a-z0-9-]*\).*/\1/p'
done | sort -u >options
grep -o '[^a-z0-9-]--[a-z][a-z0-9-]*' "$source/docs/commands.md" | sed 's/.*--//' | grep -vx 'bind-to\|map-by' | sort -u >documented
check "documents every option" 1 '' grep -vxF -f documented options
check "documents no other option" 1 '' grep -vxF -f options documented

# Wrong usage: exit status 2, one line.
check "wants a command" 2 'expected a command' "$program"
check "knows its commands" 2 "command 'rum' is unknown (did you mean 'run'?)" "$program" rum
check "wants a model" 2 'cleave run: expected MODEL' "$program" run
check "takes one model" 2 "unexpected argument 'other.lua'" "$program" run tiny.lua other.lua
check "knows its options" 2 "option '--rulez' is unknown (did you mean '--rules'?)" "$program" run tiny.lua --rulez=x
check "wants a value" 2 "option '--rules' needs a value: FILE" "$program" run tiny.lua --rules
check "wants a number" 2 "option '--repeat': expected a whole number from 0, found 'many'" "$program" run tiny.lua --repeat many
check "wants a number" 2 "option '--rtol': expected a number that is not negative, found '-1'" "$program" run tiny.lua --rtol -1
check "takes no value" 2 "option '--json' takes no value" "$program" run tiny.lua --json=yes
check "names the rule file that was meant" 1 "pointwize: cannot open: No such file or directory (did you mean 'pointwise'?)" \
  "$program" run tiny.lua --rules pointwize
check "wants rules" 2 'expected --rules FILE' "$program" partition tiny.lua
check "knows opsets" 2 "option '--opset': expected 13 to 24, found 9" "$program" partition tiny.lua --rules rules.lua --opset 9
"$program" run tiny.lua --rulez >out 2>&1
[ "$(wc -l <out)" -eq 1 ] && passed=$((passed + 1)) || { echo "an error is more than one line"; failed=$((failed + 1)); }

# Failures: exit status 1, one line.
check "a file that is not there" 1 '^cleave: nothing.onnx: ' "$program" run nothing.onnx
check "a file that is no model" 1 'not a model by its name' "$program" run rules.txt
check "a wrong rule file" 1 "^cleave: bad.lua:3: .*'Convv' is unknown (did you mean 'Conv'?)" "$program" run tiny.lua --rules bad.lua
check "an unknown backend" 1 "backend 'cpo' is unknown (did you mean 'cpu'?)" "$program" run tiny.lua --backend cpo
printf 'return ruleset {\n  name = "r",\n  backend = "cpo", region "x" {} }\n' >cpo.lua
check "an unknown backend of a file" 1 "^cleave: cpo.lua:1: ruleset 'r': backend 'cpo' is unknown (did you mean 'cpu'?); there are: cpu" "$program" run tiny.lua --rules cpo.lua
printf 'return ruleset { name = "r", options = { bias = option.integer(1) }, region "x" {} }\n' >other.lua
check "two files with one option" 1 "^cleave: other.lua:1: option 'bias': set to 'false', expected integer (--set other.bias=VALUE is for this file alone)" \
  "$program" partition tiny.lua --rules rules.lua --rules other.lua --set bias=false
check "an option of one file" 0 'product' "$program" partition tiny.lua --rules rules.lua --rules other.lua --set rules.bias=false
check "both by their files" 0 'product' "$program" partition tiny.lua --rules rules.lua --rules other.lua --set bias=false --set other.bias=3
check "a file that is not given" 1 "setting 'nobody.bias'" "$program" partition tiny.lua --rules rules.lua --set nobody.bias=false
check "an option of the model script by its file" 0 'input 0 .*x .*float32\[2, 5\]' "$program" inspect tiny.lua --set tiny.size=5
check "an unknown setting" 1 "setting 'sise'" "$program" run tiny.lua --set sise=5
check "a setting that is none" 1 "expected name=value, found 'size'" "$program" run tiny.lua --set size
check "an unknown input" 1 "the model has no input or open size 'q'" "$program" run tiny.lua --shape q=1
check "a wrong shape" 1 "expected sizes like" "$program" run tiny.lua --shape x=1xx
check "a shape that does not fit" 1 "input 'x' (number 0): dimension 0 is 3, expected 2" "$program" run tiny.lua --shape x=3x4
check "an input file that is not there" 1 'nothing.npy' "$program" run tiny.lua --input x=nothing.npy
check "a folder without tests" 1 'no folder with model.onnx below' "$program" conform .

# run
check "runs" 0 'then median' "$program" run tiny.lua --repeat 3 --threads 1
check "says what was drawn" 0 'input x: drawn from seed 7, normal' "$program" run tiny.lua --seed 7 --repeat 1
cat >open.lua <<'LUA'
local x = g.input("x", "float32", { "N", "T" })
g.output("y", g.Add(x, g.input("z", "float32", { "N", "T" })))
LUA
check "takes open sizes as 1" 0 'sizes: N = 1, T = 1 taken; --shape N=SIZE sets it, N=? leaves it open' "$program" run open.lua --repeat 1
check "takes open sizes from another input" 0 'sizes: N = 3, T = 5 given$' "$program" run open.lua --shape z=3x5 --repeat 1
check "runs rules" 0 'product .*fuse on cpu .*rules.lua:4 .* 1 ' "$program" run tiny.lua --rules rules.lua --repeat 1
check "says what is left" 0 'left on cpu: 1 Softmax' "$program" run tiny.lua --rules rules.lua --repeat 1
check "verifies" 0 'all outputs match against the unpartitioned graph' "$program" run tiny.lua --rules rules.lua --verify --repeat 1
check "takes settings for scripts and rules" 0 'then median' "$program" run tiny.lua --rules rules.lua --set size=8 --set bias=false --repeat 1
check "profiles" 0 'time per region' "$program" run tiny.lua --rules rules.lua --profile trace.json --repeat 2
check "writes a trace" 0 '"traceEvents"' cat trace.json
check "prints JSON" 0 '^{' "$program" run tiny.lua --rules rules.lua --verify --repeat 2 --json
keys "run --json" "model load_ms bind_ms rules_ms partition_ms compile_ms first_ms median_ms min_ms p90_ms mean_ms peak_rss_mb code_rss_mb \
  runs threads fusions regions nodes nodes_on_cpu rules left_on_cpu check verify memory notes"
cp out run.json
check "has no check without data" 0 '"check": null' cat run.json

# partition
check "prints the plan" 0 'island_0 on cpu' "$program" partition tiny.lua --rules rules.lua
for kind in txt json dot onnx; do
  check "writes .$kind" 0 "written to plan.$kind" "$program" partition tiny.lua --rules rules.lua -o plan.$kind
  cp plan.$kind first.$kind
  "$program" partition tiny.lua --rules rules.lua --output=plan.$kind >/dev/null 2>&1
  check "writes the same .$kind twice" 0 same sh -c "cmp plan.$kind first.$kind && echo same"
done
check "runs what it wrote" 0 'then median' "$program" run plan.onnx --repeat 1
check "writes opset 17" 0 'opset 17' sh -c "'$program' partition tiny.lua --rules rules.lua -o old.onnx --opset 17 && '$program' inspect old.onnx"
check "knows its extensions" 1 'expected a name that ends in .txt, .json, .dot or .onnx' "$program" partition tiny.lua --rules rules.lua -o plan.png
check "prints JSON" 0 '"partition_ms"' "$program" partition tiny.lua --rules rules.lua --json
check "reports boundaries" 0 "out *ops *Softmax *1 *1 *24 B *not in 'ops'" "$program" partition tiny.lua --rules rules.lua --report
check "asks what if" 0 'Softmax *1 *0 *1 *24 B' "$program" partition tiny.lua --rules rules.lua --report
if "$program" version | grep -q "^  onednn"; then
  check "reports without rule files" 0 'nothing stopped growth but the ends of the model' "$program" partition tiny.lua --backend onednn --report
fi
check "boundaries as JSON" 0 '"cause": "ops"' "$program" partition tiny.lua --rules rules.lua --report --rule-stats --json
keys "partition --report --json" "boundaries bytes unknown side cause reason edges values outside inside operator what_if nodes_outside \
  regions_merged bytes_less rule_stats tries hits lua_calls ms"
check "statistics of rules" 0 'island *region *rules.lua:5 *1 *- *0 *1 *0 *[0-9][0-9]*\.' "$program" partition tiny.lua --rules rules.lua --rule-stats
check "requests" 0 'requests  clients  sessions  threads each  per run  requests/s  p50 ms  p90 ms  p99 ms  max ms' "$program" run tiny.lua --requests 40 --concurrency 3 --threads 1
also "the numbers" '^ *40  *3  *[1-3]  *1  *1\.0  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*  *[0-9.]*$'
check "requests are checked" 0 'all outputs match against the unpartitioned graph' "$program" run tiny.lua --rules rules.lua --requests 10 --concurrency 2 --threads 2 --verify
check "requests as JSON" 0 '"concurrency": 2' "$program" run tiny.lua --rules rules.lua --requests 50 --concurrency 2 --json
keys "run --requests --json" "requests count concurrency sessions threads batch_limit requests_per_run seconds per_second mean_ms p50_ms p90_ms p99_ms max_ms"
cp out requests.json
if [ -x /usr/bin/python3 ]; then
  check "latencies are in order and fit the throughput, sessions the processors" 0 '^fits$' /usr/bin/python3 -c '
import json, os
r = json.load(open("requests.json"))["requests"]
ordered = 0 < r["p50_ms"] <= r["p90_ms"] <= r["p99_ms"] <= r["max_ms"] <= r["seconds"] * 1001
busy = r["mean_ms"] * r["count"] <= r["seconds"] * 1001 * r["concurrency"]
shared = 1 <= r["sessions"] <= r["concurrency"] and r["sessions"] * r["threads"] <= os.cpu_count()
print("fits" if ordered and busy and shared and abs(r["per_second"] * r["seconds"] - r["count"]) < 0.01 else r)'
fi
check "one request at a time" 0 '^ *5  *1  *1  *1  ' "$program" run tiny.lua --requests 5 --threads 1
check "no requests" 2 "option '--requests': expected 1 to 100000000" "$program" run tiny.lua --requests 0
check "nothing at a time" 2 "option '--concurrency': expected 1 to 1024" "$program" run tiny.lua --requests 2 --concurrency 0
check "concurrency without requests" 2 "option '--concurrency' is for '--requests'" "$program" run tiny.lua --concurrency 2
cat >open.lua <<'LUA'
g.output("y", g.Softmax(g.Relu(g.input("x", "float32", { "N", 4 }))))
LUA
check "batches" 0 'all outputs match against the same request alone' "$program" run open.lua --requests 60 --concurrency 4 --threads 1 --batch-window 1ms --batch-limit 4
also "the clients" '^ *60  *4  *'
cat >mixed.lua <<'LUA'
local x = g.input("x", "float32", { "N", 4 })
g.output("y", g.Sub(x, g.ReduceMean(x, { 0 })))
LUA
check "rows that depend on each other" 1 'outputs differ against the same request alone' "$program" run mixed.lua --requests 400 --concurrency 4 --threads 1 --batch-window 20ms --batch-limit 4
check "batches as JSON" 0 '"batch_limit": 3' "$program" run open.lua --requests 30 --concurrency 3 --batch-window 1.5 --json
check "batches need an open dimension" 1 "input 'x': requests cannot run in batches" "$program" run tiny.lua --requests 5 --concurrency 2 --batch-window 1
check "a window of nonsense" 2 "option '--batch-window': expected milliseconds" "$program" run open.lua --requests 5 --batch-window 2s
check "a window without requests" 2 "are for '--requests'" "$program" run open.lua --batch-window 2
check "a limit without window" 2 "option '--batch-limit' is for '--batch-window'" "$program" run open.lua --requests 5 --batch-limit 2
check "no batches" 2 "option '--batch-limit': expected 1 to 1024" "$program" run open.lua --requests 5 --batch-window 1 --batch-limit 0
check "requests and profiles" 2 "option '--requests' does not go with" "$program" run tiny.lua --requests 2 --profile x.json
check "statistics of a run" 0 'rule *kind *where *tries *hits *Lua calls' "$program" run tiny.lua --rules rules.lua --rule-stats --repeat 1

# inspect
check "inspects" 0 'input 0 .*x .*float32\[2, 4\]' "$program" inspect tiny.lua
check "lists operators" 0 'MatMul  *1 ' "$program" inspect tiny.lua
check "lists nodes" 0 '= MatMul(' "$program" inspect tiny.lua --nodes
check "prints JSON" 0 '^{' "$program" inspect tiny.lua --json
keys "inspect --json" "model file_bytes opset ir_version nodes weight_bytes weights activation_bytes flops inputs outputs operators unknown"
# Two operators that nobody has: y = Bar(Foo(x)).
printf '\010\010\022\000\072\105\012\016\012\001\170\022\001\141\042\003\106\157\157\072\001\143\012\016\012\001\141\022\001\171\042\003\102\141\162\072\001\143\022\001\147\132\017\012\001\170\022\012\012\010\010\001\022\004\012\002\010\002\142\017\012\001\171\022\012\012\010\010\001\022\004\012\002\010\002\102\004\012\000\020\021\102\005\012\001\143\020\001' >foreign.onnx
check "inspects foreign operators" 0 '^  c.Bar: no loaded library brings it' "$program" inspect foreign.onnx
also "all of them" '^  c.Foo: no loaded library'
if grep -q '\\n' "$out"; then fail "an escaped end of line is in"; else pass; fi
check "lists all that is not supported" 1 "operator 'Foo'.* is not supported by cpu: .*; neither are: c.Bar$" "$program" run foreign.onnx

# --data and conform: a test folder made from a model and its own outputs would pass by itself, so the data is
# the corpus of ONNX where there is one.
corpus=/usr/share/libonnx-testdata/data/node
if [ -d "$corpus/test_relu" ]; then
  check "compares with data" 0 'all outputs match against' \
    "$program" run "$corpus/test_relu/model.onnx" --data "$corpus/test_relu/test_data_set_0" --repeat 1
  check "has a check with data" 0 '"match": true' \
    "$program" run "$corpus/test_relu/model.onnx" --data "$corpus/test_relu/test_data_set_0" --repeat 1 --json
  check "reads inputs from files" 0 'then median' \
    "$program" run "$corpus/test_relu/model.onnx" --input x="$corpus/test_relu/test_data_set_0/input_0.pb" --repeat 1
  check "refuses inputs that do not fit" 1 "input 'x' (number 0): expected" \
    "$program" run "$corpus/test_relu/model.onnx" --input x="$corpus/test_argmax_default_axis_example/test_data_set_0/input_0.pb" --repeat 1
  check "stops tests that hang" 1 'test_relu: not done after 0 s' "$program" conform "$corpus/test_relu" --limit 0
  mkdir -p many
  cp "$corpus"/test_relu/test_data_set_0/* many
  cp many/input_0.pb many/input_1.pb
  check "data of more inputs" 1 "--data: found 'many/input_1.pb', but the model has 1 input" \
    "$program" run "$corpus/test_relu/model.onnx" --data many --repeat 1
  mkdir -p bad/test_relu/test_data_set_0
  cp "$corpus/test_relu/model.onnx" bad/test_relu/
  cp "$corpus/test_relu/test_data_set_0/input_0.pb" bad/test_relu/test_data_set_0/input_0.pb
  cp "$corpus/test_relu/test_data_set_0/input_0.pb" bad/test_relu/test_data_set_0/output_0.pb
  check "exits 1 where data differs" 1 'outputs differ' \
    "$program" run bad/test_relu/model.onnx --data bad/test_relu/test_data_set_0 --repeat 1
  check "tells index and both values" 1 "values differ, first at \[[0-9, ]*\]: found 0, expected -" \
    "$program" conform bad
  check "counts" 1 '^0 passed, 1 failed$' "$program" conform bad
  check "conforms" 0 '^[1-9][0-9]* passed, 0 failed$' "$program" conform "$corpus/test_relu" "$corpus/test_add"
  check "names what passes" 0 '^test_relu: ok$' "$program" conform "$corpus/test_relu" --verbose
  check "prints JSON" 0 '"passed": 1' "$program" conform "$corpus/test_relu" --json
  check "prints JSON" 1 '"reason":' "$program" conform bad --json
fi

# What a run computes, in files: again as data, and from one file to the next.
check "saves inputs and outputs" 0 'then median' "$program" run tiny.lua --repeat 1 --seed 3 --save kept/
check "which are data of the model" 0 'all outputs match against' "$program" run tiny.lua --repeat 1 --data kept
check "of another seed" 0 'then median' "$program" run tiny.lua --repeat 1 --seed 4 --save other
check "which compute other values" 1 'outputs differ' \
  "$program" run tiny.lua --repeat 1 --data kept --input x=other/input_0.pb
output=$("$program" inspect tiny.lua | sed -n 's/^ *output 0 *\([^ ]*\) .*/\1/p')
check "writes an output" 0 'then median' \
  "$program" run tiny.lua --repeat 1 --seed 3 --output "$output=y.npy" --output "$output=y.pb"
check "in NumPy's format" 0 NUMPY head -c 6 y.npy
check "an output that is none" 1 "the model has no output 'no'; its outputs are: $output" \
  "$program" run tiny.lua --output no=y.npy
check "a file that is no tensor" 1 'y.txt: not a tensor by its name: expected .npy or .pb' \
  "$program" run tiny.lua --output "$output=y.txt"
check "an output without a file" 1 "expected NAME=FILE, found 'y'" "$program" run tiny.lua --output y
check "a folder that cannot be" 1 'no/such: cannot make this folder' "$program" run tiny.lua --save no/such

# All calls of scripts together: each is far below its own limit.
cat >many.lua <<'LUA'
local x = g.input("x", "float32", { 4 })
for _ = 1, 200 do
  x = g.Relu(x)
end
return x
LUA
cat >slow.lua <<'LUA'
return ruleset { name = "slow", backend = "cpu", fuse "slow" { pattern = op { "Relu", as = "r" }, where = function(m)
  for _ = 1, 100000 do end
  return m.r.op == "Exp"
end } }
LUA
spent='lua:.* the 20 ms that all calls of scripts may take together are spent'
check "scripts have a total" 1 "$spent" "$program" partition many.lua --rules slow.lua --script-time 0.02
check "it counts for why" 1 "$spent" \
  "$program" why many.lua --rules slow.lua --script-time 0.02
check "there is none without the option" 0 '0 fusions' "$program" partition many.lua --rules slow.lua

# Colours and progress are for terminals.
"$program" run tiny.lua --repeat 1 >out 2>&1
if grep -q "$(printf '\033')" out; then
  echo "escape sequences without a terminal"
  failed=$((failed + 1))
fi
check "shipped rules run" 0 'then median' "$program" run "$source/examples/models/gru_residual.lua" --rules "$source/rules/contain_ops.lua" --backend cpu --repeat 1

printf 'return ruleset { name = "empty" }\n' >empty.lua
check "a rule file without rules is told of" 0 'no rule is in force' "$program" run tiny.lua --rules empty.lua --repeat 1
check "also by its check" 0 "empty.lua:1: warning: ruleset 'empty' has no rules" "$program" check empty.lua

finish
