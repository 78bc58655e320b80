// What cadre and a command on another host say to each other. The host says that a POSIX shell is there, before it gets
// anything; the last line of what it then gets says that the script is whole; and it says with which code the script
// ended. Of a command that did not get that last line, nothing was run. The words stand in the stdout of ssh and are
// taken out of it.

import type { Talk } from '../agent/command.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { Limit } from '../lived-time.ts'
import { chunksIn, streamOf } from '../stream.ts'
import { explainSsh, type SshContext, scriptOf } from './ssh.ts'

/** How long a host may take from the start of ssh until it says that it is ready. */
const READY_MS = 60_000
const EMPTY = Buffer.alloc(0)
/** The longest rest of the last word: an exit code and the end of its line. */
const CODE_MOST = 4

export interface SshTalk extends Talk {
  /** The arguments of ssh after the host. */
  args: string[]
  /** What is written to ssh at once; without it, the host has to be ready first. */
  input: string | undefined
  /** Whether the command may have begun. */
  readonly mayHaveRun: boolean
}

/**
 * A command on another host. One that is `sure` gets nothing before the host is ready, so that what did not run is known
 * not to have run.
 */
export function talkOf(
  context: SshContext,
  { run, env, sure }: { run: string; env: Record<string, string | number | boolean>; sure: boolean },
): SshTalk {
  const words = wordsOf()
  const script = `${scriptOf(run, env).input}${words.whole}\n`
  let mayHaveRun = !sure
  let isReady = false
  let code: number | null = null
  async function* heard(stdout: ReadableStream<Uint8Array>, ready: () => void) {
    // The reader may take the memory of what it gets, so that nothing is yielded whose memory is needed again.
    for await (const part of partsOf(stdout, ready)) if (part.length > 0) yield part
  }
  async function* partsOf(stdout: ReadableStream<Uint8Array>, ready: () => void) {
    let rest: Buffer = EMPTY
    for await (const chunk of chunksIn(stdout)) {
      rest =
        rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.concat([rest, chunk])
      if (!isReady) {
        const at = rest.indexOf(words.ready)
        if (at !== -1) {
          isReady = true
          const before = Buffer.from(rest.subarray(0, at))
          rest = rest.subarray(at + words.ready.length)
          ready()
          yield before
        }
      }
      if (isReady && code === null) {
        const at = rest.indexOf(words.ended)
        const said = at === -1 ? null : /^(\d{1,3})\n/.exec(rest.toString('latin1', at + words.ended.length))
        if (said) {
          code = Number(said[1])
          const before = Buffer.from(rest.subarray(0, at))
          rest = rest.subarray(at + words.ended.length + said[0].length)
          yield before
        }
      }
      const held = code === null ? heldFrom(rest, isReady ? words.ended : words.ready) : rest.length
      const part = rest.subarray(0, held)
      rest = held === rest.length ? EMPTY : Buffer.from(rest.subarray(held))
      yield part
    }
    yield rest
  }
  return {
    args: [words.command],
    input: sure ? undefined : script,
    get mayHaveRun() {
      return mayHaveRun
    },
    listen({ child, stop }, isStopped) {
      if (!sure) return streamOf(heard(child.stdout, () => {}))
      const limit = new Limit(READY_MS, stop)
      void child.exited.finally(() => limit.end())
      return streamOf(
        heard(child.stdout, () => {
          limit.end()
          if (isStopped()) return
          mayHaveRun = true
          child.stdin.write(script)
          void Promise.resolve(child.stdin.end()).catch(() => {})
        }),
      )
    },
    codeOf(exited, stderr) {
      if (code !== null) return code
      if (isReady) throw lost(context, stderr)
      // ssh exits with 255 where the error is its own.
      const explained = exited === 255 ? explainSsh(context, stderr) : null
      if (explained) throw explained
      if (sure) throw notReady(context, stderr)
      return exited
    },
    knownCode: () => code,
  }
}

/**
 * The words of one command, and what `sh` there is started with. The host has to work them out: a program that only
 * repeats the command does not say them. The line has no backslash and no exclamation mark, which login shells other
 * than POSIX ones change between single quotation marks.
 */
function wordsOf() {
  const nonce = crypto.randomUUID().replaceAll('-', '')
  const [a = 0, b = 0, c = 0, d = 0] = crypto.getRandomValues(new Uint32Array(4)).map(number => number >>> 4)
  // A comment, for a shell that was forced to read its stdin instead.
  const whole = `#cadre-whole-${nonce}`
  const command = [
    `echo "cadre-ready-$((${a}+${b}))-${nonce}"; CADRE_SCRIPT=$(cat)`,
    `case $CADRE_SCRIPT in *"${whole}") (eval "\${CADRE_SCRIPT%${whole}}") </dev/null`,
    `CADRE_CODE=$?; echo "cadre-ended-$((${c}+${d}))-${nonce}:$CADRE_CODE"; exit $CADRE_CODE`,
    'esac',
  ]
  return {
    ready: `cadre-ready-${a + b}-${nonce}\n`,
    whole,
    ended: `cadre-ended-${c + d}-${nonce}:`,
    command: `exec sh -c '${command.join(';')}'`,
  }
}

/** Where the bytes begin that may become `word` once more of them arrive. */
function heldFrom(bytes: Buffer, word: string): number {
  const most = word.length + CODE_MOST
  for (let at = Math.max(0, bytes.length - most); at < bytes.length; at++) {
    const part = bytes.toString('latin1', at)
    if (word.startsWith(part) || (part.startsWith(word) && /^\d*$/.test(part.slice(word.length)))) return at
  }
  return bytes.length
}

function lost({ callName, settings }: SshContext, stderr: string): AgentError {
  const said = stderr && `: ${stderr}`
  return new AgentError(`[${callName}] ${settings.host}: the connection was lost while the command ran${said}`, {
    code: 'network',
    retryable: true,
    sent: 'unknown',
  })
}

function notReady({ callName, settings }: SshContext, stderr: string): AgentError {
  const said = stderr && `: ${stderr}`
  const message = `[${callName}] ${settings.host}: the command was not sent, because no POSIX shell said that it was ready${said}`
  const hint =
    'a forced command (command= in authorized_keys, ForceCommand) or another login shell answers there: use a key that may run commands, or leave out `effect: once` if the command may run twice'
  return new AgentError(message, { code: 'rejected', hint, sent: 'no' })
}
