import Coaty
import Logging
import ProblemDetails
import Synchronization
import Testing

@testable import Base
@testable import Feeds
@testable import Gate
@testable import Network

/// A transport that accepts as many frames as the test allows.
final class SteeredTransport: FrameTransport {
    private struct State {
        var room = Int.max
        var isGone = false
        var frames: [String] = []
        var finished: [ConnectionEnd] = []
        var aborts = 0
        /// The charges of the accepted frames; empty unless the frames are sent later.
        var unsent: [Charge] = []
        var sendsLater = false
    }

    private let state = Mutex(State())

    init(room: Int = .max) { state.withLock { $0.room = room } }

    /// Lets the transport accept this many more frames.
    func setRoom(_ room: Int) { state.withLock { $0.room = room } }
    func go() { state.withLock { $0.isGone = true } }
    /// Accepts frames from now on without sending them.
    func sendLater() { state.withLock { $0.sendsLater = true } }
    /// Sends the accepted frames.
    func send() { state.withLock { $0.unsent = [] } }

    /// The accepted frames, as JSON.
    var frames: [String] { state.withLock(\.frames) }
    var finished: [ConnectionEnd] { state.withLock(\.finished) }
    var aborts: Int { state.withLock(\.aborts) }

    /// The accepted frames, reduced to what tests compare.
    var delivered: [DeliveredFrame] { get throws { try frames.map(DeliveredFrame.init) } }

    func offer(_ frame: OutboundFrame) -> FrameOffer { offer(frame.text, frame.charge) }

    func offer(_ batch: ObjectBatch) -> (number: Int, FrameOffer) {
        for (number, text) in batch.frames.enumerated() {
            let answer = offer(text, batch.charge)
            if answer != .queued { return (number, answer) }
        }
        return (batch.frames.count, .queued)
    }

    private func offer(_ text: [UInt8], _ charge: Charge?) -> FrameOffer {
        state.withLock { state in
            guard !state.isGone else { return .closed }
            guard state.room > 0 else { return .full }
            state.room -= state.room == .max ? 0 : 1
            state.frames.append(String(decoding: text, as: UTF8.self))
            if state.sendsLater, let charge { state.unsent.append(charge) }
            return .queued
        }
    }

    func finish(_ end: ConnectionEnd) { state.withLock { $0.finished.append(end) } }
    func abort() { state.withLock { $0.aborts += 1 } }
}

extension ClientAccount {
    /// The most that a client may hold.
    static let memoryLimit = Limits().memoryQuota.perClient

    /// Creates the account of the only client.
    static func single(_ limits: Limits = Limits()) -> ClientAccount {
        Accounts(limits, logger: Logger(label: "test")).account(ofAddress: "192.0.2.1")
    }
}

extension OutboundQueue {
    /// Creates an outbound queue that is closed when the test ends; its suite needs ``ClosesOutboundQueues``.
    convenience init(
        _ transport: any FrameTransport,
        of account: ClientAccount = .single(),
        hasOneSubscription: Bool = false
    ) {
        let made = ClosesOutboundQueues.made
        self.init(
            transport,
            account: account,
            workers: made.workers,
            hasOneSubscription: hasOneSubscription
        )
        made.add(self)
    }

    /// Opens a subscription that has begun, but whose client has not got a frame.
    func begun(id: String?, options: SubscriptionOptions = SubscriptionOptions()) -> ClientSubscription {
        open(id: id, options: options, isHeld: false)
    }
}

/// An activity that does nothing.
final class IdleActivity: Activity {
    private static let counts = OperationCounts()

    let operation: any ControlledOperation = Observe(observation: .deadvertise)
    let outcome = ActivityOutcome(OperationKind(verb: .observe, pattern: .deadvertise), counts)
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    func apply(_ permit: Permit) {}
    func refuse(_ problem: Problem) {}
    func end() { onEnd() }
}

extension FeedHub {
    /// Creates a hub without routers, for at most two IO nodes.
    convenience init(
        _ manager: CommunicationManager,
        _ objects: ObjectRegistry,
        _ options: CommunicationOptions,
        resumeWindow: Duration,
        limits: Limits = Made.limits,
        cluster: ClusterCursors? = nil
    ) async {
        let log = Logger(label: "test")
        await self.init(
            manager: manager,
            ioNodes: IoNodeRegistry(options: options, name: "gateway", limit: 2, logger: log),
            routing: RoutingAdmin(manager: manager, routers: [], feed: RoutingFeed()),
            objects: objects,
            resumeWindow: resumeWindow,
            limits: limits,
            sessions: TrafficSessions(feeds: limits[.brokerConnections].total),
            rawSessions: RawSessions(maximum: 1, open: manager.openRawSession),
            workers: ClosesOutboundQueues.made.workers,
            cluster: cluster,
            logger: log
        )
    }
}

/// A frame, reduced to what tests compare.
struct DeliveredFrame: Equatable, CustomStringConvertible {
    enum Content: Equatable {
        case ok, pong, error
        /// The number of the event.
        case event(Int)
        case change(String)
        case response
        case gap(Int?)
        case done(String)
    }

    let id: String?
    let content: Content
    var cursor: FeedCursor?
    /// The number in the object of an event.
    let number: Int?

    init(_ text: String) throws {
        let json = try Payload(Array(text.utf8)).json
        id = json["id"]?.string
        cursor = json["cursor"]?.string.flatMap(FeedCursor.init)
        number = json["data"]?["object"]?["n"]?.number.map { Int($0) }
        switch try #require(json["op"]?.string) {
        case "ok": content = .ok
        case "pong": content = .pong
        case "error": content = .error
        case "response": content = .response
        case "gap": content = .gap(json["dropped"]?.number.map { Int($0) })
        case "done": content = .done(try #require(json["reason"]?.string))
        default:
            if let change = json["change"]?.string {
                content = .change(change)
            } else {
                content = .event(try #require(number))
            }
        }
    }

    var description: String { "\(id ?? "-") \(content)" }

    var event: Int? { if case .event(let number) = content { number } else { nil } }
}

/// Creates events with the keys of objects and the numbers that a test chooses.
enum Made {
    /// Limits with a small replay buffer.
    static var limits: Limits {
        var limits = Limits()
        limits.replayMemory = 1 << 20
        return limits
    }

    static func objectId(_ key: Int) -> String {
        let digits = String(key)
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
    }

    static func object(_ key: Int, _ number: Int, padding: Int = 0) -> String {
        let padding = padding == 0 ? "" : #","p":"\#(String(repeating: "p", count: padding))""#
        return
            #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(objectId(key))","name":"o","n":\#(number)\#(padding)}"#
    }

    /// Returns an event with the object of a key.
    static func event(_ key: Int, _ number: Int, padding: Int = 0) throws -> ObservedEvent {
        try channel(#"{"object":\#(object(key, number, padding: padding))}"#)
    }

    static func channel(_ payload: String) throws -> ObservedEvent {
        ObservedEvent(
            try ChannelEvent(channelId: "c", payload: Payload(Array(payload.utf8))),
            .objects,
            .channel(WireName("c"))
        )
    }

    static func alive(_ key: Int, _ number: Int, type: String = "t") -> AliveObject {
        AliveObject(
            objectId: CoatyUUID(wire: objectId(key)),
            coreType: .CoatyObject,
            objectType: WireName(type),
            parentObjectId: nil,
            owner: CoatyUUID(wire: "owner"),
            since: 0,
            changed: 0,
            position: 0,
            bytes: Array(object(key, number).utf8)
        )
    }

    static func change(_ kind: ObjectChange.Kind, _ key: Int, _ number: Int = 0, from: Int? = nil) throws
        -> ObservedEvent
    {
        let previous = from.map { alive(key, $0) }
        return try #require(ObservedEvent(ObjectChange(kind: kind, object: alive(key, number), previous: previous)))
    }

    static func item(_ event: ObservedEvent, at position: UInt64 = 1) -> QueuedItem {
        let record = EventRecord(.event(event), cursor: FeedCursor(epoch: 1, position: position))
        return .event(
            QueuedEvent(
                cursor: record.cursor,
                change: event.change?.kind,
                key: event.key,
                request: nil,
                body: EventText(event: event).body()
            )
        )
    }

    static func condition(_ text: String) throws -> ClientCondition {
        try ClientCondition(Payload(Array(text.utf8)).json, limits: Limits())
    }

    /// Returns the size, in bytes, of the record of an event with a two-digit number. Sizes of equal records differ by
    /// some bytes.
    static func recordSize() throws -> Int { EventRecord(.event(try event(1, 10)), cursor: nil).size }

    /// Returns a replay buffer for this many events with two-digit numbers.
    static func replayBuffer(of events: Int) throws -> ReplayBuffer {
        ReplayBuffer(limit: try recordSize() * events + recordSize() / 2)
    }

    static func options(_ change: (inout SubscriptionOptions) throws -> Void = { _ in }) rethrows -> SubscriptionOptions
    {
        var options = SubscriptionOptions()
        try change(&options)
        return options
    }
}

extension ClientSubscription {
    /// Takes an event as if from a feed.
    func take(_ event: ObservedEvent) {
        take(EventRecord(.event(event), cursor: FeedCursor(epoch: 1, position: 1)))
    }

    /// Takes a gap as if from a feed.
    func takeGap() { take(EventRecord(.gap, cursor: FeedCursor(epoch: 1, position: 1))) }

    func take(_ record: EventRecord) {
        if let item = item(record) { take(item, seenBy: currentView) }
    }
}

extension OutboundFrame {
    /// The whole frame.
    var text: [UInt8] { Array(parts.joined()) }
}

extension FeedCounts {
    convenience init(memory: Int = Limits().feedMemory, logger: Logger) {
        self.init(memory: memory, maximumEvents: Limits().waitingEvents, logger: logger)
    }
}

extension Feed {
    convenience init(isResumable: Bool, memory: ReplayBuffer, places: FeedPlaces? = nil) {
        self.init(
            isResumable: isResumable,
            memory: memory,
            workers: ClosesOutboundQueues.made.workers,
            counts: FeedCounts(logger: Logger(label: "test")),
            places: places
        )
    }
}

/// Waits until the workers of the test have nothing to do.
func settled() async throws {
    try await untilTrue("the workers are idle") { ClosesOutboundQueues.made.workers.isIdle }
}

/// Waits until a condition is true; fails after 60 seconds.
func untilTrue(_ what: String, _ condition: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try !condition() {
        try #require(.now < deadline, "in vain: \(what)")
        try await Task.sleep(for: .milliseconds(1))
    }
}
