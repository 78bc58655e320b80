// Stops the start when a route is declared twice, in one plugin or in two. Elysia would silently replace the first
// declaration by the second, with its access, and keeps no trace of it. That is why this watches `add`, by which Elysia
// adds each route to a plugin, and each route of a plugin to an app.

import { Elysia } from 'elysia'

type Add = (...route: unknown[]) => unknown

const add: Add = Reflect.get(Elysia.prototype, 'add')

function addOnce(this: Elysia, ...route: unknown[]): unknown {
  const before = [...this.routes]
  const result = Reflect.apply(add, this, route)
  const replacing = this.routes.find((after, index) => index < before.length && after !== before[index])
  if (replacing) throw new Error(`${replacing.method} ${replacing.path} is declared twice: remove one of the two`)
  return result
}

Reflect.set(Elysia.prototype, 'add', addOnce)
