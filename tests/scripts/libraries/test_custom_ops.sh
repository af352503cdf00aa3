#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The libraries of examples/accelerators/custom_ops as their README uses them: partitioners by name and from a rule
# file, options, a pass whose plan replays without its library, operators with and without a state.
set -u
program=$1
source=$2
build=$3
example=$source/examples/accelerators/custom_ops
exp_log=$build/accelerators/libexp_log.so
gemms=$build/accelerators/libgemms.so
[ -f "$exp_log" ] && [ -f "$gemms" ] || { echo "skipped: the libraries are not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$2/tests/scripts/checks.sh"

model=$example/model_exp_log.lua
with="--load $exp_log --rules exp_log"

check "lists what it adds" 0 "partitioner my_part" "$program" backends -v --load "$exp_log" --load "$gemms"
also "lists what it adds" "partitioner my_select"
also "lists what it adds" "pass add_input"
also "lists what it adds" "operator my.company.StatefulGemm, version 1: A B -> C Runs?"

check "all of a library" 0 "all outputs match" "$program" run "$model" $with --verify --repeat 2 --threads 1
also "all of a library" "my_part  *region on exp_log .* 2 *3 "
also "all of a library" "my_select  *region on cpu .* 0 *0 "
check "one rule of it" 0 "my_part_0 on exp_log: 2 nodes" "$program" partition "$model" $with/my_part --set my_key=mine
also "one rule of it" "my_key = 'mine'"
check "a selector" 0 "my_select_0" "$program" partition "$model" $with/my_select
check "a selector with less room" 0 " 3 regions" "$program" run "$model" $with/my_select --set most_nodes=1 --repeat 1 --threads 1
check "groups apart" 0 "my_part  *region on exp_log .* 3 *3 " "$program" run "$model" $with --set groups=apart --repeat 1
check "a second ruleset takes what is left" 0 "my_select  *region on cpu .* 1 *1 " "$program" run "$model" $with \
  --set least_nodes=2 --repeat 1 --verify
check "rejects" 0 "rejected: the user asked for it" "$program" partition "$model" $with/my_part --set reject=true
check "an option that the library refuses" 1 \
  "partitioner 'my_part' of library 'exp_log': supported: option groups: expected any or apart, found 'both'" \
  "$program" partition "$model" $with --set groups=both
check "no such rule" 1 "library 'exp_log' has no rule 'my_port' (did you mean 'my_part'?); it has: add_input, my_part" "$program" partition "$model" --load "$exp_log" --rules exp_log/my_port
check "without the library" 1 "cannot open" "$program" partition "$model" --rules exp_log
check "why" 0 "'supported' returned false" "$program" why "$model" $with --node Add_0
check "why a refusal" 0 "the user asked for it" "$program" why "$model" $with --node log --set reject=true
check "boundaries" 0 "my_part_0 on exp_log: 2 nodes" "$program" partition "$model" $with/my_part --report
check "statistics" 0 "my_part  *region  *a library" "$program" run "$model" $with --rule-stats --repeat 1

check "its rule file" 0 "5 passed, 0 failed" "$program" check "$example/exp_log_rules.lua" --load "$exp_log"
check "its rule file by name" 0 "all outputs match" "$program" run "$model" --load "$exp_log" --rules exp_log_rules \
  --set least_nodes=2 --verify --repeat 1
also "its rule file by name" "exp_log  *region on exp_log .* 1 *2  *1"
check "an option out of range" 1 "option 'least_nodes': set to '0', expected 1 to 100" "$program" run "$model" \
  --load "$exp_log" --rules exp_log_rules --set least_nodes=0

check "a pass" 0 "add_input  *pass .* 1 " "$program" partition "$model" $with --set add_input=true -o plan.json
check "its plan again" 0 "add_input  *pass .* 1 " "$program" partition "$model" $with --set add_input=true -o again.json
check "its plan is the same again" 0 "" cmp plan.json again.json
check "its plan has one more input" 0 "input exp_input" "$program" run "$model" --load "$exp_log" --plan plan.json --repeat 1
check "without the pass it is another plan" 0 "add_input  *pass .* 0  *0  *0" "$program" partition "$model" $with -o none.json
check "plans differ" 1 "7 nodes before, 6 after" "$program" plan diff plan.json none.json
also "plans differ" "add_input  *true  *(not set)"
also "plans differ" "^ *1  Add  *cpu  *-  *add_input/Add"

check "operators" 0 "gemms  *2 " "$program" run "$example/model_gemms.lua" --load "$gemms" --shape x=4x3 --repeat 3 \
  --threads 1 --profile trace.json
check "operators, inspected" 0 "my.company.StatefulGemm  *1 " "$program" inspect "$example/model_gemms.lua" --load "$gemms" \
  --shape 'N=?'
also "operators, inspected" "float32\[N, 3\]"
also "operators, inspected" "my.company.Gemm: of library gemms"
check "operators without their library" 1 "operator 'my.company.Gemm' is unknown" "$program" inspect "$example/model_gemms.lua"
check "as a model file" 0 "3 nodes: 0 fusions, 0 regions, 3 nodes on cpu" "$program" partition "$example/model_gemms.lua" --backend cpu -o gemms.onnx \
  --load "$gemms" --shape 'N=?'
check "from a model file" 0 "all outputs match" "$program" run gemms.onnx --load "$gemms" --shape x=2x3 --verify --repeat 1
check "a model file without the library" 1 "no kernel for this operator" "$program" run gemms.onnx --repeat 1
check "inspected without the library" 0 "my.company.Gemm: no loaded library brings it" "$program" inspect gemms.onnx

finish
