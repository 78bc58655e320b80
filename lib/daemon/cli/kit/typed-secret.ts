// Reads secrets that a person types.

import { CadreError } from '../../../error.ts'
import { line, nothing } from '../../../text/printable.ts'
import { ask, printMessage } from '../../../text/terminal.ts'

/** Reads what is typed up to Enter, without showing it. Without a terminal, reads a line of stdin. */
export async function typedSecret(prompt: string): Promise<string> {
  const [typed] = await typedSecrets([prompt])
  return typed!
}

/** One secret for each prompt. Without a terminal, each is a line of stdin. */
export async function typedSecrets(prompts: readonly string[]): Promise<string[]> {
  if (!process.stdin.isTTY) {
    const lines = (await Bun.stdin.text()).split(/\r?\n/)
    return prompts.map((_, index) => lines[index] ?? '')
  }
  const typed: string[] = []
  let text = ''
  const next = () => {
    if (typed.length > 0) printMessage(nothing)
    ask(line`${prompts[typed.length]!}`)
  }
  process.stdin.setRawMode(true)
  next()
  try {
    for await (const chunk of process.stdin) {
      for (const key of String(chunk)) {
        if (key === '\x03') throw new CadreError('invalid_request', 'nothing was given')
        if (key === '\x7f' || key === '\b') text = text.slice(0, -1)
        else if (key !== '\r' && key !== '\n' && key !== '\x04') text += key
        else {
          typed.push(text)
          text = ''
          if (typed.length === prompts.length) return typed
          next()
        }
      }
    }
    return prompts.map((_, index) => typed[index] ?? (index === typed.length ? text : ''))
  } finally {
    process.stdin.setRawMode(false)
    process.stdin.unref()
    printMessage(nothing)
  }
}
