# shellcheck shell=bash
# What scripts/run and scripts/test share: it finds what this machine lacks, and adds it.
#
# Sourced, never run; the caller has said `set -euo pipefail` and set `program` to its own name.
# Set-up is safe to repeat: a stamp is written into the virtual environment when all is done, and
# one that does not fit (another lock, another Python, a moved checkout, an interrupted set-up)
# starts the work again. Everything that is only looked at is looked at before anything changes.
#
# Exit codes:
#   69  this machine cannot run Oyez, or lacks something that set-up may not install
#   70  a package cannot be installed: it does not compile, or is not the one that is pinned
#   74  the disk is full
#   75  no network: the package index or Debian's mirror is not reachable; try again later
#   77  no permission: no way to become root, or a folder that cannot be written
#  130  Ctrl-C (129 hang-up, 143 SIGTERM); the next run repairs what was left half done
#
# Environment: OYEZ_PYTHON  the interpreter to build on (default: the first of 3.11 to 3.13)
#              OYEZ_VENV    the virtual environment (default: .venv in the checkout)
# pip's own settings (mirror, certificates, proxy, constraints) are the machine's and stay so.

readonly EXIT_UNAVAILABLE=69 EXIT_PACKAGE=70 EXIT_DISK=74 EXIT_NETWORK=75 EXIT_PERMISSION=77

# Measured on x86-64 with Python 3.11: environment and models, with what is unpacked meanwhile.
readonly RUN_SPACE_MB=700 DEV_SPACE_MB=900

: "${program:?is set by the command that sources this}"

# shellcheck source=scripts/lib/machine.bash
source "${BASH_SOURCE[0]%/*}/machine.bash"

# Where nobody listens (a closed stderr is the script itself to bash), talk goes nowhere.
say() {
  printf '%s: %s\n' "$program" "$*" >&2 || exec 2>/dev/null
}

# fail CODE REASON REMEDY
fail() {
  say "$2"
  printf '  remedy: %s\n' "$3" >&2
  exit "$1"
}

# A service or a bare `env -i` may start us without standard files, PATH or HOME.
prepare_shell() {
  { : >&2; } || exec 2>/dev/null
  { : <&0; } 2>/dev/null || exec </dev/null
  { : >&1; } 2>/dev/null || exec >/dev/null
  # Debian's tools for root live in sbin, which a plain user or `su` may not have on PATH.
  export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin"
  if [[ -z ${HOME-} ]]; then
    HOME=$(getent passwd "$(id -u)" | cut -d: -f6) || true
    [[ -n $HOME ]] || fail "$EXIT_UNAVAILABLE" \
      "HOME is not set and user $(id -u) has no home folder, so the models have no place" \
      "set HOME to a folder that this user may write"
    export HOME
  fi
  # These would mix foreign packages into the environment, or install ours elsewhere.
  unset CDPATH PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_ROOT
  export PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1
}

# Sets the places that everything below uses. find_places CHECKOUT
find_places() {
  root=$1
  venv=${OYEZ_VENV:-$root/.venv}
  [[ $venv == /* ]] || venv=$PWD/$venv
  state=$venv/oyez-set-up # what says that the environment is ours: log, stamps, lock
  log=$state/log
  child="" lock="" index_answered=no
}

# step WORDS: what comes next, for the person and the log.
step() {
  say "$1"
  printf '\n== %s %s: %s\n' "$(date --utc +%FT%TZ)" "$program" "$1" >>"$log"
}

# What the log says since the last step began.
this_step() {
  awk '/^== / { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$log"
}

# logged PATTERN: whether this step's part of the log says so.
logged() {
  grep -qE -- "$1" <<<"$(this_step)"
}

# The last lines that tell something, from this step's part of the log.
show_log() {
  local telling
  telling=$(this_step | grep -E '^ *(ERROR|E|W|error|fatal|WARNING)\b|: (fatal )?error: |^[A-Za-z_.]+(Error|Exception): ' |
    cut -c 1-300 | awk '!seen[$0]++' | tail -n 5) || true
  [[ -n $telling ]] || telling=$(this_step | grep -v '^ *$' | tail -n 5)
  # shellcheck disable=SC2001 # each line is indented
  sed 's/^ */  | /' <<<"$telling" >&2
  printf '  log: %s\n' "$log" >&2
}

# The environment must be ours, and its folder writable.
check_venv() {
  local folder=$venv
  if [[ -e $venv && ! -d $state && -n $(ls -A -- "$venv") ]]; then
    fail "$EXIT_PERMISSION" "$venv was not made by this command, so it is left alone" \
      "move it away, or name another folder: OYEZ_VENV=/path/to/venv $program"
  fi
  until [[ -e $folder ]]; do folder=$(dirname -- "$folder"); done
  [[ -d $folder && -w $folder && (! -e $state || -w $state) ]] || fail "$EXIT_PERMISSION" \
    "$folder cannot be written by $(id -un 2>/dev/null || id -u), so there is no place for the\
 environment $venv" \
    "make it writable, or name another folder: OYEZ_VENV=/path/to/venv $program"
  check_space "$folder" "$1"
}

# free_mb FOLDER
free_mb() {
  df --block-size=1M --output=avail -- "$1" | tail -n 1 | tr -d ' '
}

# check_space FOLDER KIND
check_space() {
  local needed_mb=$RUN_SPACE_MB free
  [[ $2 == run ]] || needed_mb=$DEV_SPACE_MB
  [[ ! -f $state/$2.stamp ]] || needed_mb=100 # most of it is there
  free=$(free_mb "$1")
  ((free >= needed_mb)) || fail "$EXIT_DISK" \
    "the disk is too full: $1 has $free MB free, set-up needs $needed_mb MB" \
    "free some space, or put the environment on another disk: OYEZ_VENV=/path/to/venv $program"
}

# Takes the folder for this set-up alone; another one that runs is waited for.
claim_venv() {
  mkdir -p -- "$state"
  exec {lock}<"$state"
  if ! flock --nonblock "$lock"; then
    say "another set-up is running; waiting for it"
    flock "$lock" & # in the background, so that a signal ends the wait
    child=$!
    wait "$child"
    child=""
  fi
}

release_venv() {
  exec {lock}<&-
}

# work COMMAND...: runs it with its words in the log; ends it when we are told to end.
work() {
  local status=0
  mkdir -p -- "$state/tmp" # /tmp may be small, or refuse to run what is built there
  # It keeps our lock: should we be killed, the next set-up waits until it has ended too.
  (
    cd -- "$root" || exit
    exec setsid env TMPDIR="$state/tmp" "$@" </dev/null >>"$log" 2>&1
  ) &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    if [[ -t 2 ]] && logged '^Collecting '; then
      printf '\r  %s packages' "$(grep -c '^Collecting ' <<<"$(this_step)")" >&2
    fi
    sleep 0.2
  done
  wait "$child" || status=$?
  child=""
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
  return "$status"
}

# Nothing that was begun is taken for finished, so an interrupted set-up needs no tidying.
stop_on_signals() {
  trap 'stopped 129' HUP
  trap 'stopped 130' INT
  trap 'stopped 143' TERM
}

stopped() {
  trap - HUP INT TERM
  if [[ -n $child ]]; then
    kill -TERM -- "-$child" "$child" 2>/dev/null || true # its whole session, compilers too
    wait "$child" || true
  fi
  put_stamps_back
  say "stopped; run it again and set-up begins where it must"
  exit "$1"
}

readonly CERTIFICATE_TROUBLE='CERTIFICATE_VERIFY_FAILED|SSLError'
readonly CONNECTION_TROUBLE='NewConnectionError|ConnectTimeoutError|NameResolutionError|Failed to establish|name resolution|Network is unreachable|Connection refused|No route to host|ProxyError'

# An index that does not answer must not cost pip's minutes of retries: until it has answered,
# it is asked impatiently, and only what is no matter of connections is tried again patiently.
pip_install() {
  local command=("$venv/bin/python" -I -m pip install --no-deps --progress-bar off)
  if [[ $index_answered == no ]]; then
    if work "${command[@]}" --retries 1 --timeout 8 "$@"; then
      ! logged '^ *(Downloading|Using cached) ' || index_answered=yes
      return 0
    fi
    ! logged "$CONNECTION_TROUBLE|$CERTIFICATE_TROUBLE" || return 1
  fi
  work "${command[@]}" "$@"
}

explain_pip_failure() {
  put_stamps_back
  show_log
  # Where the disk is full, the log may not say so: it could not be written either.
  if logged 'No space left on device|Disk quota exceeded' || (($(free_mb "$state") < 10)); then
    fail "$EXIT_DISK" "the disk is full: the Python packages cannot be installed" \
      "free some space, or put the environment on another disk: OYEZ_VENV=/path/to/venv $program"
  elif logged 'DO NOT MATCH THE HASHES'; then
    fail "$EXIT_PACKAGE" "a downloaded package is not the one that is pinned; it was not installed" \
      "run 'pip cache purge' and try again; if it stays so, the package index is damaged or altered"
  elif logged "$CERTIFICATE_TROUBLE"; then
    fail "$EXIT_NETWORK" "the package index's certificate is not accepted" \
      "set this machine's clock (date), or name your own authority to pip: PIP_CERT=/path/to/ca.pem"
  elif logged "$CONNECTION_TROUBLE|ReadTimeout|Read timed out|IncompleteRead|Connection (aborted|reset)"; then
    fail "$EXIT_NETWORK" "the package index is not reachable" \
      "connect the machine to the network, or tell pip of a mirror or proxy; then run this again"
  elif logged 'No matching distribution found|Could not find a version'; then
    fail "$EXIT_PACKAGE" "the package index does not offer a package that is pinned" \
      "if pip uses a mirror (pip config list), let it catch up; then run this again"
  elif logged '[Pp]ermission denied'; then
    fail "$EXIT_PERMISSION" "a file in $venv cannot be written" \
      "run this as the user who owns it, or remove that folder"
  fi
  fail "$EXIT_PACKAGE" "the Python packages cannot be installed" \
    "see $log; if a compiler was killed, the machine has too little memory: close something or add swap"
}

# What the stamp must say: the pins that were installed, and where and on what.
stamp_text() {
  local kind=$1 base=$2
  (cd -- "$root" && sha256sum pyproject.toml "scripts/locks/build.lock" "scripts/locks/$kind.lock")
  place_text "$base"
}

place_text() {
  printf 'python %s\nenvironment %s\ncheckout %s\n' "$1" "$venv" "$root"
}

# Prints the version and the interpreter under the environment; fails if it is broken.
venv_base() {
  "$venv/bin/python" -I -S -c \
    'import os, sys; print("%d.%d" % sys.version_info[:2], os.path.realpath(sys._base_executable))' 2>/dev/null
}

# is_set_up KIND
is_set_up() {
  local base
  [[ -f $state/$1.stamp ]] && base=$(venv_base) || return 1
  [[ -z ${OYEZ_PYTHON-} ]] || { find_python && [[ $base == "$python_version $python" ]]; } || return 1
  [[ $(<"$state/$1.stamp") == "$(stamp_text "$1" "$base")" ]]
}

# Whether an earlier set-up was finished here, so that it is enough to add what has changed.
can_be_extended() {
  local base
  [[ -f $state/run.stamp ]] && base=$(venv_base) || return 1
  [[ $base == "$python_version $python" ]] || return 1
  [[ $(tail -n 3 -- "$state/run.stamp") == "$(place_text "$base")" ]]
}

build_venv() {
  step "making the virtual environment $venv (Python $python_version)"
  rm -f -- "$state"/*.stamp
  find "$venv" -mindepth 1 -maxdepth 1 ! -path "$state" -exec rm -rf -- {} +
  work "$python" -I -m venv "$venv" || explain_pip_failure
}

# install_python_packages KIND
install_python_packages() {
  local locks=$root/scripts/locks
  # Building needs pinned tools too, but pip's isolated builds would fetch their own, unpinned and
  # unchecked: so the tools are installed beforehand, and builds are not isolated.
  step "installing the tools that build Python packages"
  pip_install --require-hashes -r "$locks/build.lock" || explain_pip_failure
  step "installing Python packages (up to $([[ $1 == run ]] && echo 90 || echo 150) MB to download)"
  set_stamps_aside
  pip_install --require-hashes --no-build-isolation --use-pep517 -r "$locks/$1.lock" ||
    explain_pip_failure
  pip_install --no-build-isolation --editable "$root" || explain_pip_failure
  write_stamps "$1"
}

# From the moment when pip may change the environment, it is not to be trusted until all is done.
set_stamps_aside() {
  mkdir -p -- "$state/aside"
  find "$state" -maxdepth 1 -name '*.stamp' -exec mv -t "$state/aside" -- {} +
}

# Where pip gave up before it changed anything, the earlier environment is as good as before: a
# board that ran without network still runs after an update that could not be fetched.
put_stamps_back() {
  [[ -d $state/aside ]] || return 0
  logged '^Installing collected packages' ||
    find "$state/aside" -name '*.stamp' -exec mv -t "$state" -- {} +
  rm -rf -- "$state/aside"
}

# write_stamps KIND: the tests' packages include those of the daemon.
write_stamps() {
  local kind base
  base=$(venv_base)
  for kind in run "$1"; do
    stamp_text "$kind" "$base" >"$state/tmp/stamp"
    mv -- "$state/tmp/stamp" "$state/$kind.stamp"
  done
  rm -rf -- "$state/aside" "$state/tmp"
}

# set_up KIND: KIND is `run`, or `dev` for the tests.
set_up() {
  ! is_set_up "$1" || return 0
  check_machine
  find_python
  find_missing
  ((${#missing_packages[@]} == 0)) || find_way_to_root "${missing_packages[@]}"
  check_venv "$1"
  stop_on_signals
  claim_venv
  if ! is_set_up "$1"; then # another set-up may have done it meanwhile
    if ((${#missing_packages[@]} > 0)); then
      install_debian_packages "${missing_packages[@]}"
      find_python
      find_missing
      ((${#missing_packages[@]} == 0)) || explain_apt_failure "${missing_packages[@]}"
    fi
    [[ $1 == run ]] || welcome shellcheck shellcheck
    can_be_extended || build_venv
    install_python_packages "$1"
  fi
  release_venv
  trap - HUP INT TERM
}

# fetch_models ARGUMENT...: those that the configuration in `--config FILE` (or the usual one) names.
fetch_models() {
  local config=()
  while (($# > 0)); do
    case $1 in
    --config=*) config=("$1") ;;
    --config) config=("$1" "${2-}") ;;
    esac
    shift
  done
  "$venv/bin/oyez" models fetch --needed "${config[@]}" >&2
}
