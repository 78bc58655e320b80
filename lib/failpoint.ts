// Places at which a test lets the process die, as a power cut would: nothing is flushed, no handler runs.
// Inert unless CADRE_FAILPOINT was set at the start; with `n` the n-th place that is reached is the last.

let left = Number(process.env.CADRE_FAILPOINT ?? 0)

export function failpoint(): void {
  if (left > 0 && --left === 0) process.kill(process.pid, 'SIGKILL')
}
