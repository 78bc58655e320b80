// Places at which a test can kill the process as a power cut would: nothing is flushed, and no handler runs. They do
// nothing unless CADRE_FAILPOINT was set at the start. With the value `n`, the process dies at the n-th place that it
// reaches.

let left = Number(process.env.CADRE_FAILPOINT ?? 0)

export function failpoint(): void {
  if (left > 0 && --left === 0) process.kill(process.pid, 'SIGKILL')
}
