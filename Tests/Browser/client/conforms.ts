// Compiles only if client.js matches the declarations in client.d.ts.
import * as declared from "./declared.js"
import * as module from "./module.js"

// client.d.ts declares the event listeners more narrowly than client.js, so the members of EventTarget are left out.
type Public<T> = { [K in keyof T as Exclude<K, keyof EventTarget>]: T[K] }

export const error: Public<declared.GatewayError> = {} as module.GatewayError
export const client: Public<declared.CoatyClient> = {} as module.CoatyClient
export const makesClient: new (url?: string | URL, options?: declared.ClientOptions) => Public<declared.CoatyClient> =
  module.CoatyClient
export const makesError: new (problem: declared.Problem) => Public<declared.GatewayError> = module.GatewayError
export const stream: Public<declared.CoatyEventSource> = {} as module.CoatyEventSource
export const makesStream: new (url: string | URL, options?: declared.EventSourceOptions) => Public<declared.CoatyEventSource> =
  module.CoatyEventSource
export const parseExact: typeof declared.parseExact = module.parseExact
export const stringifyExact: typeof declared.stringifyExact = module.stringifyExact
export const ticketUrl: typeof declared.ticketUrl = module.ticketUrl
