// A program that measures how long a server holds up others: it asks for `/health` over and over.

/** Calls `<url>/health` until it is stopped, then prints how long its replies took, in milliseconds. */
export const ASKER = `
  const took = []
  let going = true
  for (const event of ['data', 'end']) process.stdin.once(event, () => { going = false })
  await fetch(process.argv[1] + '/health')
  console.log('ready')
  while (going) {
    const asked = performance.now()
    const reply = await fetch(process.argv[1] + '/health')
    await reply.arrayBuffer()
    if (reply.status !== 200) throw new Error('/health answered ' + reply.status)
    took.push(performance.now() - asked)
    await Bun.sleep(2)
  }
  took.sort((a, b) => a - b)
  console.log(JSON.stringify({ p99: took[Math.ceil(took.length * 0.99) - 1], slowest: took.at(-1), count: took.length }))
`
