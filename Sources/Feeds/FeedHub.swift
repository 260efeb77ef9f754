import Access
package import Base
package import Coaty
import DequeModule
package import Logging
package import Network
package import ProblemDetails
import Synchronization

/// All feeds of the gateway. Subscriptions to the same observation share one feed.
///
/// A feed whose last subscription has ended stays for the resume window, so that its clients can resume.
package final class FeedHub: Sendable {
    /// Maximum number of unused feeds that keep a separate session: each such session may receive all events of the
    /// network.
    static let maximumUnusedTrafficFeeds = 2
    /// Traffic feeds have a separate replay buffer, with the total size divided by this. In a shared buffer, traffic
    /// would evict the events of all other feeds.
    static let trafficPart = 4
    /// In a cluster, the same part of the total size is for feeds that are kept only for the clients of other gateways.
    static let mirrorPart = 4

    struct Entry {
        let feed: Feed
        var users = 0
        /// Identifies the last period without users.
        var absence = 0
        /// Whether the feed is kept only for the clients of other gateways. Otherwise it has users, or had some within
        /// the resume window.
        var isMirror = false

        func isAbsent(_ absence: Int) -> Bool { users == 0 && !isMirror && self.absence == absence }
    }

    /// A feed that clients of this gateway no longer need.
    struct Retirement {
        /// Nil if the feed is kept for the clients of other gateways.
        let feed: Feed?
    }

    struct State {
        /// Maximum number of feeds, without mirrors. Each may be a subscription at the broker.
        let maximumFeeds: Int
        /// Maximum number of feeds in use that have their own broker session.
        let maximumTrafficFeeds: Int
        var entries: [Observation: Entry] = [:]
        /// Unused feeds with the time when they are closed, in order of that time. May contain stale entries of feeds
        /// that are used again or were removed.
        var leaving: Deque<(request: Observation, absence: Int, deadline: ContinuousClock.Instant)> = []
        /// Number of feeds without users, without mirrors.
        var unused = 0
        var mirrors = Mirrors()
        /// Increases over all feeds: a stale entry of a removed feed must not match a later feed for the same
        /// observation.
        var lastAbsence = 0
        var isTimed = false

        /// Returns the problem if a subscription needs one more feed and the limit is reached; otherwise nil.
        ///
        /// - Parameter sessions: the sessions that observe traffic.
        func refusal(of request: Observation, sessions: TrafficSessions) -> Problem? {
            guard entries[request].map({ $0.users == 0 && (request.isTraffic || $0.isMirror) }) ?? true else {
                return nil
            }
            guard request.isTraffic else {
                return ownFeeds - unused >= maximumFeeds ? Problems.tooManyFeeds : nil
            }
            let used = entries.count { $0.key.isTraffic && $0.value.users > 0 }
            guard used < maximumTrafficFeeds else { return Problems.tooManyTrafficFeeds }
            // An unused feed still has its session.
            return entries[request] != nil || sessions.hasRoom ? nil : Problems.tooManyTrafficFeeds
        }

        /// Removes and returns the longest unused feed with its own session, if too many such feeds are unused.
        mutating func removeSurplusTrafficFeed() -> Feed? {
            let unusedTraffic = leaving.indices.filter { index in
                let (request, absence, _) = leaving[index]
                return request.isTraffic && entries[request]?.isAbsent(absence) ?? false
            }
            guard unusedTraffic.count > FeedHub.maximumUnusedTrafficFeeds, let oldest = unusedTraffic.first else {
                return nil
            }
            unused -= 1
            return entries.removeValue(forKey: leaving.remove(at: oldest).request)?.feed
        }

        /// Retires the longest unused feed.
        ///
        /// - Parameter limit: retire only a feed whose deadline is not later than this; nil for any feed.
        mutating func retireOldestUnused(until limit: ContinuousClock.Instant? = nil) -> Retirement? {
            while let (request, absence, deadline) = leaving.first, limit.map({ deadline <= $0 }) ?? true {
                leaving.removeFirst()
                guard let entry = entries[request], entry.isAbsent(absence) else { continue }
                unused -= 1
                return retire(request)
            }
            return nil
        }
    }

    /// The requests that were observed recently, for answers.
    package let requests: ObservedRequests

    /// The threads that evaluate events for subscriptions and responses for requests.
    package let workers: WorkerPool
    package let counts: FeedCounts
    /// The connections of clients that have subscriptions.
    package let streams = ClientConnections()
    /// Publishes on behalf of clients that have no identity.
    let manager: CommunicationManager
    let ioNodes: IoNodeRegistry
    let routing: RoutingAdmin
    let objects: ObjectRegistry
    let resumeWindow: Duration
    package let trafficSessions: TrafficSessions
    package let rawSessions: RawSessions
    private let pins: SnapshotPins
    private let replayBuffer: ReplayBuffer
    private let trafficReplayBuffer: ReplayBuffer
    private let cluster: ClusterCursors?
    let state: Mutex<State>

    /// - Parameters:
    ///   - resumeWindow: how long an unused feed stays.
    ///   - limits: the limits of feeds, replay buffers and queued events.
    ///   - sessions: counts the sessions that observe traffic.
    ///   - rawSessions: the sessions that observe raw events.
    ///   - workers: the threads that evaluate filters and access of events and responses, and deliver them.
    ///   - cluster: nil if clients can't resume at other gateways.
    package init(
        manager: CommunicationManager,
        ioNodes: IoNodeRegistry,
        routing: RoutingAdmin,
        objects: ObjectRegistry,
        resumeWindow: Duration,
        limits: Limits,
        sessions: TrafficSessions,
        rawSessions: RawSessions,
        workers: WorkerPool,
        cluster: ClusterCursors? = nil,
        logger: Logger
    ) {
        self.workers = workers
        self.cluster = cluster
        requests = ObservedRequests(
            limit: limits.answerableRequests,
            maximumBytes: limits.requestMemory
        )
        counts = FeedCounts(memory: limits.feedMemory, maximumEvents: limits.waitingEvents, logger: logger)
        state = Mutex(
            State(
                maximumFeeds: limits[.feeds].total,
                maximumTrafficFeeds: limits[.brokerConnections].total,
                mirrors: Mirrors(maximum: cluster == nil ? 0 : limits.peerFeeds)
            )
        )
        self.manager = manager
        self.ioNodes = ioNodes
        self.routing = routing
        self.objects = objects
        self.resumeWindow = resumeWindow
        trafficSessions = sessions
        self.rawSessions = rawSessions
        let bytes = limits.replayBytes
        let trafficBytes = bytes / Self.trafficPart
        let mirrorBytes = cluster == nil || limits.peerFeeds == 0 ? 0 : bytes / Self.mirrorPart
        trafficReplayBuffer = ReplayBuffer(limit: trafficBytes)
        replayBuffer = ReplayBuffer(limit: bytes - trafficBytes - mirrorBytes, mirrorLimit: mirrorBytes)
        let pins = SnapshotPins(workers: workers)
        self.pins = pins
        _ = objects.observeChanges(pins.note)
    }

    /// The number of feeds, including unused ones that clients can resume, without mirrors.
    package var count: Int { state.withLock(\.ownFeeds) }

    /// Returns the problem if an observation is not possible now; nil if it is.
    package func refusal(of request: Observation) -> Problem? {
        switch request {
        case .ioValue(let id): ioNodes.actor(id) == nil ? Problems.notRegistered("IO actor") : nil
        case .ioState(let id): ioNodes.agent(ofPoint: id) == nil ? Problems.notRegistered("IO point") : nil
        case .routing(let id): routing.isKnown(id) ? nil : Problems.unknownContext(id)
        default: state.withLock { $0.refusal(of: request.shared, sessions: trafficSessions) }
        }
    }

    /// Starts a subscription.
    ///
    /// - Parameter client: the subscriber. A new feed of raw events uses the broker session of this client.
    /// - Returns: a closure that ends the subscription; call it once.
    package func subscribe(
        _ subscription: ClientSubscription,
        to request: Observation,
        by client: ClientKey = .address(.other)
    ) -> @Sendable () -> Void {
        switch request {
        case .ioState, .routing:
            // Not shared: each subscription starts with the current state.
            let feed = Feed(isResumable: false, memory: replayBuffer, workers: workers, counts: counts)
            feed.add(subscription)
            feed.update(.standing)
            FeedUpstream(hub: self, feed: feed, request: request, client: client).begin()
            return { feed.close() }
        default:
            let key = request.shared
            let feed: Feed
            let upstream: FeedUpstream?
            do throws(Problem) {
                (feed, upstream) = try use(key, by: client)
            } catch {
                subscription.refuse(error)
                return {}
            }
            do throws(Problem) {
                // The upstream begins only afterwards: the broker sends retained messages as soon as it has the
                // subscription, and its first client must not miss them. It begins even if this subscription is
                // refused, because others may use the feed by now.
                defer { upstream?.begin() }
                try add(subscription, to: feed, key)
                if upstream == nil, subscription.options.since == nil { feed.requestRetained() }
            } catch {
                leave(feed, key)
                subscription.refuse(error)
                return {}
            }
            return { [weak self] in
                feed.remove(subscription)
                self?.leave(feed, key)
            }
        }
    }

    // MARK: - Feeds

    /// Adds a subscription to a feed, with a snapshot if it observes objects.
    ///
    /// - Throws: `Problem` if there is no memory for the snapshot.
    private func add(_ subscription: ClientSubscription, to feed: Feed, _ request: Observation) throws(Problem) {
        guard case .objects = request else { return feed.add(subscription) }
        // Before the snapshot is taken, so that every object that is replaced afterwards is counted.
        let pin = try pins.pin(objects.content, for: subscription)
        feed.add(subscription) { [objects] now in
            objects.withContent { ObjectSnapshot($0, cursor: now(), pin: pin) }
        }
    }

    /// Returns the feed for an observation, creating it if needed, and counts a user.
    ///
    /// - Returns: also the upstream of a new feed, which the caller must begin outside of locks: the session may report a
    ///   status during this call.
    /// - Throws: `Problem` if the limit is reached, even if ``refusal(of:)`` returned nil before.
    private func use(_ request: Observation, by client: ClientKey) throws(Problem) -> (Feed, FeedUpstream?) {
        let (feed, upstream, displaced) = try state.withLock { state throws(Problem) in
            if let problem = state.refusal(of: request, sessions: trafficSessions) { throw problem }
            if var entry = state.entries[request], !entry.isMirror {
                if entry.users == 0 { state.unused -= 1 }
                entry.users += 1
                state.entries[request] = entry
                return (entry.feed, FeedUpstream?.none, Feed?.none)
            }
            let displaced = state.ownFeeds >= state.maximumFeeds ? state.retireOldestUnused()?.feed : nil
            state.mirrors.noteChange(of: request)
            if let feed = state.adopt(request) { return (feed, nil, displaced) }
            let feed = makeFeed(request, isMirror: false)
            if case .objects = request {
                // Under the lock: no other subscription may take a snapshot of this feed before the feed observes
                // changes.
                feed.hold(objects.observeChanges { [weak feed] change in feed?.deliver(PendingEvent(change)) })
            }
            state.entries[request] = Entry(feed: feed, users: 1)
            let session = request.isTraffic ? trafficSessions.take() : nil
            let upstream = FeedUpstream(hub: self, feed: feed, request: request, client: client, session: session)
            return (feed, upstream, displaced)
        }
        displaced?.close()
        return (feed, upstream)
    }

    func makeFeed(_ request: Observation, isMirror: Bool) -> Feed {
        Feed(
            isResumable: true,
            memory: request.isTraffic ? trafficReplayBuffer : replayBuffer,
            workers: workers,
            counts: counts,
            places: cluster.flatMap { cluster in request.peerName.map { FeedPlaces(cluster, name: $0) } },
            isMirror: isMirror,
            expectsRetained: request.isRaw
        )
    }

    private func leave(_ feed: Feed, _ request: Observation) {
        let (surplus, startsTimer) = state.withLock { state -> (Feed?, Bool) in
            // A feed that has ended was removed, and another may have replaced it.
            guard var entry = state.entries[request], entry.feed === feed else { return (nil, false) }
            entry.users -= 1
            guard entry.users == 0 else {
                state.entries[request] = entry
                return (nil, false)
            }
            guard resumeWindow > .zero else {
                state.entries[request] = entry
                return (state.retire(request).feed, false)
            }
            state.lastAbsence += 1
            entry.absence = state.lastAbsence
            state.entries[request] = entry
            state.unused += 1
            // Clients that connect and disconnect quickly leave many stale entries.
            if state.leaving.count >= 2 * state.entries.count {
                state.leaving.removeAll { state.entries[$0.request]?.isAbsent($0.absence) != true }
            }
            state.leaving.append((request, entry.absence, .now + resumeWindow))
            defer { state.isTimed = true }
            return (request.isTraffic ? state.removeSurplusTrafficFeed() : nil, !state.isTimed)
        }
        surplus?.close()
        guard startsTimer else { return }
        Task { [weak self] in
            while let deadline = self?.closeUnused() { try? await Task.sleep(until: deadline, clock: .continuous) }
        }
    }

    /// Closes the feeds whose resume window is over.
    ///
    /// - Returns: when to check again; nil if no feed is unused.
    private func closeUnused() -> ContinuousClock.Instant? {
        let (feeds, next) = state.withLock { state in
            var feeds: [Feed] = []
            while let retired = state.retireOldestUnused(until: .now) {
                if let feed = retired.feed { feeds.append(feed) }
            }
            state.isTimed = !state.leaving.isEmpty
            return (feeds, state.leaving.first?.deadline)
        }
        for feed in feeds { feed.close() }
        return next
    }

    /// Ends and removes a feed whose upstream has ended. Later subscriptions get a new feed.
    ///
    /// - Parameter problem: the refusal for subscriptions that have not started.
    func end(_ feed: Feed, _ request: Observation, _ problem: Problem = Problems.withdrawn) {
        state.withLock { state in
            guard let entry = state.entries[request], entry.feed === feed else { return }
            if entry.isMirror {
                state.mirrors.count -= 1
            } else if entry.users == 0 {
                state.unused -= 1
            }
            state.entries[request] = nil
            state.mirrors.noteChange(of: request)
        }
        feed.end(problem)
    }
}

extension Problems {
    static let tooManyTrafficFeeds = tooManySubscriptions(
        "All broker connections for traffic are in use or still closing. Try again later, or use the `events` of an open subscription."
    )
    package static let tooManyFeeds = tooManySubscriptions("The maximum number of feeds is in use.")
    static let withdrawn = notFound(detail: "The observed IO context or IO point no longer exists.")

    static let subscriptionRefused = Problem(
        type: typePrefix + "subscription-refused",
        title: "Subscription refused",
        status: 403,
        detail: "The broker refused the gateway's subscription to these events."
    )
}
