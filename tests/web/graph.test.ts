// Where the graph puts the phases of random teams: below what they wait for, never over each other, and soon.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { HEIGHT, layout, type Node, WIDTH } from '../../lib/web/run/graph.ts'
import { took } from '../support/gap.ts'

/** Phases in an order in which none waits for a later one, and then in any order, as files may have them. */
const teams = fc
  .array(fc.array(fc.nat(30), { maxLength: 4 }), { minLength: 1, maxLength: 30 })
  .map(all =>
    all.map(
      (after, index): Node => ({
        name: `p${index}`,
        after: [...new Set(after.filter(each => each < index))].map(each => `p${each}`),
      }),
    ),
  )
  .chain(nodes => fc.shuffledSubarray(nodes, { minLength: nodes.length }))

const spot = (x: number, y: number): string => `${x} ${y}`

test('phases stand below those that they wait for and never over each other, and lines lead between them', () => {
  fc.assert(
    fc.property(teams, nodes => {
      const { boxes, lines, width, height } = layout(nodes)
      const at = new Map(boxes.map(box => [box.name, box]))
      expect(at.size).toBe(nodes.length)
      for (const { name, after } of nodes) {
        for (const each of after) expect(at.get(each)!.y + HEIGHT).toBeLessThan(at.get(name)!.y)
      }
      for (const [index, a] of boxes.entries()) {
        expect(a.x >= 0 && a.y >= 0 && a.x + WIDTH <= width + 1 && a.y + HEIGHT <= height).toBe(true)
        for (const b of boxes.slice(index + 1)) {
          expect(a.y !== b.y || Math.abs(a.x - b.x) >= WIDTH).toBe(true)
        }
      }
      expect(lines.length).toBe(nodes.reduce((sum, { after }) => sum + after.length, 0))
      const edges = new Set(boxes.flatMap(({ x, y }) => [spot(x + WIDTH / 2, y), spot(x + WIDTH / 2, y + HEIGHT)]))
      for (const line of lines) {
        expect(edges.has(spot(line[0]!.x, line[0]!.y))).toBe(true)
        expect(edges.has(spot(line.at(-1)!.x, line.at(-1)!.y))).toBe(true)
        // A line passes between phases, not through them.
        for (const { x, y } of line.slice(1, -1)) {
          expect(boxes.some(box => x > box.x && x < box.x + WIDTH && y > box.y && y < box.y + HEIGHT)).toBe(false)
        }
      }
    }),
  )
})

test('the largest teams are laid out in the time of a blink', () => {
  const chain = Array.from({ length: 1_000 }, (_, n): Node => ({ name: `p${n}`, after: n > 0 ? [`p${n - 1}`] : [] }))
  const wide = Array.from(
    { length: 1_000 },
    (_, n): Node => ({
      name: `p${n}`,
      after: n < 500 ? [] : [`p${n - 500}`, `p${(n * 7) % 500}`, `p${(n * 13) % 500}`],
    }),
  )
  for (const nodes of [chain, wide]) {
    expect(took(() => expect(layout(nodes).boxes).toHaveLength(1_000))).toBeLessThan(2_000)
  }
})
