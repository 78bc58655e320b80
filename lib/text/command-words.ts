// What the command lines of daemon and hub share: the examples of `--help`, and words that are not commands, which a default
// command would receive, and `help` would pass over.

import type { Command } from 'commander'
import { didYouMean } from './spelling.ts'

/** Ends the program with exit code 2 when `command`, which is the default of `program`, was given a word. */
export function refuseWords(program: Command, command: Command): void {
  if (command.args.length > 0) refuseWord(program, command.args[0]!)
}

/** Replaces the `help` of commander, which says nothing of a word that it does not know. */
export function addHelp(program: Command): Command {
  return program
    .helpCommand(false)
    .command('help [command...]')
    .description('explain a command and show examples')
    .action((words: string[]) => {
      let shown = program
      for (const word of words) {
        shown = shown.commands.find(each => each.name() === word) ?? refuseWord(shown, word)
      }
      shown.help()
    })
}

/** Ends the program with exit code 2. `otherwise` is a hint for a word that is near to no command of `program`. */
export function refuseWord(program: Command, word: string, otherwise = ''): never {
  // Options of a command that stand before it seem to be those of the default command.
  if (program.commands.some(each => each.name() === word)) {
    program.error(`error: write the options of '${word}' after it`)
  }
  const near = didYouMean(
    word,
    program.commands.map(each => each.name()),
  )
  const group = program.parent ? ` of ${program.name()}` : ''
  program.error(`error: unknown command '${word}'${group}${near || otherwise}`)
}

/** What `--help` shows last: calls that make sense, as they can be typed. `program` is what people call the program. */
export function examplesText(program: string, calls: readonly string[]): string {
  const lines = calls.map(words => `  $ ${program} ${words}`.trimEnd())
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`
}
