// A program that measures how long a server holds up others: it asks for `/health` over and over.

/**
 * Calls `<url>/health` until it is stopped, then prints how long its replies took, in milliseconds. With the id of the
 * server's process it also prints the longest time that the server itself took (`held`): the time in which its main
 * thread or this program had no processor, because others of the machine had it, is not counted. Linux tells that time.
 */
export const ASKER = `
  import { readFileSync } from 'node:fs'
  const took = []
  let held = 0
  const unserved = () => {
    let ns = 0
    for (const pid of process.argv[2] === undefined ? [] : [process.argv[2], process.pid]) {
      try {
        ns += Number(readFileSync('/proc/' + pid + '/task/' + pid + '/schedstat', 'utf8').split(' ')[1])
      } catch {}
    }
    return ns / 1e6
  }
  let going = true
  for (const event of ['data', 'end']) process.stdin.once(event, () => { going = false })
  await fetch(process.argv[1] + '/health')
  console.log('ready')
  while (going) {
    const before = unserved()
    const asked = performance.now()
    const reply = await fetch(process.argv[1] + '/health')
    await reply.arrayBuffer()
    if (reply.status !== 200) throw new Error('/health answered ' + reply.status)
    took.push(performance.now() - asked)
    held = Math.max(held, took.at(-1) - (unserved() - before))
    await Bun.sleep(2)
  }
  took.sort((a, b) => a - b)
  console.log(JSON.stringify({ p99: took[Math.ceil(took.length * 0.99) - 1], slowest: took.at(-1), held, count: took.length }))
`
