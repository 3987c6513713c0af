# shellcheck shell=bash
# What the machine must have before an environment can be made: a 64-bit Linux, a Python that fits,
# a compiler and three libraries. It looks, and lets Debian's apt install what is missing.
#
# Sourced by set-up.bash, which says what the exit codes are.

# Tried in this order; the first complete one wins, else the first that fits.
python_candidates=(/usr/bin/python3 python3 python3.13 python3.12 python3.11)

# Prints `version|why it does not fit|has ensurepip|has headers|the interpreter itself`.
# Old syntax, so that old interpreters can say how old they are.
# shellcheck disable=SC2016 # Python's, not the shell's
readonly PYTHON_PROBE='
import os, struct, sys, sysconfig
def there(name):
    try:
        __import__(name)
    except ImportError:
        return "no"
    return "yes"
why = ""
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    why = "unsupported"
elif sys.implementation.name != "cpython":
    why = sys.implementation.name
elif sysconfig.get_config_var("Py_GIL_DISABLED"):
    why = "free-threaded"
elif struct.calcsize("P") != 8:
    why = "32-bit"
header = os.path.join(sysconfig.get_paths().get("include") or "", "Python.h")
headers = "yes" if os.path.exists(header) else "no"
base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
version = "%d.%d.%d" % sys.version_info[:3]
print("|".join((version, why, there("ensurepip"), headers, base)))
'

check_machine() {
  local bits machine system remedy
  remedy="install a 64-bit system: Debian for amd64 or arm64, or the 64-bit Raspberry Pi OS"
  [[ $(uname -s) == Linux ]] || fail "$EXIT_UNAVAILABLE" "Oyez runs on Linux, not on $(uname -s)" \
    "use a machine with Debian 12 or 13, or the 64-bit Raspberry Pi OS"
  machine=$(uname -m)
  bits=$(getconf LONG_BIT 2>/dev/null) || bits=64
  system=$(dpkg --print-architecture 2>/dev/null) || system=$machine
  if [[ $bits != 64 || $system == armhf || $system == i386 ]]; then
    case $machine in
    x86_64 | aarch64 | armv8l)
      fail "$EXIT_UNAVAILABLE" "this is a 32-bit system ($system) on a 64-bit kernel ($machine);\
 the speech engines exist for 64-bit systems alone" "$remedy"
      ;;
    *)
      fail "$EXIT_UNAVAILABLE" "this is a 32-bit system ($system);\
 the speech engines exist for 64-bit systems alone" "$remedy"
      ;;
    esac
  fi
  case $system in
  amd64 | x86_64 | arm64 | aarch64) ;;
  *) fail "$EXIT_UNAVAILABLE" "there are no speech engines for this processor ($system)" "$remedy" ;;
  esac
}

is_debian() {
  command -v apt-get >/dev/null && command -v dpkg >/dev/null
}

# Sets python (the interpreter, empty if Debian's must be installed first), python_version,
# python_has_venv and python_has_headers.
find_python() {
  local candidate path version why has_venv has_headers base found=()
  local candidates=("${python_candidates[@]}")
  [[ -z ${OYEZ_PYTHON-} ]] || candidates=("$OYEZ_PYTHON")
  python="" python_version=""
  for candidate in "${candidates[@]}"; do
    path=$(command -v -- "$candidate") || continue
    IFS='|' read -r version why has_venv has_headers base \
      < <("$path" -I -c "$PYTHON_PROBE" 2>/dev/null) || continue
    found+=("$path is $version${why:+ ($why)}")
    [[ -z $why ]] || continue
    if [[ -z $python || $has_venv$has_headers == yesyes ]]; then
      python=$base python_version=${version%.*}
      python_has_venv=$has_venv python_has_headers=$has_headers
      [[ $has_venv$has_headers != yesyes ]] || return 0
    fi
  done
  [[ -z $python ]] || return 0
  if [[ -n ${OYEZ_PYTHON-} ]]; then
    fail "$EXIT_UNAVAILABLE" \
      "OYEZ_PYTHON is no Python 3.11, 3.12 or 3.13: ${found[0]-$OYEZ_PYTHON does not run}" \
      "set OYEZ_PYTHON to a fitting interpreter, or unset it"
  fi
  # A machine without any Python gets Debian's.
  if [[ ${#found[@]} != 0 ]] || ! is_debian; then
    fail "$EXIT_UNAVAILABLE" \
      "Python 3.11, 3.12 or 3.13 is needed; $(join '; ' "${found[@]-none was found}")" \
      "Debian 12 and 13 bring one (apt-get install python3); or name one: OYEZ_PYTHON=/path/to/python"
  fi
}

has_library() {
  ldconfig -p | grep -F "$1"
}

can_include() {
  printf '#include <%s>\n' "$1" | "${CC:-gcc}" -E -
}

# need PACKAGE THING COMMAND...: the command succeeds where the thing is there.
need() {
  local package=$1 thing=$2
  shift 2
  if ! "$@" >/dev/null 2>&1; then
    missing_packages+=("$package")
    missing_things+=("$thing")
  fi
}

# Sets missing_packages (Debian's names) and missing_things (in words). The things themselves are
# looked for, not the packages: so it serves systems that have them from elsewhere.
find_missing() {
  missing_packages=() missing_things=()
  need libportaudio2 "PortAudio (libportaudio.so.2)" has_library libportaudio.so.2
  # pyalsaaudio and systemd-python come as source alone.
  need gcc "a C compiler (gcc)" command -v "${CC:-gcc}"
  need libc6-dev "the C library's headers" can_include stdlib.h
  need pkgconf "pkg-config" command -v pkg-config
  need libasound2-dev "ALSA's headers" can_include alsa/asoundlib.h
  need libsystemd-dev "systemd's headers" pkg-config --exists libsystemd
  if is_debian; then
    need ca-certificates "certificates" test -s "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}"
  fi
  if [[ -z $python ]]; then
    missing_packages+=(python3 python3-dev python3-venv)
    missing_things+=(python3)
  elif [[ $python == /usr/bin/* ]]; then
    need "python$python_version-venv" "Python's venv and pip" test "$python_has_venv" == yes
    need "python$python_version-dev" "Python's headers" test "$python_has_headers" == yes
  elif [[ $python_has_venv$python_has_headers != yesyes ]]; then
    fail "$EXIT_UNAVAILABLE" "$python lacks its headers (Python.h) or its ensurepip module" \
      "install Python's development files, or name another interpreter with OYEZ_PYTHON"
  fi
}

# Sets as_root to the words in front of a command that root must run; fails if nobody need be asked.
can_be_root() {
  if [[ $(id -u) == 0 ]]; then
    as_root=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    return 1
  fi
}

# find_way_to_root PACKAGE...: as can_be_root, or lets sudo ask, or says what root must do.
find_way_to_root() {
  local by_hand="apt-get update && apt-get install --yes --no-install-recommends $*"
  if ! is_debian; then
    fail "$EXIT_UNAVAILABLE" "missing on this system: $(join ', ' "${missing_things[@]}")" \
      "install them with the system's package manager (on Debian: $*)"
  fi
  ! can_be_root || return 0
  if ! command -v sudo >/dev/null; then
    fail "$EXIT_PERMISSION" "Debian packages are missing, and there is no sudo to install them: $*" \
      "run as root: $by_hand"
  fi
  if [[ ! -t 2 ]] || ! { : </dev/tty; } 2>/dev/null; then
    fail "$EXIT_PERMISSION" "Debian packages are missing, and sudo wants a password but there is\
 no terminal to ask for it: $*" "run as root: $by_hand"
  fi
  as_root=(sudo)
}

# join SEPARATOR WORD...
join() {
  local separator=$1 joined=$2
  shift 2
  (($# == 0)) || joined+=$(printf '%s' "${@/#/$separator}")
  printf '%s' "$joined"
}

apt_get() {
  # What packages start must not keep our lock, and file modes must not depend on our umask.
  (
    # shellcheck disable=SC2154 # lock and log are set-up.bash's
    exec {lock}<&- </dev/null >>"$log" 2>&1
    umask 022
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get --quiet \
      --option DPkg::Lock::Timeout=120 --option Acquire::Retries=1 \
      --option Acquire::http::Timeout=10 --option Acquire::https::Timeout=10 \
      --option Dpkg::Options::=--force-confold "$@"
  )
}

readonly MIRROR_TROUBLE='Temporary failure resolving|Could not resolve|Could not connect|Cannot initiate|Connection (failed|timed out|refused)|Network is unreachable'

# install_debian_packages PACKAGE...
install_debian_packages() {
  local updated=no install=(install --yes --no-install-recommends "$@")
  step "installing Debian packages: $*"
  if [[ -z $(compgen -G '/var/lib/apt/lists/*_Packages*') ]]; then
    apt_get update || true # a broken source that we do not need must not stop us
    updated=yes
  fi
  apt_get "${install[@]}" && return
  if [[ $updated == no ]] && ! logged "$MIRROR_TROUBLE"; then # the lists may be old
    apt_get update || true
    apt_get "${install[@]}" && return
  fi
  explain_apt_failure "$@"
}

explain_apt_failure() {
  local by_hand="apt-get update && apt-get install --yes --no-install-recommends $*"
  show_log
  if logged 'No space left on device|enough free space'; then
    fail "$EXIT_DISK" "the disk is full: the Debian packages cannot be installed" \
      "free some space (apt-get clean), then run this again"
  elif logged "$MIRROR_TROUBLE"; then
    fail "$EXIT_NETWORK" "Debian's mirror is not reachable, and these packages are missing: $*" \
      "connect the machine to the network, then run this again"
  elif logged 'Could not get lock|dpkg was interrupted'; then
    fail "$EXIT_UNAVAILABLE" "apt is busy or was interrupted" \
      "let the other installation end, or run as root: dpkg --configure -a; then run this again"
  elif logged 'Unable to locate package|has no installation candidate'; then
    fail "$EXIT_UNAVAILABLE" "Debian's package lists do not hold all of these: $*" \
      "see that /etc/apt names a mirror of Debian 12 or later with 'main', then run this again"
  fi
  fail "$EXIT_UNAVAILABLE" "apt-get could not install: $*" \
    "see $log; or try it by hand as root: $by_hand"
}

# welcome PACKAGE COMMAND: installs what is useful but not needed, if nobody need be asked for it.
welcome() {
  if command -v "$2" >/dev/null || ! is_debian || ! can_be_root; then
    return 0
  fi
  step "installing the Debian package $1"
  apt_get install --yes --no-install-recommends "$1" || say "$1 cannot be installed; going on without"
}
