#!/usr/bin/env bash
# Fetch, export and quantise all test models (3.1 GB with llama_310m).
#
#   make_all.sh [FOLDER]        FOLDER defaults to ./models; what is there already is kept
#
# PYTHON names the interpreter that the export environment (build/export-venv) is made with.
# WITHOUT="llama_310m ..." leaves models out: exporting llama_310m needs several GB of memory.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-./models}
venv=$here/../../build/export-venv

"$here/fetch_models.sh" "$folder"

# missing LIST ...: those of the models that are neither there nor left out
missing() {
    local name
    for name in "$@"; do
        [[ " ${WITHOUT:-} " == *" $name "* ]] && continue
        [[ -f $folder/$name.onnx || -f $folder/$name/model.onnx ]] || echo "$name"
    done
}

mapfile -t exports < <(missing resnet50 mobilenet_v3_large vit_b_16 ssdlite320_mobilenet_v3 unet \
    yolov8n_like bert_base distilgpt2_like llama_small llama_310m whisper_tiny_encoder \
    whisper_tiny_decoder)
mapfile -t quantised < <(missing resnet50_int8_qdq bert_base_int8_dyn llama_small_q4)
if ((${#exports[@]} + ${#quantised[@]})); then
    [[ -x $venv/bin/export-python ]] || "$here/export_env.sh" "$venv"
    if ((${#exports[@]})); then
        "$venv/bin/export-python" "$here/export_models.py" "$folder" "${exports[@]}"
    fi
    if ((${#quantised[@]})); then
        "$venv/bin/export-python" "$here/quantize_models.py" "$folder" "${quantised[@]}"
    fi
fi
[[ -f $folder/shared_pairs/external/weights.data ]] ||
    "$venv/bin/python" "$here/make_shared_pair.py" "$folder/shared_pairs"
echo "all models are in $folder"
