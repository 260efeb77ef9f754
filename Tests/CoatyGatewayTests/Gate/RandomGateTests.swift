import Coaty
import Foundation
import ProblemDetails
import TestSupport
import Testing

@testable import Base
@testable import CoatyTestSupport
@testable import Feeds
@testable import Gate

/// The gate, compared with the reference policy for random policies, principals, operations and events, with real
/// feeds.
///
/// A case is the decision about an operation, or an event that is delivered to a subscription or not: live, in a
/// snapshot, after resumption, or as traffic. `COATY_ACCESS_CASES` sets the number of cases.
@Suite(.exclusive, .closesOutboundQueues) struct RandomGateTests {
    private static let cases = ProcessInfo.processInfo.environment["COATY_ACCESS_CASES"].flatMap(Int.init) ?? 100_000

    @Test func nothingLeaksAndNothingIsMissing() async throws {
        var tally = GateTally()
        var seed: UInt64 = 0
        while tally.total < Self.cases {
            seed += 1
            try await GateRound(seed: seed).run(&tally)
        }
        print("gate: \(tally)")
        for count in [tally.allowed, tally.denied, tally.seen, tally.hidden] {
            #expect(count > tally.total / 100, "\(tally)")
        }
    }
}

/// The number of cases with each result.
struct GateTally: CustomStringConvertible {
    var allowed = 0
    var denied = 0
    var seen = 0
    var hidden = 0
    var total: Int { allowed + denied + seen + hidden }

    var description: String {
        "\(total) cases: operations \(allowed) allowed, \(denied) denied; events \(seen) seen, \(hidden) hidden"
    }
}

/// A policy with events and operations of its principals.
struct GateRound {
    private static let subscriptionsPerToken = 12
    private static let events = 60
    private let world: GateWorld

    init(seed: UInt64) throws { world = try GateWorld(seed: seed) }

    func run(_ tally: inout GateTally) async throws {
        var world = world
        let scene = try await GateScene(world.policy)
        scene.start()
        try await untilTrue("the gateway is online") { scene.manager.isOnline }
        for _ in 0..<10 { world.advertise(on: scene.broker) }
        let objects = world.objects
        try await untilTrue("the objects are known in their last versions") {
            objects.allSatisfy { id, object in
                scene.objects.object(CoatyUUID(wire: id))?.json?["k"]?.number.map { AnyCodable.integer(Int64($0)) }
                    == object["k"]
            }
        }
        decideOperations(&world, scene, &tally)
        var subscriptions: [ObservedSubscription] = []
        for token in world.tokens {
            for _ in 0..<Self.subscriptionsPerToken {
                if let subscription = try subscribe(world.observation(), token, &world, scene, &tally) {
                    subscriptions.append(subscription)
                }
            }
        }
        let watcher = ObservedSubscription(.channel(WireName("end")), "admin")
        try watcher.start(scene)
        let traffic = ObservedSubscription(.traffic(Set(CommunicationEventType.allCases)), "admin")
        try traffic.start(scene)
        try await untilTrue("all have begun") {
            (subscriptions + [watcher, traffic]).allSatisfy { !$0.transport.frames.isEmpty }
        }
        for subscription in subscriptions { try await subscription.checkSnapshot(world, &tally) }
        let snapshots = subscriptions.map { $0.seen.count }
        for _ in 0..<Self.events { world.publishEvent(on: scene.broker) }
        scene.broker.publish(
            topic: "coaty/3/-/CHN:end/\(CoatyUUID())",
            payload: Array(#"{"object":\#(Made.object(1, 1))}"#.utf8)
        )
        try await untilTrue("the last event has come") {
            watcher.transport.frames.count > 1 && traffic.transport.frames.last?.contains(#""channelId":"end""#) == true
        }
        try await settled()
        for (subscription, skipped) in zip(subscriptions, snapshots) {
            subscription.check(world, skipping: skipped, &tally)
            try await checkResumption(of: subscription, world, scene, &tally)
        }
        for subscription in subscriptions + [watcher, traffic] { subscription.stop() }
        await scene.stop()
    }

    private func subscribe(
        _ observation: Observation,
        _ token: GateWorld.Token,
        _ world: inout GateWorld,
        _ scene: GateScene,
        _ tally: inout GateTally
    ) throws -> ObservedSubscription? {
        let subscription = ObservedSubscription(observation, token.name)
        let isAdmitted = world.admits(observation, token)
        do {
            try subscription.start(scene)
            #expect(isAdmitted, "\(token.name) must not observe \(observation): \(world.text)")
            tally.allowed += 1
            return subscription
        } catch let problem as Problem {
            #expect(!isAdmitted, "\(token.name) may observe \(observation): \(world.text)")
            #expect(problem.status == 403)
            tally.denied += 1
            return nil
        }
    }

    /// A client that resumes gets the same events as one that stayed connected.
    private func checkResumption(
        of subscription: ObservedSubscription,
        _ world: GateWorld,
        _ scene: GateScene,
        _ tally: inout GateTally
    ) async throws {
        let frames = try subscription.transport.frames.map { try JSONView(text: $0) }
        guard let index = frames.firstIndex(where: { $0["op"]?.string == "event" && $0["cursor"] != nil }) else {
            return
        }
        let later = ObservedSubscription(subscription.observation, subscription.token)
        try later.start(scene, since: frames[index]["cursor"]?.string.flatMap(FeedCursor.init))
        let expected = subscription.seen.dropFirst(frames[...index].compactMap(GateWorld.name).count)
        try await untilTrue("\(subscription.token) gets the rest of \(subscription.observation)") {
            later.seen.count >= expected.count
        }
        #expect(later.seen == Array(expected))
        tally.seen += expected.count
        later.stop()
    }

    private func decideOperations(_ world: inout GateWorld, _ scene: GateScene, _ tally: inout GateTally) {
        for token in world.tokens {
            for _ in 0..<40 {
                let (operation, isAllowed, what) = world.operation()
                let expected = isAllowed(token)
                let problem = operation(scene.gate, .token(token.name))
                #expect((problem == nil) == expected, "\(token.name) \(what): \(world.text)")
                if problem == nil { tally.allowed += 1 } else { tally.denied += 1 }
            }
        }
    }
}

/// A subscription of a token, with the received events.
final class ObservedSubscription {
    let observation: Observation
    let token: String
    let transport = SteeredTransport()
    private let outbound: OutboundQueue
    private var activity: SubscriptionActivity?

    init(_ observation: Observation, _ token: String) {
        self.observation = observation
        self.token = token
        outbound = OutboundQueue(transport)
    }

    func start(_ scene: GateScene, since: FeedCursor? = nil) throws {
        let activity = try scene.gate.open(Observe(observation: observation), by: .token(token))
        var options = SubscriptionOptions()
        options.since = since.map(ClientCursor.plain)
        options.buffer = Limits().buffer
        activity.start(options, id: "s", on: outbound)
        self.activity = activity
    }

    func stop() { activity?.end() }

    /// The received events, by their names in ``GateWorld``.
    var seen: [String] { transport.frames.compactMap { try? JSONView(text: $0) }.compactMap(GateWorld.name) }

    func checkSnapshot(_ world: GateWorld, _ tally: inout GateTally) async throws {
        guard case .objects = observation else { return }
        let expected = world.snapshot(observation, token)
        try await untilTrue("\(token) gets the snapshot") { seen.count >= expected.count }
        #expect(Set(seen) == expected, "snapshot for \(token): \(observation) \(world.text)")
        tally.seen += expected.count
        tally.hidden += world.objects.count - expected.count
    }

    func check(_ world: GateWorld, skipping skipped: Int, _ tally: inout GateTally) {
        let expected = world.expected(observation, token)
        let seen = Array(seen.dropFirst(skipped))
        #expect(seen == expected.seen, "\(token) \(observation): \(world.text)")
        tally.seen += expected.seen.count
        tally.hidden += expected.hidden
    }
}
