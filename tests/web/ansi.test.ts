// What the pages show of a text of a terminal: its colours, and of a text that writes over itself what is left of it.

import { expect, test } from 'bun:test'
import { pieces } from '../../lib/web/kit/ansi.ts'

const shown = (text: string) =>
  pieces(text)
    .map(piece => piece.text)
    .join('')

test.each([
  ['10 %\r 50 %\r100 %', '100 %'],
  ['downloading\rdone', 'doneloading'],
  ['downloading\r\x1b[Kdone', 'done'],
  ['downloading\rdone\x1b[K', 'done'],
  ['downloading\x1b[2K\rdone', 'done'],
  ['downloading\x1b[1G\x1b[0Kdone', 'done'],
  ['12\b3', '13'],
  ['abc\x1b[2DX', 'aXc'],
  ['a\tb\rX', 'X       b'],
  ['a\x1b[3Cb\rX', 'X   b'],
  ['one\ntwo\rX', 'one\nXwo'],
  ['e\u0301a\rX', 'Xa'],
  ['🙂🙂\rX', 'X🙂'],
  ['plain\r', 'plain'],
  ['\r', ''],
  ['a\x1b]0;title\x07b\x1b[5;5Hc', 'abc'],
  ['tab\tand no more', 'tab\tand no more'],
])('of %j a terminal shows %j', (text, seen) => expect(shown(text)).toBe(seen))

test('each character keeps the colour in which it was written', () => {
  expect(pieces('\x1b[31mbad\x1b[0m\rg\x1b[32mo')).toEqual([
    { text: 'g', class: '' },
    { text: 'o', class: 'ansi-green' },
    { text: 'd', class: 'ansi-red' },
  ])
  expect(pieces('\x1b[1;33mwarn\x1b[0m: x')).toEqual([
    { text: 'warn', class: 'ansi-yellow ansi-bold' },
    { text: ': x', class: '' },
  ])
})

test('a hostile text of moves has a bounded size', () => {
  expect(shown(`${'\x1b[99999999Cx\x1b[2K'.repeat(2_000)}\rend`).length).toBeLessThan(1_000)
  expect(shown(`${'\x1b[99999999Cx'.repeat(10)}`).length).toBeLessThan(1_000)
})

test('a line that is emptied again and again is read in linear time', () => {
  const emptied = (times: number) => `${'a'.repeat(32_000)}${'\x1b[2Kx'.repeat(times)}`
  expect(
    pieces(emptied(6_400))
      .map(({ text }) => text)
      .join('')
      .trim(),
  ).toBe('x')
  // Blanks stand where the cursor was, and no more than a screen is wide: a line grows by one character at a time.
  expect(
    pieces(emptied(6_400))
      .map(({ text }) => text)
      .join('').length,
  ).toBeLessThan(7_000)
})
