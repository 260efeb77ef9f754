import Coordination
import TestSupport
import Testing

@Suite(.exclusive, .timeLimit(.minutes(1)))
struct ObservationTests {
    private static func arrow(_ change: CoordinatorChange) -> String {
        "\(change.coordinator.name) \(change.from)>\(change.to)"
    }

    @Test func rootObserverSeesTheWholeTreeInOrder() async throws {
        let tree = try await Tree()
        let seen = Journal()
        tree.root.observe { seen.write(Self.arrow($0)) }
        await tree.a.pause()
        await tree.a.resume()
        await tree.root.stop()
        #expect(
            seen.lines == [
                "a2 active>paused", "a1 active>paused", "a active>paused",
                "a paused>active", "a1 paused>active", "a2 paused>active",
                "b active>inactive", "a2 active>inactive", "a1 active>inactive", "a active>inactive",
                "root active>inactive",
            ]
        )
    }

    @Test func observersAreCalledBottomUpInOrder() async throws {
        let tree = try await Tree()
        let seen = Journal()
        tree.root.observe { _ in seen.write("root") }
        tree.a.observe { _ in seen.write("a first") }
        tree.a.observe { _ in seen.write("a second") }
        tree.b.observe { _ in seen.write("b") }
        tree.a1.observe { _ in seen.write("a1") }
        await tree.a1.stop()
        #expect(seen.lines == ["a1", "a first", "a second", "root"])
        await tree.root.stop()
    }

    @Test func onlySuccessfulStartsAreReported() async throws {
        let journal = Journal()
        let seen = Journal()
        let root = coordinator("root", journal)
        let good = coordinator("good", journal)
        let bad = coordinator("bad", journal)
        bad.component.on("start") { throw Refusal(by: "bad") }
        root.observe { seen.write(Self.arrow($0)) }
        try await root.start()
        try await root.start(good)
        await #expect(throws: Refusal.self) { try await root.start(bad) }
        #expect(seen.lines == ["root inactive>active", "good inactive>active"])
        await root.stop()
    }

    @Test func observersSeeUpdatedStateAndChildren() async throws {
        let tree = try await Tree()
        let seen = Journal()
        tree.root.observe { [unowned root = tree.root] change in
            seen.write("\(change.coordinator.state == change.to) \(root.children.map(\.name))")
        }
        await tree.b.stop()
        #expect(seen.lines == [#"true ["a"]"#])
        await tree.root.stop()
    }

    @Test func cancelledObserverIsNotCalled() async throws {
        let tree = try await Tree()
        let seen = Journal()
        let observation = tree.root.observe { seen.write("cancelled \($0.coordinator.name)") }
        tree.root.observe { seen.write("kept \($0.coordinator.name)") }
        await tree.b.pause()
        observation.cancel()
        await tree.b.resume()
        #expect(seen.lines == ["cancelled b", "kept b", "kept b"])
        await tree.root.stop()
    }

    @Test func childThatLeftIsNoLongerReported() async throws {
        let tree = try await Tree()
        await tree.root.stop(tree.b)
        let seen = Journal()
        tree.root.observe { seen.write($0.coordinator.name) }
        try await tree.b.start()
        await tree.b.stop()
        #expect(seen.lines.isEmpty)
        await tree.root.stop()
    }
}
