import Coaty
import DequeModule
import HTTPServer
import Synchronization

/// Everything that is observed for clients: one source for all who want the same, which stays for a while when the last of
/// them has gone, so that they can resume.
final class StreamHub: Sendable {
    /// The most sources, each of which may be a subscription at the broker.
    static let maximumSources = 10_000
    /// The most of them that are in use and have a link to the broker of their own.
    static let maximumLinks = 8
    /// How many of those stay when nobody uses them: all that goes on comes over each.
    static let maximumUnusedLinks = 2
    /// Traffic has this part of the memory for those who resume, to itself: else it would drive out what all others need.
    static let trafficPart = 4

    private struct Entry {
        let source: StreamSource
        var users = 0
        /// The number of the last time without users.
        var absence = 0

        func isAbsent(_ absence: Int) -> Bool { users == 0 && self.absence == absence }
    }

    private struct State {
        var entries: [StreamRequest: Entry] = [:]
        /// The sources that nobody uses any more, until when they stay, in order.
        var leaving: Deque<(request: StreamRequest, absence: Int, deadline: ContinuousClock.Instant)> = []
        /// How many sources nobody uses.
        var unused = 0
        /// Over all sources: what is left behind of one that has gone must not be taken for another in its place.
        var lastAbsence = 0
        var isTimed = false

        /// Why there is no room for what is not yet observed; nil where there is.
        ///
        /// - Parameter links: how many links there are.
        func refusal(of request: StreamRequest, links: Int) -> Problem? {
            guard entries[request].map({ $0.users == 0 && request.isTraffic }) ?? true else { return nil }
            guard request.isTraffic else {
                return entries.count - unused >= StreamHub.maximumSources ? Problems.tooManySources : nil
            }
            let used = entries.count { $0.key.isTraffic && $0.value.users > 0 }
            guard used < StreamHub.maximumLinks else { return Problems.tooManyLinks }
            // One that nobody uses has its link already.
            return entries[request] != nil || links < TrafficLinks.maximum ? nil : Problems.tooManyLinks
        }

        /// Takes out the source that has a link and that nobody has used for the longest time, where too many stay.
        mutating func removeSurplusLink() -> StreamSource? {
            let unusedLinks = leaving.indices.filter { index in
                let (request, absence, _) = leaving[index]
                return request.isTraffic && entries[request]?.isAbsent(absence) ?? false
            }
            guard unusedLinks.count > StreamHub.maximumUnusedLinks, let oldest = unusedLinks.first else { return nil }
            unused -= 1
            return entries.removeValue(forKey: leaving.remove(at: oldest).request)?.source
        }

        /// Takes out the source that nobody has used for the longest time.
        ///
        /// - Parameter limit: only one whose time is over then; nil for any.
        mutating func removeOldestUnused(until limit: ContinuousClock.Instant? = nil) -> StreamSource? {
            while let (request, absence, deadline) = leaving.first, limit.map({ deadline <= $0 }) ?? true {
                leaving.removeFirst()
                guard let entry = entries[request], entry.isAbsent(absence) else { continue }
                entries[request] = nil
                unused -= 1
                return entry.source
            }
            return nil
        }
    }

    /// What is kept of the requests that clients have seen, so that they can answer.
    let requests = ObservedRequests()
    /// What waits for all clients together, of streams and requests.
    let waiting = WaitingMemory()

    /// The connections of clients that observe.
    let streams = OpenStreams()
    /// The requests of clients.
    let asked = RequestCount()

    /// Who publishes for clients without an identity of their own.
    let manager: CommunicationManager
    let ioNodes: IoNodeRegistry
    let routing: RoutingAdmin
    let objects: ObjectRegistry
    private let resumeWindow: Duration
    private let links: TrafficLinks
    private let memory: ResumeMemory
    private let trafficMemory: ResumeMemory
    private let state = Mutex(State())

    /// - Parameters:
    ///   - resumeWindow: for how long a source stays when nobody uses it.
    ///   - resumeMemory: how many bytes of events are kept for those who resume.
    ///   - links: counts the links of traffic.
    init(
        manager: CommunicationManager,
        ioNodes: IoNodeRegistry,
        routing: RoutingAdmin,
        objects: ObjectRegistry,
        resumeWindow: Duration,
        resumeMemory: Int,
        links: TrafficLinks
    ) {
        self.manager = manager
        self.ioNodes = ioNodes
        self.routing = routing
        self.objects = objects
        self.resumeWindow = resumeWindow
        self.links = links
        trafficMemory = ResumeMemory(limit: resumeMemory / Self.trafficPart)
        memory = ResumeMemory(limit: resumeMemory - resumeMemory / Self.trafficPart)
    }

    /// Why there is nothing to observe; nil where there is.
    func refusal(of request: StreamRequest) -> Problem? {
        switch request {
        case .ioValue(let id): ioNodes.actor(id) == nil ? Problems.notRegistered("IO actor") : nil
        case .ioState(let id): ioNodes.agent(ofPoint: id) == nil ? Problems.notRegistered("IO point") : nil
        case .routing(let id): routing.isKnown(id) ? nil : Problems.unknownContext(id)
        default: state.withLock { $0.refusal(of: request.shared, links: links.count) }
        }
    }

    /// Begins a subscription.
    ///
    /// - Returns: what ends it, to be called once.
    func subscribe(_ lane: Lane, to request: StreamRequest) -> @Sendable () -> Void {
        switch request {
        case .ioState, .routing:
            // A state is told to each from its beginning.
            let source = StreamSource(isResumable: false, memory: memory)
            source.add(lane)
            source.update(.standing)
            SourceFeed(hub: self, source: source, request: request).begin()
            return { source.close() }
        default:
            let key = request.shared
            let source: StreamSource
            do throws(Problem) {
                source = try use(key)
            } catch {
                lane.refuse(error)
                return {}
            }
            if case .objects = key {
                objects.withObjects { objects in
                    source.add(lane) { cursor in ObjectSnapshot(objects, cursor: cursor) }
                }
            } else {
                source.add(lane)
            }
            return { [weak self] in
                source.remove(lane)
                self?.leave(source, key)
            }
        }
    }

    // MARK: - Sources

    /// - Throws: where others have taken the last room since ``refusal(of:)`` was asked.
    private func use(_ request: StreamRequest) throws(Problem) -> StreamSource {
        let (source, feed, displaced) = try state.withLock { state throws(Problem) in
            if let problem = state.refusal(of: request, links: links.count) { throw problem }
            if var entry = state.entries[request] {
                if entry.users == 0 { state.unused -= 1 }
                entry.users += 1
                state.entries[request] = entry
                return (entry.source, SourceFeed?.none, StreamSource?.none)
            }
            let displaced = state.entries.count >= Self.maximumSources ? state.removeOldestUnused() : nil
            let source = StreamSource(isResumable: true, memory: request.isTraffic ? trafficMemory : memory)
            if case .objects = request {
                // Under the lock, so that who comes now misses no change behind what is there.
                source.hold(
                    objects.observeChanges { [weak source] change in ObservedEvent(change).map { source?.say($0) } }
                )
            }
            state.entries[request] = Entry(source: source, users: 1)
            let link = request.isTraffic ? links.take() : nil
            return (source, SourceFeed(hub: self, source: source, request: request, link: link), displaced)
        }
        displaced?.close()
        // Not under the lock: the link may answer at once.
        feed?.begin()
        return source
    }

    private func leave(_ source: StreamSource, _ request: StreamRequest) {
        let (unused, isToBeTimed) = state.withLock { state -> (StreamSource?, Bool) in
            // One that has ended is not there any more, and another may be in its place.
            guard var entry = state.entries[request], entry.source === source else { return (nil, false) }
            entry.users -= 1
            guard entry.users == 0 else {
                state.entries[request] = entry
                return (nil, false)
            }
            guard resumeWindow > .zero else {
                state.entries[request] = nil
                return (entry.source, false)
            }
            state.lastAbsence += 1
            entry.absence = state.lastAbsence
            state.entries[request] = entry
            state.unused += 1
            // Those who come and go fast leave much behind that is no longer true.
            if state.leaving.count >= 2 * state.entries.count {
                state.leaving.removeAll { state.entries[$0.request]?.isAbsent($0.absence) != true }
            }
            state.leaving.append((request, entry.absence, .now + resumeWindow))
            defer { state.isTimed = true }
            return (request.isTraffic ? state.removeSurplusLink() : nil, !state.isTimed)
        }
        unused?.close()
        guard isToBeTimed else { return }
        Task { [weak self] in
            while let deadline = self?.closeUnused() { try? await Task.sleep(until: deadline, clock: .continuous) }
        }
    }

    /// Closes the sources that nobody has come back to.
    ///
    /// - Returns: when to look again; nil where none is left.
    private func closeUnused() -> ContinuousClock.Instant? {
        let (sources, next) = state.withLock { state in
            var sources: [StreamSource] = []
            while let source = state.removeOldestUnused(until: .now) { sources.append(source) }
            state.isTimed = !state.leaving.isEmpty
            return (sources, state.leaving.first?.deadline)
        }
        for source in sources { source.close() }
        return next
    }

    /// A source that ended by itself is not there for those who come later.
    ///
    /// - Parameter problem: what those are told that have not begun.
    func end(_ source: StreamSource, _ request: StreamRequest, _ problem: Problem = Problems.withdrawn) {
        state.withLock { state in
            guard let entry = state.entries[request], entry.source === source else { return }
            if entry.users == 0 { state.unused -= 1 }
            state.entries[request] = nil
        }
        source.end(problem)
    }
}

extension Problems {
    static let tooManyLinks = tooManySubscriptions(
        "The gateway observes \(StreamHub.maximumLinks) other choices of events already, or has not yet done with earlier ones."
    )
    static let tooManySources = tooManySubscriptions("The gateway observes as much as it can.")
    static let withdrawn = notFound(detail: "What is to be observed is no longer there.")

    static let subscriptionRefused = Problem(
        type: typePrefix + "subscription-refused",
        title: "Subscription refused",
        status: 403,
        detail: "The broker does not let the gateway observe this."
    )
}
