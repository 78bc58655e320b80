// Words of a command line that are not commands: a default command would receive them, and `help` would pass over them.

import type { Command } from 'commander'
import { didYouMean } from './spelling.ts'

/** Ends the program with exit code 2 when `command`, which is the default of `program`, was given a word. */
export function refuseWords(program: Command, command: Command): void {
  if (command.args.length > 0) refuse(program, command.args[0]!)
}

/** Replaces the `help` of commander, which says nothing of a word that it does not know. */
export function addHelp(program: Command): void {
  program
    .helpCommand(false)
    .command('help [command...]')
    .description('display help for command')
    .action((words: string[]) => {
      let shown = program
      for (const word of words) {
        shown = shown.commands.find(each => each.name() === word) ?? refuse(shown, word)
      }
      shown.help()
    })
}

function refuse(program: Command, word: string): never {
  const names = program.commands.map(each => each.name())
  const group = program.parent ? ` of ${program.name()}` : ''
  program.error(`error: unknown command '${word}'${group}${didYouMean(word, names)}`)
}
