import Coaty
import Logging
import ProblemDetails

@testable import Access
@testable import Base
@testable import CoatyGateway
@testable import CoatyTestSupport
@testable import Edge
@testable import Feeds
@testable import Gate
@testable import Measurement
@testable import Network

/// A gate with its network, on an in-memory broker.
struct GateScene {
    let broker = TopicBroker()
    let manager: CommunicationManager
    let objects: ObjectRegistry
    let owners = ObjectOwners()
    let ioNodes: IoNodeRegistry
    let hub: FeedHub
    let access: AccessControl
    let gate: Gate
    let services: ClientServices
    let accounts: Accounts

    init(
        _ policy: Policy = .open,
        limits: Limits = Limits(),
        workers: WorkerPool = ClosesOutboundQueues.made.workers
    ) async throws {
        let log = Logger(label: "test")
        let options = CommunicationOptions { [broker] _ in TopicBinding(broker: broker) }
        manager = try CommunicationManager(identity: Identity(name: "gateway"), options: options)
        objects = ObjectRegistry(manager: manager, logger: log)
        ioNodes = IoNodeRegistry(options: options, name: "gateway", limit: 10, logger: log)
        let routing = await RoutingAdmin(manager: manager, routers: [], feed: RoutingFeed())
        hub = FeedHub(
            manager: manager,
            ioNodes: ioNodes,
            routing: routing,
            objects: objects,
            resumeWindow: .seconds(60),
            limits: Made.limits,
            sessions: TrafficSessions(feeds: Made.limits[.brokerConnections].total),
            rawSessions: RawSessions(maximum: 1, open: manager.openRawSession),
            workers: workers,
            logger: log
        )
        access = AccessControl(policy)
        accounts = Accounts(limits, logger: log)
        let network = NetworkParts(
            manager: manager,
            feeds: hub,
            objects: objects,
            queries: Queries(),
            owners: owners,
            keptObjects: KeptObjects(manager: manager, owners: owners, limits: limits, logger: log),
            ioNodes: ioNodes,
            routing: routing,
            identities: ClientIdentities(options: options, limit: 10, tokens: ResumeTokens(nil), logger: log),
            accounts: accounts,
            metrics: Metrics()
        )
        let audit = try AuditLog(.none, logger: log)
        gate = Gate(network, access: access, audit: audit, counts: OperationCounts())
        services = ClientServices(
            gate: gate,
            accounts: accounts,
            workers: hub.workers,
            connections: hub.streams,
            authenticator: Authenticator(access: access, log: audit, limits: Limits()),
            requestLog: RequestLog(RequestLog.Settings(), logger: log)
        )
    }

    /// Joins the network, and observes its objects.
    func start() {
        objects.start()
        manager.start()
    }

    func stop() async {
        objects.stop()
        await manager.stop()
    }
}

extension Principal {
    static let anonymous = Principal(.anonymous, address: "192.0.2.1", under: .open)

    static func token(_ name: String) -> Principal { Principal(.token(name), address: "192.0.2.1", under: .open) }
}

extension Gate {
    /// Opens an operation that lasts, for a client that does nothing else.
    func open<Opened: LastingOperation>(_ operation: Opened, by principal: Principal) throws -> Opened.Lasting {
        try open(operation, for: GateClient(self, principal))
    }

    /// Returns the problem if an operation is not allowed; nil if it is.
    func refusal(of operation: some ControlledOperation, by principal: Principal) -> Problem? {
        do throws(Problem) {
            _ = try permit(operation, principal)
            return nil
        } catch {
            return error
        }
    }
}
