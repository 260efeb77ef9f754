import Coaty

/// The parts of the gateway that act in the Coaty network. Only ``Gate`` holds one and lends it to operations.
struct Network: Sendable {
    /// The gateway's own agent, which publishes for clients without an identity.
    let manager: CommunicationManager
    let feeds: FeedHub
    let objects: ObjectRegistry
    /// Performs queries of ``objects``.
    let queries: Queries
    let owners: ObjectOwners
    let ioNodes: IoNodeRegistry
    let routing: RoutingAdmin
    let identities: ClientIdentities
    /// What each client holds.
    let accounts: Accounts
    /// Nil if nothing watches the resident memory.
    var residentMemory: ResidentMemory?
    /// Counts the requests of clients.
    let requestCount: RequestCount
    let metrics: Metrics
    let http = HTTPUse()
    /// The first answers to requests with an `Idempotency-Key`.
    let idempotency = IdempotencyTable()
    /// What operators can do with the gateway.
    var control = GatewayControl(root: nil)
}
