// The module is what client.d.ts declares: this compiles, or it is not.
import * as declared from "./declared.js"
import * as module from "./module.js"

// The listeners of an EventTarget are declared more narrowly than they can be checked.
type Public<T> = { [K in keyof T as Exclude<K, keyof EventTarget>]: T[K] }

export const error: Public<declared.GatewayError> = {} as module.GatewayError
export const client: Public<declared.CoatyClient> = {} as module.CoatyClient
export const makesClient: new (url?: string | URL, options?: declared.ClientOptions) => Public<declared.CoatyClient> =
  module.CoatyClient
export const makesError: new (problem: declared.Problem) => Public<declared.GatewayError> = module.GatewayError
export const stream: Public<declared.CoatyEventSource> = {} as module.CoatyEventSource
export const makesStream: new (url: string | URL, options?: declared.EventSourceOptions) => Public<declared.CoatyEventSource> =
  module.CoatyEventSource
export const ticketUrl: typeof declared.ticketUrl = module.ticketUrl
