// Masking, against a regular expression of the raw values alone: what a log line costs with the secrets of a large home.

import { createRedactor } from '../lib/secrets/redact.ts'

const SECRETS = Array.from({ length: 50 }, (_, n) => `secret-${n}-${Bun.hash(`${n}`).toString(36)}`)
const BYTES = Number(process.argv[2] ?? 10_000_000)
const TEXTS = {
  'plain log lines': '2026-01-01T00:00:00Z info phase fetch completed in 230ms with 200 OK\n',
  'key=value': 'time=2026-01-01T00:00:00Z level=info run=7f9c0b bytes=2048 status=200 user=ada\n',
  'JSON in JSON': `${JSON.stringify({ at: 1, text: JSON.stringify({ run: '7f9c0b', path: 'a\\b', ok: 'yes "it" is' }) })}\n`,
  base64: `${Buffer.from('the quick brown fox jumps over the lazy dog again').toString('base64')}\n`,
  URLs: 'GET https://acme.test/a%20b/c%3Fd?x=%7B%22a%22%3A1%7D&y=2&z=3 200\n',
  'one line of 10 MB': 'x',
}

const floor = new RegExp(SECRETS.map(RegExp.escape).join('|'), 'g')
const redactor = createRedactor(SECRETS)
const timed = (work: () => unknown) => {
  const times = Array.from({ length: 5 }, () => {
    const began = performance.now()
    work()
    return performance.now() - began
  })
  return times.toSorted((a, b) => a - b)[2]!
}

for (const [name, piece] of Object.entries(TEXTS)) {
  const text = piece.repeat(Math.ceil(BYTES / piece.length))
  const chunks = Array.from({ length: Math.ceil(text.length / 65_536) }, (_, n) =>
    Buffer.from(text.slice(n * 65_536, (n + 1) * 65_536)),
  )
  const least = timed(() => text.replace(floor, '***'))
  const asText = timed(() => redactor.text(text))
  const asStream = timed(() => {
    const stream = redactor.stream()
    for (const chunk of chunks) stream.push(chunk)
    stream.end()
  })
  console.log(
    `${name.padEnd(20)} floor ${least.toFixed(0)} ms, text ${asText.toFixed(0)} ms (${(asText / least).toFixed(1)}), stream ${asStream.toFixed(0)} ms (${(asStream / least).toFixed(1)})`,
  )
}
