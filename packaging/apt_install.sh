#!/usr/bin/env bash
# Install the packages that a list names and the system lacks.
#
#   apt_install.sh LIST ...
#
# As root or by sudo. Nothing is asked of the network when nothing is missing.
set -euo pipefail

if ! command -v dpkg-query >/dev/null; then
    echo "This is no Debian: install what $* name (under your system's names) by hand." >&2
    exit 0
fi

mapfile -t wanted < <(sed 's/#.*//' "$@" | awk 'NF {print $1}' | sort -u)
missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "Missing packages: ${missing[*]}" >&2
        echo "There is no sudo here; as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

# attempt COMMAND ...: run it up to three times, since mirrors have bad moments
attempt() {
    local try
    for try in 1 2 3; do
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "$@" && return 0
        sleep $((try * 5))
    done
    return 1
}

echo "Installing missing packages: ${missing[*]}"
attempt apt-get update -q || echo "apt-get update failed; trying with the lists that are there" >&2
if ! attempt apt-get install -y -q --no-install-recommends "${missing[@]}"; then
    echo "Cannot install: ${missing[*]}" >&2
    exit 1
fi
