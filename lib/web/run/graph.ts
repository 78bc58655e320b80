// The layout of a graph in rows: each phase is below all phases for which it waits. Phases keep the order of their file
// where that crosses few lines. A line over several rows has a position in each row, so that it runs past phases.

export interface Node {
  name: string
  after: readonly string[]
}

interface Spot {
  name: string | null
  x: number
  row: number
  up: Spot[]
  down: Spot[]
}

export interface Drawn {
  width: number
  height: number
  /** The left upper corner of each phase. */
  boxes: { name: string; x: number; y: number }[]
  /** From the lower edge of a phase to the upper edge of another, by the middle of each row between them. */
  lines: { x: number; y: number }[][]
}

export const WIDTH = 176
export const HEIGHT = 48
const GAP = 24
const ROW = HEIGHT + 40
const ROUNDS = 6

export function layout(nodes: readonly Node[]): Drawn {
  const rows: Spot[][] = []
  const spots = new Map<string, Spot>()
  const lines: Spot[][] = []
  const put = (name: string | null, row: number): Spot => {
    const spot: Spot = { name, x: 0, row, up: [], down: [] }
    rows[row] = [...(rows[row] ?? []), spot]
    return spot
  }
  for (const { name, after } of inOrder(nodes)) {
    const above = after.map(each => spots.get(each)).filter(spot => spot !== undefined)
    const row = Math.max(-1, ...above.map(spot => spot.row)) + 1
    const spot = put(name, row)
    spots.set(name, spot)
    for (const from of above) {
      const line = [from]
      for (let between = from.row + 1; between < row; between++) line.push(put(null, between))
      line.push(spot)
      lines.push(line)
      for (const [index, lower] of line.slice(1).entries()) {
        line[index]!.down.push(lower)
        lower.up.push(line[index]!)
      }
    }
  }
  for (const row of rows) spread(row)
  for (let round = 0; round < ROUNDS; round++) {
    for (const row of rows) settle(row, spot => spot.up, round < ROUNDS - 2)
    for (const row of rows.toReversed()) settle(row, spot => spot.down, round < ROUNDS - 2)
  }
  const left = Math.min(0, ...rows.map(row => row[0]!.x - sizeOf(row[0]!) / 2))
  const right = Math.max(0, ...rows.map(row => row.at(-1)!.x + sizeOf(row.at(-1)!) / 2))
  const across = (spot: Spot) => Math.round(spot.x - left)
  const point = (spot: Spot, edge: number) => ({ x: across(spot), y: spot.row * ROW + edge })
  return {
    width: Math.ceil(right - left),
    height: Math.max(0, rows.length * ROW - (ROW - HEIGHT)),
    boxes: [...spots].map(([name, spot]) => ({ name, x: across(spot) - WIDTH / 2, y: spot.row * ROW })),
    lines: lines.map(line =>
      line.map((spot, index) => point(spot, index === 0 ? HEIGHT : index === line.length - 1 ? 0 : HEIGHT / 2)),
    ),
  }
}

/** The phases, each after the phases for which it waits. No team has a circle; one would be cut somewhere. */
function inOrder(nodes: readonly Node[]): Node[] {
  const byName = new Map(nodes.map(node => [node.name, node]))
  const ordered = new Set<Node>()
  const visited = new Set<Node>()
  const stack = nodes.toReversed()
  for (let node = stack.at(-1); node; node = stack.at(-1)) {
    const waits = visited.has(node) ? [] : node.after.map(name => byName.get(name)).filter(each => each !== undefined)
    visited.add(node)
    const next = waits.filter(each => !visited.has(each))
    if (next.length > 0) stack.push(...next)
    else ordered.add(stack.pop()!)
  }
  return [...ordered]
}

const sizeOf = ({ name }: Spot): number => (name === null ? 0 : WIDTH)
const between = (a: Spot, b: Spot): number => (sizeOf(a) + sizeOf(b)) / 2 + GAP

/** Puts the spots of a row beside each other, around 0. */
function spread(row: Spot[]): void {
  for (const [index, spot] of row.entries())
    spot.x = index === 0 ? 0 : row[index - 1]!.x + between(row[index - 1]!, spot)
  const middle = (row[0]!.x + row.at(-1)!.x) / 2
  for (const spot of row) spot.x -= middle
}

/** Moves the spots of a row to the middle of their neighbours in `others`, as far as there is room. */
function settle(row: Spot[], others: (spot: Spot) => Spot[], sort: boolean): void {
  const wanted = new Map(row.map(spot => [spot, meanOf(others(spot)) ?? spot.x]))
  if (sort) row.sort((a, b) => wanted.get(a)! - wanted.get(b)!)
  let shift = 0
  for (const [index, spot] of row.entries()) {
    const least = index === 0 ? Number.NEGATIVE_INFINITY : row[index - 1]!.x + between(row[index - 1]!, spot)
    spot.x = Math.max(least, wanted.get(spot)!)
    shift += wanted.get(spot)! - spot.x
  }
  for (const spot of row) spot.x += shift / row.length
}

const meanOf = (spots: readonly Spot[]): number | undefined =>
  spots.length === 0 ? undefined : spots.reduce((sum, { x }) => sum + x, 0) / spots.length
