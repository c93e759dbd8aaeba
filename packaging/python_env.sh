#!/usr/bin/env bash
# Make the virtual environment of the tree, or bring it up to date with requirement files.
#
#   python_env.sh VENV REQUIREMENTS ...
#
# A file that was installed before is skipped until it changes. PYTHON names the interpreter.
set -euo pipefail

venv=$1
shift
python=${PYTHON:-python3}
stamps=$venv/installed

if ! "$venv/bin/python" -c '' 2>/dev/null; then
    rm -rf "$venv"
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "Python 3.11 or newer is needed; '$python' is $("$python" --version 2>&1)" >&2
        exit 1
    fi
    "$python" -m venv "$venv"
fi
mkdir -p "$stamps"

for file in "$@"; do
    stamp=$stamps/$(basename "$file")
    cmp -s "$file" "$stamp" && continue
    echo "Installing Python packages of $file into $venv"
    for try in 1 2 3 4; do
        if ((try == 4)); then
            echo "Cannot install the packages of $file" >&2
            exit 1
        fi
        "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 5 -r "$file" &&
            break
        sleep $((try * 5))
    done
    cp "$file" "$stamp"
done
