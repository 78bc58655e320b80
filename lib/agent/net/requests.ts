// What an agent may ask of the network: requests with `context.fetch`, calls of a JSON API with `context.api`, and hosts
// for clients of other protocols with `context.vet`.

import type { Static, TSchema } from 'typebox'
import type { Json, JsonObject } from '../../json.ts'
import type { Effect } from '../core/effect.ts'
import type { FileForm } from '../core/file-form.ts'

export interface FetchOptions extends Omit<RequestInit, 'signal' | 'redirect' | 'body'> {
  body?: RequestInit['body'] | FileForm
  /**
   * Milliseconds to wait for the reply to one attempt; default 60,000. While a large file is sent, the time starts anew
   * with each part that the server accepts.
   */
  timeout?: number
  /**
   * Maximum number of bytes that `text()`, `json()` and `bytes()` accept; default 64 MiB. A body that is streamed has
   * no limit.
   */
  maxBytes?: number
  /**
   * Maximum number of attempts; default 4. GET and HEAD are retried on network errors, 408, 429 and 5xx. The same
   * applies to any method of a `read` action, and to PUT and DELETE of an `idempotent` one. Every other request is
   * retried only after a complete refusal because of a rate limit. `effect` and `costly` change this for one request.
   */
  attempts?: number
  /**
   * For what must not be left behind at the vendor, such as half an upload: the request is sent even after the run was
   * stopped, once and for at most two seconds.
   */
  cleanup?: boolean
  /**
   * The request costs money even if its reply is lost. It is repeated only when it was certainly not processed: when no
   * connection was made, and after a complete 429, 503 or 529.
   */
  costly?: boolean
  /** Whether to follow up to 3 redirects; default true for GET and HEAD. */
  follow?: boolean
  /**
   * What this request changes, where its method says something else: a POST that only searches (`read`) is retried
   * like a GET, and a GET that starts something (`once`) like a POST.
   */
  effect?: Effect
}

/** One call of a JSON API. */
export interface ApiCall extends Omit<FetchOptions, 'body'> {
  /** Undefined parameters are left out. A list adds one parameter for each item. */
  query?: Record<string, string | number | boolean | readonly string[] | undefined>
  /** Sent as JSON, with POST if no method is given. */
  body?: Json
  /**
   * The header in which the vendor takes an idempotency key, such as `Idempotency-Key`: `context.key` is sent in it. The
   * vendor then does the same request only once, so it is retried after a lost reply, as a PUT is.
   */
  keyHeader?: string
  /** The permission or scope that the call needs, in the vendor's words. */
  scope?: string
  /** What the reply must be at least; anything else is an error `unexpected_reply`. */
  reply?: TSchema
  /** What to do about a status that means something of its own here. */
  hints?: Record<number, string>
}

export interface ApiOptions {
  /** The address that precedes the vendor's paths. */
  base: string
  /** Sent with every call; they contain the credential. */
  headers?: Record<string, string>
  /** The key of the setting that holds the credential, for the hints of errors: `api_token`. */
  setting?: string
}

/**
 * Calls a JSON API. `doing` names the operation for errors: `get item 7`. A status outside 200–299, a reply that is not
 * JSON or not of the form `reply` throws an AgentError. The reply to a write may be empty, and is then null.
 */
export interface Api {
  <S extends TSchema>(doing: string, path: string, options: ApiCall & { reply: S }): Promise<Static<S>>
  <T = JsonObject>(doing: string, path: string, options?: ApiCall): Promise<T>
}

/** A host that the network guard allows, and where to connect to. */
export interface VettedHost {
  /** The name, or the literal address, in lower case and without brackets: for certificates. */
  readonly host: string
  /** Null when `target` has none. */
  readonly port: number | null
  /** The IP address to connect to: the first of `addresses`. */
  readonly address: string
  /** All addresses of the host. Each of them has been judged. */
  readonly addresses: readonly string[]
}
