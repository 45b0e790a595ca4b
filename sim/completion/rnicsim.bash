# SPDX-License-Identifier: Apache-2.0
# bash completion for rnicsim. What there is to choose from, the program says itself.

_rnicsim() {
  local program=${1/#\~/$HOME} typed=${COMP_WORDS[COMP_CWORD]} words=() word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    # After -- stands a program with its own words.
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((i == COMP_CWORD - 1)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$typed")
      fi
      return
    fi
  done
  # bash cuts at = and : what rnicsim does not.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if ((${#words[@]})) && [[ $word == [=:]* || ${words[-1]} == *[=:] && $word != -* ]] &&
      [[ $COMP_LINE == *"${words[-1]}$word"* ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  mapfile -t COMPREPLY < <("$program" complete "${words[@]}" 2>/dev/null)
  # It puts in what follows its last cut, only.
  local cut=${words[-1]}
  [[ $typed == [=:] ]] || cut=${cut%"$typed"}
  for i in "${!COMPREPLY[@]}"; do
    [[ ${COMPREPLY[i]} != *= ]] || compopt -o nospace 2>/dev/null
    COMPREPLY[i]=${COMPREPLY[i]#"$cut"}
  done
}

# Where the program has nothing to say, file names.
complete -o default -F _rnicsim rnicsim
