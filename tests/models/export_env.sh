#!/usr/bin/env bash
# Make a virtual environment that can run export_models.py and quantize_models.py.
#
#   export_env.sh [VENV]            VENV defaults to ./export-venv; torch alone is 540 MB
#   VENV/bin/export-python export_models.py FOLDER
#
# The torch wheel for Linux is built for CUDA and wants about 2.5 GB of further NVIDIA packages, but
# exporting needs none of their code. So torch is installed without its dependencies, and stand-ins
# take the place of the missing libraries: every function that torch would look up in them exists
# and returns 999. Only the small CUDA runtime package is real. Needs gcc and binutils (nm).
set -euo pipefail

venv=${1:-./export-venv}
"${PYTHON:-python3}" -m venv "$venv"
venv=$(cd "$venv" && pwd)
"$venv/bin/pip" install -q --no-deps torch==2.15.0 torchvision==0.29.2 nvidia-cuda-runtime==13.5.37
"$venv/bin/pip" install -q typing_extensions sympy networkx jinja2 filelock fsspec numpy pillow \
    onnx==1.23.2 onnxruntime==1.32.0 onnxscript==0.7.2 transformers==5.24.0

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
torch_lib=$site/torch/lib
runtime=$site/nvidia/cu13/lib/libcudart.so.13
stubs=$venv/cuda-stubs
mkdir -p "$stubs"
cd "$stubs"

# symbols OPTION FILE ...: names that the libraries define or leave undefined, without versions
symbols() {
    local option=$1 library
    shift
    for library in "$@"; do
        nm -D "$option" "$library" 2>/dev/null | awk '{print $NF}'
    done | sed 's/@.*//' | sort -u
}

comm -23 <(symbols --undefined-only "$torch_lib"/*.so*) \
    <(symbols --defined-only "$torch_lib"/*.so* "$runtime") |
    grep -E '^(cu[A-Za-z]|nccl|nvrtc|nvshmem|nvJitLink)' |
    awk '{print "int " $1 "(void) { return 999; }"}' >stubs.c
echo "$(wc -l <stubs.c) functions stand in for the missing CUDA libraries"

gcc -O1 -w -fno-builtin -shared -fPIC -Wl,-soname,libcuda.so.1 stubs.c -o libcuda.so.1
for library in libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 \
    libcupti.so.13 libcusolver.so.12 libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 \
    libnvrtc.so.13 libnvshmem_host.so.3; do
    gcc -shared -fPIC -Wl,-soname,"$library" -Wl,--no-as-needed -x c /dev/null \
        -L. -l:libcuda.so.1 -o "$library"
done
cp "$runtime" .

cat >"$venv/bin/export-python" <<SCRIPT
#!/usr/bin/env bash
export LD_LIBRARY_PATH="$stubs" CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
exec "$venv/bin/python" "\$@"
SCRIPT
chmod +x "$venv/bin/export-python"
"$venv/bin/export-python" -c 'import torch; print("torch", torch.__version__, "ready")'
