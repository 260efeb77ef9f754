import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Evaluations of several hundred thousand pairs.
@ControllerActor @Suite(.exclusive, .timeLimit(.minutes(2))) struct LongEvaluationTests {
    /// The code that decides on pairs. An actor is associated if its name is the operating state of the context.
    enum Decider: CaseIterable {
        case filter, closure, override
    }

    /// A router that records steps of other tasks while it evaluates an Update event.
    private class ObservedRouter: RuleBasedIoRouter {
        let progress = EvaluationProgress()

        override func shouldUpdateIoContext(by event: UpdateEvent) -> Bool { progress.begin() }

        override func onIoContextUpdated(
            by event: UpdateEvent,
            from previous: IoContext,
            changes: IoAssociationChanges
        ) { progress.end() }
    }

    /// The same, with a method override that decides.
    private final class OverridingRouter: IoRouter {
        let progress = EvaluationProgress()

        override func shouldAssociate(
            source: IoSource,
            sourceNode: IoNode,
            actor: IoActor,
            actorNode: IoNode
        ) -> Bool { ioContext?.custom["operatingState"] == .string(actor.name) }

        override func shouldUpdateIoContext(by event: UpdateEvent) -> Bool { progress.begin() }

        override func onIoContextUpdated(
            by event: UpdateEvent,
            from previous: IoContext,
            changes: IoAssociationChanges
        ) { progress.end() }
    }

    private typealias Scene = RouterScene<ObservedRouter>

    private nonisolated static let sourceCount = 500
    private nonisolated static let actorCount = 400

    private static func filterRules() throws -> [IoAssociationRule] {
        let text = #"[{"name": "r", "condition": ["actor.name", ["Equals", {"property": "context.operatingState"}]]}]"#
        return try IoAssociationRule.rules(JSONDocument(Array(text.utf8)).root)
    }

    /// Returns rules with a closure.
    ///
    /// - Parameter onCall: called for each pair.
    private static func closureRules(onCall: @escaping @ControllerActor () -> Void = {}) -> [IoAssociationRule] {
        [
            IoAssociationRule(name: "r") { _, _, actor, _, context, _ in
                onCall()
                return context.custom["operatingState"] == .string(actor.name)
            }
        ]
    }

    /// Adds points with many pairs, 200,000 by default, none of which is associated.
    private static func populate<Router>(
        _ scene: RouterScene<Router>,
        sourceCount: Int = Self.sourceCount
    ) async throws {
        try scene.advertise(
            IoNode("n1", sources: (0..<sourceCount).map { IoSource("s\($0)") }),
            IoNode("n2", actors: (0..<actorCount).map { IoActor("a\($0)") })
        )
        try await scene.update(.test())
    }

    @Test(arguments: Decider.allCases) func controllersRunWhileARouterEvaluates(decider: Decider) async throws {
        switch decider {
        case .filter: try await countTicks(Scene(options: ["rules": Self.filterRules()])) { $0.progress }
        case .closure: try await countTicks(Scene(options: ["rules": Self.closureRules()])) { $0.progress }
        case .override: try await countTicks(RouterScene<OverridingRouter>()) { $0.progress }
        }
    }

    private func countTicks<Router>(
        _ scene: RouterScene<Router>,
        _ progress: (Router) -> EvaluationProgress
    ) async throws {
        try await Self.populate(scene)
        let progress = progress(scene.router)
        let ticking = Task {
            while !Task.isCancelled {
                progress.step()
                // Yields the processor to other tasks.
                try await Task.sleep(for: .microseconds(100))
            }
        }
        try await scene.update(.test(state: "a7"))
        ticking.cancel()
        #expect(scene.router.associations.count == Self.sourceCount)
        print("steps of another task on the ControllerActor:", progress.stepsWhileEvaluating)
        #expect(try #require(progress.stepsWhileEvaluating.last) > 100)
        await scene.end()
    }

    @Test func otherRoutersAndPreviewsRunWhileARouterEvaluates() async throws {
        let scene = try await Scene(options: ["rules": Self.filterRules()])
        let other = try await RouterScene<BasicIoRouter>(context: .test(name: "other", id: "other-id"))
        try await Self.populate(scene)
        let progress = scene.router.progress
        let updating = Task { try await scene.update(.test(state: "a7")) }
        while !progress.isEvaluating { await Task.yield() }
        let previewing = Task {
            var count = 0
            while progress.isEvaluating {
                let changes = try await scene.router.preview(rules: [])
                if progress.isEvaluating, changes.isEmpty { count += 1 }
            }
            return count
        }
        var updates = 0
        while progress.isEvaluating {
            try await other.update(.test(name: "other", id: "other-id"))
            if progress.isEvaluating { updates += 1 }
        }
        try await updating.value
        let previews = try await previewing.value
        print("while a router evaluates: updates of another router", updates, "previews", previews)
        #expect(updates > 0 && previews > 0)
        await scene.end()
        await other.end()
    }

    @Test func changesDuringAnEvaluationAreAppliedAfterwardsInOrder() async throws {
        let scene = try await Scene(options: ["rules": Self.filterRules()])
        let sourceCount = 100
        try await Self.populate(scene, sourceCount: sourceCount)
        let before = scene.broker.published.count
        let progress = scene.router.progress
        let first = Task { try await scene.update(.test(state: "a7")) }
        while !progress.isEvaluating { await Task.yield() }
        try scene.deadvertise("n1")
        try scene.advertise(IoNode("n3", sources: [IoSource("late")]))
        let second = Task { try await scene.update(.test(state: "a8")) }
        let evaluation = Task { await scene.router.evaluate() }
        try await first.value
        try await second.value
        #expect(await evaluation.value.isEmpty, "all pairs had been decided")
        #expect(scene.router.associations == [IoAssociation(ioSourceId: "late", ioActorId: "a8")])
        let events = scene.broker.published[before...].compactMap { message -> String? in
            guard message.topic.contains("/\(scene.id)"), !message.topic.contains("/DSC/") else { return nil }
            let event = message.topic.split(separator: "/")[3]
            guard event.hasPrefix("ASC") else { return String(event.prefix(3)) }
            return String(decoding: message.payload, as: UTF8.self).contains("associatingRoute") ? "+" : "-"
        }
        let associated = Array(repeating: "+", count: sourceCount)
        let dissolved = Array(repeating: "-", count: sourceCount)
        #expect(
            events == ["ADV", "ADV"] + associated + ["CPL"] + dissolved + ["+"] + ["ADV", "ADV", "-", "+", "CPL"]
        )
        await scene.end()
    }

    @Test func stopEndsEvaluationAndDissolvesPublishedAssociations() async throws {
        let calls = EvaluationProgress()
        let scene = try await Scene(options: ["rules": Self.closureRules { calls.step() }])
        try await Self.populate(scene)
        try await scene.update(.test(state: "a7"))
        #expect(scene.router.associations.count == Self.sourceCount)
        let evaluations = scene.router.progress.stepsWhileEvaluating.count
        let before = scene.broker.published.count
        let update = try scene.others.publish(UpdateEvent.with(object: IoContext.test(state: "a8"))) { _ in }
        while !scene.router.progress.isEvaluating { await Task.yield() }
        let start = calls.steps
        while calls.steps == start { await Task.yield() }
        let evaluation = Task { await scene.router.evaluate() }
        await scene.container.shutdown()
        #expect(calls.steps - start < Self.sourceCount * Self.actorCount / 2)
        print("pairs decided before the stop:", calls.steps - start)
        #expect(await evaluation.value.isEmpty)
        #expect(scene.router.progress.stepsWhileEvaluating.count == evaluations, "the update was not applied")
        #expect(scene.router.associations.isEmpty)
        let events = scene.broker.published[before...].filter { $0.topic.contains("/\(scene.id)") }
        let dissolved = events.filter { $0.topic.contains("/ASC:") }
        #expect(dissolved.allSatisfy { !String(decoding: $0.payload, as: UTF8.self).contains("associatingRoute") })
        #expect(dissolved.allSatisfy { String(decoding: $0.payload, as: UTF8.self).contains(#""a7""#) })
        #expect(Set(dissolved.map(\.payload)).count == Self.sourceCount && dissolved.count == Self.sourceCount)
        #expect(!events.contains { $0.topic.contains("/CPL/") })
        #expect(events.last?.topic.contains("/DAD/") ?? false)
        update.cancel()
        await scene.others.stop()
    }
}

/// Counts the steps of another task while a router evaluates.
@ControllerActor private final class EvaluationProgress {
    private(set) var steps = 0
    private(set) var isEvaluating = false
    private(set) var stepsWhileEvaluating: [Int] = []
    private var stepsAtStart = 0

    nonisolated init() {}

    func step() { steps += 1 }

    func begin() -> Bool {
        (stepsAtStart, isEvaluating) = (steps, true)
        return true
    }

    func end() {
        isEvaluating = false
        stepsWhileEvaluating.append(steps - stepsAtStart)
    }
}
