#!/usr/bin/env bash
# Installs what building and testing need: the Debian packages of requirements/debian.txt and a virtual environment .venv
# with the Python packages of the requirement files named as arguments. Does nothing where nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# The pinned version where the archive has it, else the one it has: a point release must not stop the build.
install_debian_packages() {
  command -v dpkg-query >/dev/null || { echo "setup: no dpkg here: install the packages of requirements/debian.txt yourself" >&2; return; }
  local missing=() line name
  while read -r line; do
    name=${line%%=*}
    installed "$name" || missing+=("$line")
  done < <(grep -v '^#' requirements/debian.txt)
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "setup: installing ${#missing[@]} Debian packages" >&2
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq
  as_root apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return
  echo "setup: a pinned version is not in the archive any more: taking the archive's own" >&2
  as_root apt-get install -y -qq --no-install-recommends "${missing[@]%%=*}" >/dev/null
}

# pip is asked only when the requirement files have changed since it last succeeded.
install_python_packages() {
  local wanted stamp=.venv/.requirements
  wanted=$(cat "$@" | sha256sum)
  [ -x .venv/bin/python ] || python3 -m venv .venv
  touch "$stamp"
  grep -qxF "$wanted" "$stamp" && return
  echo "setup: installing Python packages ($*)" >&2
  local args=()
  for file in "$@"; do args+=(-r "$file"); done
  .venv/bin/pip install --quiet --disable-pip-version-check "${args[@]}"
  echo "$wanted" >>"$stamp"
}

install_debian_packages
install_python_packages "$@"
