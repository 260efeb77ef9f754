import Coordination
import TestSupport
import Testing

@Suite(.exclusive, .timeLimit(.minutes(1)))
struct CoordinatorTreeTests {
    @Test func treeStartsParentFirstAndStopsInReverse() async throws {
        let tree = try await Tree()
        #expect(tree.journal.lines == ["start root", "start a", "start a1", "start a2", "start b"])
        #expect(tree.states == Array(repeating: .active, count: 5))
        #expect(tree.root.children.map(\.name) == ["a", "b"])

        let stopped = await tree.lines { await tree.root.stop() }
        #expect(stopped == ["stop b", "stop a2", "stop a1", "stop a", "stop root"])
        #expect(tree.states == Array(repeating: .inactive, count: 5))
        #expect(tree.root.children.isEmpty && tree.a.children.isEmpty)
    }

    @Test func illegalTransitionsDoNothing() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        await root.stop()
        await root.pause()
        await root.resume()
        #expect(journal.lines.isEmpty && root.state == .inactive)

        try await root.start()
        try await root.start()
        await root.resume()
        #expect(journal.lines == ["start root"] && root.state == .active)

        await root.pause()
        await root.pause()
        try await root.start()
        #expect(journal.lines == ["start root", "pause root"] && root.state == .paused)

        await root.stop()
        await root.resume()
        #expect(journal.lines == ["start root", "pause root", "stop root"] && root.state == .inactive)
    }

    @Test func stoppedTreeStartsAgain() async throws {
        let tree = try await Tree()
        await tree.root.stop()
        let again = try await tree.lines {
            try await tree.root.start()
            try await tree.root.start(tree.b)
        }
        #expect(again == ["start root", "start b"])
        #expect(tree.states == [.active, .inactive, .inactive, .inactive, .active])
        await tree.root.stop()
    }

    @Test func parentResumesOnlyWhatItPaused() async throws {
        let tree = try await Tree()
        await tree.a1.pause()
        let paused = await tree.lines { await tree.root.pause() }
        #expect(paused == ["pause b", "pause a2", "pause a", "pause root"])
        #expect(tree.states == Array(repeating: .paused, count: 5))

        let refused = await tree.lines {
            await tree.a.resume()
            await tree.a1.resume()
        }
        #expect(refused.isEmpty, "nothing is active below a paused parent")

        let resumed = await tree.lines { await tree.root.resume() }
        #expect(resumed == ["resume root", "resume a", "resume a2", "resume b"])
        #expect(tree.states == [.active, .active, .paused, .active, .active])

        await tree.a1.resume()
        #expect(tree.a1.state == .active)
        await tree.root.stop()
    }

    @Test func pausedTreeStops() async throws {
        let tree = try await Tree()
        await tree.root.pause()
        let stopped = await tree.lines { await tree.root.stop() }
        #expect(stopped == ["stop b", "stop a2", "stop a1", "stop a", "stop root"])
    }

    @Test func childStopsThroughItsParentOrByItself() async throws {
        let tree = try await Tree()
        let stopped = await tree.lines { await tree.root.stop(tree.a) }
        #expect(stopped == ["stop a2", "stop a1", "stop a"])
        #expect(tree.root.children.map(\.name) == ["b"])

        await tree.b.stop()
        #expect(tree.root.children.isEmpty && tree.root.state == .active)

        let nothing = await tree.lines { await tree.root.stop(tree.b) }
        #expect(nothing.isEmpty)
        await tree.root.stop()
    }

    @Test func stoppingAChildOfAnotherParentDoesNothing() async throws {
        let tree = try await Tree()
        await tree.root.stop(tree.a1)
        await tree.b.stop(tree.a1)
        #expect(tree.a1.state == .active)
        await tree.root.stop()
    }

    @Test func invalidChildIsRefused() async throws {
        let tree = try await Tree()
        let inactive = coordinator("inactive", tree.journal)
        let child = coordinator("child", tree.journal)
        await #expect(throws: CoordinatorError.parentNotActive(parent: "inactive", child: "child")) {
            try await inactive.start(child)
        }
        await #expect(throws: CoordinatorError.childInUse(child: "a1")) { try await tree.b.start(tree.a1) }
        await #expect(throws: CoordinatorError.childInUse(child: "root")) { try await tree.a1.start(tree.root) }
        await #expect(throws: CoordinatorError.childInUse(child: "root")) { try await tree.root.start(tree.root) }
        try await child.start()
        await #expect(throws: CoordinatorError.childInUse(child: "child")) { try await tree.b.start(child) }
        await child.stop()

        let again = try await tree.lines { try await tree.root.start(tree.a) }
        #expect(again.isEmpty, "a running child is not started again")

        await tree.root.pause()
        await #expect(throws: CoordinatorError.parentNotActive(parent: "root", child: "child")) {
            try await tree.root.start(child)
        }
        #expect(child.state == .inactive)
        await tree.root.stop()
    }

    @Test func failingChildLeavesItsParentAsItWas() async throws {
        let tree = try await Tree()
        let child = coordinator("child", tree.journal)
        child.component.on("start") { throw Refusal(by: "child") }
        await #expect(throws: Refusal(by: "child")) { try await tree.root.start(child) }
        #expect(child.state == .inactive)
        #expect(tree.root.children.map(\.name) == ["a", "b"] && tree.root.state == .active)
        await tree.root.stop()
    }

    @Test func failedStartStopsStartedComponents() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let a = coordinator("a", journal)
        let a1 = coordinator("a1", journal)
        let b = coordinator("b", journal)
        let c = coordinator("c", journal)
        a.component.on("start") { [unowned a] in try await a.start(a1) }
        c.component.on("start") { throw Refusal(by: "c") }
        root.component.on("start") { [unowned root] in
            try await root.start(a)
            try await root.start(b)
            try await root.start(c)
        }
        await #expect(throws: Refusal(by: "c")) { try await root.start() }
        #expect(
            journal.lines == [
                "start root", "start a", "start a1", "start b", "start c", "stop b", "stop a1", "stop a",
            ]
        )
        #expect([root, a, a1, b, c].allSatisfy { $0.state == .inactive && $0.children.isEmpty })

        c.component.on("start") {}
        try await root.start()
        #expect([root, a, a1, b, c].allSatisfy { $0.state == .active })
        await root.stop()
    }
}
