# Sourced by scripts/setup and scripts/build: says what goes on, on stderr, from the first second.

say() { printf '%s\n' "$*" >&2; }

# What a command prints, read from stdin: all of it into a log, and the line that came last on stderr. A terminal shows it in place;
# a file or the log of a CI runner gets a line every five seconds.
show_progress() {  # show_progress <log>
  local line next=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >> "$1"
    if [[ -t 2 ]]; then
      printf '\r\033[K%.*s' "$(( ${COLUMNS:-80} - 1 ))" "$line" >&2
    elif (( SECONDS >= next )); then
      printf '%s\n' "$line" >&2
      next=$((SECONDS + 5))
    fi
  done
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}
