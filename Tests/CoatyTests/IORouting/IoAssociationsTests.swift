import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Subscriptions of an actor.
@Suite(.exclusive) struct IoAssociationsTests {
    private let subscribed = Recorder<String>()
    private let cancelled = Recorder<String>()

    private func take(_ source: CoatyUUID, _ route: String?, in associations: IoAssociations) throws {
        let event = try AssociateEvent.with(
            ioContextName: "ctx",
            ioSourceId: source,
            ioActorId: "a",
            associatingRoute: route
        )
        associations.take(
            event.data,
            isRoute: { _ in true },
            subscribe: { [subscribed, cancelled] route, _, _ in
                subscribed.append(route)
                return Subscription(onCancel: { cancelled.append(route) })
            },
            refuse: { Issue.record("refused \($0)") }
        )
    }

    @Test func routeIsSubscribedOnceWhileInUse() throws {
        let associations = try IoAssociations(ioNodes: [IoNode("n", actors: [IoActor("a")])])
        for _ in 0..<3 { try take("s1", "shared", in: associations) }
        try take("s2", "shared", in: associations)
        #expect(subscribed.values == ["shared"] && cancelled.values.isEmpty)
        try take("s1", "own", in: associations)
        #expect(subscribed.values == ["shared", "own"] && cancelled.values.isEmpty)
        try take("s3", nil, in: associations)
        #expect(cancelled.values.isEmpty)
        for _ in 0..<2 { try take("s2", nil, in: associations) }
        #expect(cancelled.values == ["shared"])
        try take("s1", "shared", in: associations)
        #expect(subscribed.values == ["shared", "own", "shared"] && cancelled.values == ["shared", "own"])
        associations.endAll()
        #expect(cancelled.values == ["shared", "own", "shared"])
    }
}
