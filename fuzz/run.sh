#!/usr/bin/env bash
# Fuzz for a while from the committed corpus and, for models, all small ones of the onnx package.
#
#   run.sh BUILD_FOLDER SECONDS [TARGET]   TARGET: model (default), reader, container or placement
#
# New inputs go to BUILD_FOLDER/corpus, what breaks something to BUILD_FOLDER/found.
set -euo pipefail

build=$1
seconds=$2
target=${3:-model}
here=$(cd "$(dirname "$0")" && pwd)
python=$here/../.venv/bin/python
if [ "$target" = placement ]; then
  kind=placement
  seeds=()
else
  kind=model
  seeds=("$build/seeds")
  mkdir -p "$build/seeds"
  "$python" -W ignore "$here/make_seeds.py" "$build/seeds" --all
fi
mkdir -p "$build/corpus/$kind" "$build/found"

# A tensor that a model asks for may be refused; nothing else may ask for that much.
export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=512:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
"$build/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=65536 -timeout=25 \
    -rss_limit_mb=4096 -artifact_prefix="$build/found/" -print_final_stats=1 \
    "$build/corpus/$kind" "$here/corpus/$kind" "${seeds[@]}"
