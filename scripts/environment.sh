# Sourced by ./run and ./check: make a virtual environment with the pinned packages, once.
# SRS_EVAL_VENV names another place for it; PYTHON another interpreter.

# A module is compiled when it is first imported, which takes a fraction of the time that
# compiling all of them does. Keep what was compiled, also where the surroundings say no.
unset PYTHONDONTWRITEBYTECODE

how_far() { # say on standard error how far pip is, whose lines are read
  local line found=0
  while read -r line; do
    case $line in
      Collecting*)
        found=$((found + 1))
        [ $((found % 25)) -ne 0 ] || echo "  $found packages found after $SECONDS s" >&2
        ;;
      "Installing collected"*) echo "  installing them after $SECONDS s" >&2 ;;
    esac
  done
}

environment() { # environment EXTRA: sets $python to an interpreter that has srs_eval[EXTRA]
  local extra=$1 root=$2
  local venv=${SRS_EVAL_VENV:-$root/.venv} base=${PYTHON:-python3}
  python=$venv/bin/python
  local wanted
  wanted="$(cksum <"$root/pyproject.toml") $(cksum <"$root/constraints.txt") $root"
  if [ -x "$python" ]; then
    [ "$(cat "$venv/srs_eval-$extra" 2>/dev/null)" = "$wanted" ] && return
    # what the tests need includes what a run needs
    [ "$(cat "$venv/srs_eval-dev" 2>/dev/null)" = "$wanted" ] && return
  fi
  if ! "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "srs_eval needs Python 3.11 or newer; '$base' is not. Set PYTHON=/path/to/python3.11." >&2
    exit 1
  fi
  echo "Setting up $venv (once; some minutes, of which most is downloading and unpacking) ..." >&2
  [ -x "$python" ] || "$base" -m venv "$venv"
  local what=(--constraint "$root/constraints.txt" --editable "$root[$extra]")
  # uv takes seconds, but may not know where pip has its packages from
  if ! { command -v uv && uv pip install --python "$python" "${what[@]}"; } >/dev/null; then
    "$python" -m pip install --progress-bar off --no-compile --disable-pip-version-check \
      "${what[@]}" | how_far
  fi
  echo "$wanted" >"$venv/srs_eval-$extra"
}
