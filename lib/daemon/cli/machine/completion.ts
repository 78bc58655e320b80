// `completion SHELL`: the script by which a shell completes the words of `cadre`. It asks `cadre complete`, which prints a
// word and its description a line, divided by a tab.

import { CadreError } from '../../../error.ts'
import { calledAnywhere } from '../../../program/called-as.ts'
import { lines } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'

const SHELLS = { bash, zsh, fish } as const

/** Throws `invalid_request` for a shell that has no script. */
export function completion(shell: string): void {
  if (!Object.hasOwn(SHELLS, shell)) {
    throw new CadreError('invalid_request', `there is no completion for ${shell}; there are bash, zsh and fish`)
  }
  print(lines(SHELLS[shell as keyof typeof SHELLS](calledAnywhere()).trimEnd()))
}

function bash(cadre: string): string {
  return `# cadre completion for bash: put this line into ~/.bashrc
#   source <(${cadre} completion bash)
_cadre() {
  local line word open='' words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  # Behind an open quote a word would have to be quoted in another way.
  [[ \${COMP_WORDS[COMP_CWORD]} == *[\\"\\']* ]] && return 0
  # The words are as they stand in the line. What was completed before has its backslashes.
  words=("\${words[@]//\\\\/}")
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default -o filenames 2>/dev/null; return ;;
      *)
        # Bash inserts a word as it is, so the name of a folder could run a command.
        word=\${line%%$'\\t'*}
        [[ $word == */ ]] && open=yes
        printf -v word %q "$word"
        COMPREPLY+=("$word")
        ;;
    esac
  done < <(${cadre} complete -- "\${words[@]}" 2>/dev/null)
  [[ \${#COMPREPLY[@]} -eq 1 && -n $open ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _cadre cadre
`
}

function zsh(cadre: string): string {
  return `#compdef cadre
# cadre completion for zsh: put this line into ~/.zshrc, below compinit
#   source <(${cadre} completion zsh)
_cadre() {
  local line word
  local -a plain folders
  while IFS= read -r line; do
    [[ $line == :files ]] && { _files; return }
    word=\${line%%$'\\t'*}
    # A colon divides a word from its description.
    if [[ $word == */ ]]; then folders+=("$word")
    elif [[ $line == *$'\\t'* ]]; then plain+=("\${word//:/\\\\:}:\${line#*$'\\t'}")
    else plain+=("\${word//:/\\\\:}"); fi
  done < <(${cadre} complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( \${#plain} )) && _describe -V cadre plain
  (( \${#folders} )) && compadd -S '' -- $folders
}
compdef _cadre cadre
`
}

function fish(cadre: string): string {
  return `# cadre completion for fish: ${cadre} completion fish > ~/.config/fish/completions/cadre.fish
function __cadre_complete
  set -l words (commandline -opc)[2..] (commandline -ct)
  set -l lines (${cadre} complete -- $words 2>/dev/null)
  if test "$lines" = :files
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $lines
  end
end
complete -c cadre -f -k -a '(__cadre_complete)'
`
}
