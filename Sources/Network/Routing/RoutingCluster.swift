package import Cluster
package import Coaty
import Coordination
package import Logging
import Synchronization

/// The hosted contexts of a gateway in a cluster: the gateways agree which of them speaks for each context
/// (``RouterElection``), and the others adopt its state and wait to take over.
///
/// Changes are made at the gateway that speaks, whichever gateway the client uses.
@ControllerActor
package final class RoutingCluster: Component {
    nonisolated static let partName = "routing"
    /// Maximum interval at which passed time is noticed.
    nonisolated static let tick = Duration.milliseconds(500)
    /// How long a gateway that loses its place waits for the state of the other one.
    static let yieldTime = Duration.seconds(5)
    /// How long a change waits for the other gateways to store it.
    nonisolated static let confirmationTime = Duration.seconds(2)
    /// Interval of attempts while no gateway speaks.
    static let attemptInterval = Duration.milliseconds(100)
    /// Maximum number of gateways' questions that wait for a change; further ones are not answered.
    static let maximumWaiting = 256

    /// The state of a context that a gateway has published.
    struct Source: Equatable {
        let speaker: CoatyUUID
        let version: RoutingVersion
    }

    /// A context.
    final class Member {
        let id: CoatyUUID
        let router: HostedRouter
        var election: RouterElection
        /// What was adopted from another gateway; nil if this one speaks or nothing was adopted.
        var adopted: Source?
        /// What was adopted and is in the state directory.
        var stored: Source?
        /// The changes of associations by the adopted state.
        var changes = IoAssociationChanges()
        var yieldingSince: Duration?
        /// Whether clients have changed the context or its rules since this gateway speaks.
        var isChanged = false
        /// Questions whether a version is stored.
        var waiting: [(source: Source, answer: @Sendable ([UInt8]) -> Void)] = []
        /// The routers outside of the cluster that were logged.
        var reported: Set<CoatyUUID> = []

        init(_ id: CoatyUUID, _ router: HostedRouter, _ election: RouterElection) {
            (self.id, self.router, self.election) = (id, router, election)
        }
    }

    /// The announcements of this gateway.
    struct Outgoing {
        /// In the order of the configuration.
        var claims: [ClusterInbox.NamedClaim] = []
        /// The JSON of the contexts for which this gateway speaks.
        var states: [CoatyUUID: [UInt8]] = [:]
        var changed: Set<CoatyUUID> = []
        var speakers: [CoatyUUID: CoatyUUID] = [:]
    }

    nonisolated let peers: Peers
    nonisolated let manager: CommunicationManager
    let members: [CoatyUUID: Member]
    nonisolated let order: [CoatyUUID]
    private nonisolated let logger: Logger
    private nonisolated let presence = Mutex(ClusterPresence())
    nonisolated let inbox: Mutex<ClusterInbox>
    nonisolated let outgoing: Mutex<Outgoing>
    private nonisolated let isStopping = Atomic(false)
    private nonisolated let tasks = Mutex<[Task<Void, Never>]>([])
    private nonisolated let signals:
        [(id: CoatyUUID, stream: AsyncStream<Void>, signal: AsyncStream<Void>.Continuation)]
    weak var admin: RoutingAdmin?

    /// - Parameter admin: its routers must be silent.
    package init(_ admin: RoutingAdmin, manager: CommunicationManager, peers: Peers, logger: Logger) {
        self.admin = admin
        self.manager = manager
        self.peers = peers
        self.logger = logger
        let members = admin.hostedRouters.map { id, router in
            var election = RouterElection(id: manager.identityId)
            election.adopt(router.version)
            return Member(id, router, election)
        }
        self.members = Dictionary(members.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
        order = members.map(\.id)
        inbox = Mutex(ClusterInbox(hosted: Set(order)))
        outgoing = Mutex(Outgoing())
        signals = order.map { id in
            let (stream, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            return (id, stream, signal)
        }
        for member in members {
            member.router.changeHandler = { [weak self, weak member] in
                guard let self, let member else { return false }
                return noteChange(of: member)
            }
        }
        admin.cluster = self
    }

    nonisolated func start() async throws {
        var tasks = signals.map { id, stream, _ in
            Task { @ControllerActor [weak self] in
                for await _ in stream { await self?.turn(id) }
            }
        }
        tasks.append(
            Task.detached { [weak self] in
                while (try? await Task.sleep(for: Self.tick)) != nil {
                    guard let self else { return }
                    _ = presentSince()
                    signalAll()
                }
            }
        )
        self.tasks.withLock { $0 = tasks }
        signalAll()
    }

    /// From now on, this gateway neither begins nor ceases to speak.
    nonisolated func stop() async {
        isStopping.store(true, ordering: .relaxed)
        for task in tasks.withLock(\.self) { task.cancel() }
    }

    nonisolated func signalAll() {
        for (_, _, signal) in signals { signal.yield() }
    }

    private nonisolated func presentSince() -> Duration? {
        let (now, isOnline) = (peers.now, manager.isOnline)
        return presence.withLock { presence in
            presence.note(now, isOnline: isOnline, longest: Peers.timeout)
            return presence.since
        }
    }

    // MARK: - Reading

    /// A context as the cluster routes it.
    package struct Status: Sendable {
        package let contextId: CoatyUUID
        /// The gateway that speaks; nil if it is not known.
        package let speaker: CoatyUUID?
        package let version: RoutingVersion
        /// Whether this gateway may take over.
        package let isReady: Bool
    }

    /// The contexts, in the order of the configuration.
    nonisolated var status: [Status] {
        outgoing.withLock { outgoing in
            outgoing.claims.map { named in
                Status(
                    contextId: named.id,
                    speaker: outgoing.speakers[named.id],
                    version: named.claim.version,
                    isReady: named.claim.isReady
                )
            }
        }
    }

    /// Returns the gateway that speaks for a context; nil if there is none.
    nonisolated func speaker(_ id: CoatyUUID) -> CoatyUUID? { outgoing.withLock { $0.speakers[id] } }

    /// Returns the agents outside of the cluster that route a context.
    func otherRouters(_ router: HostedRouter) -> [CoatyUUID] {
        let known = peers.known
        return router.otherRouters.filter { !known.contains($0) }
    }

    /// The live gateways that route a context.
    nonisolated func hosts(_ id: CoatyUUID) -> [CoatyUUID: RouterElection.Claim] {
        let live = peers.live
        return inbox.withLock { $0.claims(of: id) }.filter { live.contains($0.key) }
    }

    /// Returns the live gateway that speaks for a context; nil if none but this one does.
    nonisolated func otherSpeaker(_ id: CoatyUUID) -> CoatyUUID? { Self.speaker(hosts(id)) }

    nonisolated static func speaker(_ claims: [CoatyUUID: RouterElection.Claim]) -> CoatyUUID? {
        claims.filter(\.value.speaks).max { $0.value.version < $1.value.version }?.key
    }

    // MARK: - Turns

    private func turn(_ id: CoatyUUID) async {
        guard !isStopping.load(ordering: .relaxed), let member = members[id] else { return }
        let (known, others) = (peers.known, hosts(id))
        let foreign = member.router.confirmedOtherRouters.filter { !known.contains($0) }
        let since = presentSince()
        member.router.successors = Array(others.keys)
        let step = member.election.step(
            .init(
                now: peers.now,
                presentSince: since,
                others: others,
                highestTerm: inbox.withLock { $0.claims(of: id).values.map(\.version.term).max() ?? 0 },
                seesOther: !foreign.isEmpty
            )
        )
        if member.election.claim.isReady { report(foreign, member) }
        if case .yield = step {} else { member.yieldingSince = nil }
        switch step {
        case .stay: break
        case .speak: await speak(member)
        case .publishAgain: await member.router.publishAgain()
        case .fallSilent:
            await member.router.fallSilent(publishing: false)
            logger.info("stopped speaking for an IO context", metadata: metadata(member))
        case .follow(let speaker): await follow(speaker, member)
        case .yield(let speaker): await yield(to: speaker, member)
        }
        announce(member, speaker: others)
    }

    private func metadata(_ member: Member, _ agent: CoatyUUID? = nil) -> Logger.Metadata {
        let agent: Logger.Metadata = agent.map { ["agent": "\($0)"] } ?? [:]
        return agent.merging(["context": "\(member.id)", "term": "\(member.election.claim.version.term)"]) { $1 }
    }

    private func report(_ foreign: [CoatyUUID], _ member: Member) {
        // Forgets those that have left, so that the set is bounded like the list.
        let new = Set(foreign).subtracting(member.reported)
        member.reported = Set(foreign)
        for id in new { member.router.warn(ofOtherRouter: id) }
    }

    private func speak(_ member: Member) async {
        // First, so that no other gateway begins to speak too.
        announce(member, speaker: [:])
        logger.info("speaking for an IO context", metadata: metadata(member))
        (member.adopted, member.stored, member.isChanged) = (nil, nil, false)
        member.router.version = member.election.claim.version
        await member.router.speak()
        publish(member)
        keep(member)
    }

    private func keep(_ member: Member) {
        let writing = Result { try member.router.keep() }
        Task {
            do {
                try await writing.get()?.value
            } catch {
                logger.error("a change of an IO context was not stored", metadata: ["error": "\(error)"])
            }
        }
    }

    private func yield(to speaker: CoatyUUID, _ member: Member) async {
        let since = member.yieldingSince ?? peers.now
        member.yieldingSince = since
        let hasState = inbox.withLock { $0.state(of: member.id, at: speaker) } != nil
        guard hasState || peers.now - since > Self.yieldTime else { return }
        if member.isChanged {
            logger.warning(
                "two gateways spoke for an IO context, and the changes of this one are discarded",
                metadata: metadata(member, speaker)
            )
        }
        // Still speaking: what this gateway has associated, and the other one does not, is dissolved.
        await follow(speaker, member)
        await member.router.fallSilent(publishing: true)
        member.election.fallSilent()
        logger.info("another gateway speaks for an IO context", metadata: metadata(member, speaker))
    }

    private func follow(_ speaker: CoatyUUID, _ member: Member) async {
        guard let state = inbox.withLock({ $0.state(of: member.id, at: speaker) }) else { return }
        let source = Source(speaker: speaker, version: state.version)
        guard source != member.adopted else { return }
        member.adopted = source
        do {
            let (context, rules) = try member.router.accept(state.context, IoAssociationRule.rules(state.rules))
            member.changes = await member.router.follow(context, state.context, rules) ?? IoAssociationChanges()
            member.election.adopt(state.version)
            member.router.version = state.version
        } catch {
            logger.error(
                "the state of an IO context at another gateway can't be used",
                metadata: metadata(member, speaker).merging(["error": "\(error)"]) { $1 }
            )
            return
        }
        do {
            try await member.router.keep()?.value
            member.stored = source
            answer(member)
        } catch {
            logger.error("a change of an IO context was not stored", metadata: ["error": "\(error)"])
        }
    }

    /// Handles that the context or its rules were changed here.
    ///
    /// - Returns: false if another gateway speaks meanwhile; its state replaces the change.
    private func noteChange(of member: Member) -> Bool {
        guard member.election.claim.speaks, member.yieldingSince == nil else {
            member.adopted = nil
            return false
        }
        member.isChanged = true
        member.election.change()
        member.router.version = member.election.claim.version
        publish(member)
        announce(member, speaker: [:])
        return true
    }
}
