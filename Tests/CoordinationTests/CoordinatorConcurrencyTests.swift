import Coordination
import Synchronization
import TestSupport
import Testing

@Suite(.exclusive, .timeLimit(.minutes(2)))
struct CoordinatorConcurrencyTests {
    /// ``Recorder`` reports overlapping calls; the journal shows whether each call was legal.
    @Test func transitionsFromManyTasksNeverInterleave() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<16 {
                group.addTask {
                    for round in 0..<25 {
                        switch (task + round) % 4 {
                        case 0: try await root.start()
                        case 1: await root.pause()
                        case 2: await root.resume()
                        default: await root.stop()
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        await root.stop()
        let legal = [
            "": ["start root"], "start root": ["pause root", "stop root"], "stop root": ["start root"],
            "pause root": ["resume root", "stop root"], "resume root": ["pause root", "stop root"],
        ]
        var previous = ""
        for line in journal.lines {
            #expect(legal[previous]?.contains(line) == true, "\(line) after \(previous)")
            previous = line
        }
        #expect(previous == "stop root")
    }

    @Test func treeSurvivesTransitionsOnAllItsLevels() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let children = (0..<4).map { coordinator("child\($0)", journal) }
        let grandchildren = (0..<4).map { coordinator("grandchild\($0)", journal) }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<12 {
                group.addTask {
                    for round in 0..<40 {
                        let child = children[(task + round) % 4]
                        let grandchild = grandchildren[(task + round) % 4]
                        // The interleaving determines which of these are refused, but not that they end, nor the final
                        // states of the tree.
                        switch (task * 7 + round) % 8 {
                        case 0: try? await root.start()
                        case 1: try? await root.start(child)
                        case 2: try? await child.start(grandchild)
                        case 3: await root.stop(child)
                        case 4: await child.pause()
                        case 5: await grandchild.stop()
                        case 6: await root.pause()
                        default: await (round % 5 == 0 ? root.stop() : root.resume())
                        }
                    }
                }
            }
        }
        await root.stop()
        let all = [root] + children + grandchildren
        #expect(all.allSatisfy { $0.state == .inactive && $0.children.isEmpty })
        for coordinator in all {
            let starts = journal.lines.count { $0 == "start \(coordinator.name)" }
            let stops = journal.lines.count { $0 == "stop \(coordinator.name)" }
            #expect(starts == stops, "\(coordinator.name)")
        }
    }

    @Test func stopWaitsForTheStartBeforeIt() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let (reached, reachedContinuation) = AsyncStream.makeStream(of: Void.self)
        let (release, releaseContinuation) = AsyncStream.makeStream(of: Void.self)
        root.component.on("start") {
            reachedContinuation.finish()
            for await _ in release {}
            journal.write("started")
        }
        let start = Task { try await root.start() }
        for await _ in reached {}
        let stop = Task { await root.stop() }
        await Task.yield()
        #expect(root.state == .inactive)
        releaseContinuation.finish()
        try await start.value
        await stop.value
        #expect(journal.lines == ["start root", "started", "stop root"])
    }

    @Test func treeStopByAComponentTakesEffectAfterwards() async throws {
        let tree = try await Tree()
        let stopped = Waiter()
        tree.root.observe { [unowned root = tree.root] change in if change.coordinator === root { stopped.signal() } }
        let child = coordinator("child", tree.journal)
        child.component.on("start") { [unowned root = tree.root] in
            await root.stop()
            tree.journal.write("asked")
        }
        let lines = try await tree.lines {
            try await tree.root.start(child)
            await stopped.wait()
        }
        #expect(lines.starts(with: ["start child", "asked", "stop child"]))
        #expect(child.state == .inactive)
        #expect(tree.states == Array(repeating: .inactive, count: 5))
    }

    @Test func selfStopOfAComponentTakesEffectAfterwards() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let stopped = Waiter()
        root.observe { if $0.to == .inactive { stopped.signal() } }
        root.component.on("start") { [unowned root] in
            await root.pause()
            await root.stop()
            journal.write("asked")
        }
        try await root.start()
        await stopped.wait()
        #expect(journal.lines == ["start root", "asked", "pause root", "stop root"])
    }

    /// The request is made in the parent's tree. When its turn comes, the child has left the tree and is starting.
    @Test func requestFollowsAChildThatLeavesTheTree() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let child = coordinator("child", journal)
        try await root.start()
        try await root.start(child)

        let starting = Waiter()
        let release = Waiter()
        let stoppedAgain = Waiter()
        child.component.on("start") {
            starting.signal()
            await release.wait()
        }
        child.component.on("stop") { [unowned child] in
            child.component.on("stop") { stoppedAgain.signal() }
            await child.stop()
        }
        root.component.on("stop") {
            Task.detached { [weak child] in try await child?.start() }
            await starting.wait()
        }
        await root.stop()
        // This stop is queued after the request. When it returns, the request has had its turn in this tree.
        await root.stop()
        release.signal()
        await stoppedAgain.wait()
        #expect(
            journal.lines == ["start root", "start child", "stop child", "stop root", "start child", "stop child"]
        )
    }

    @Test func startFromWithinIsRefused() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        root.component.on("stop") { [unowned root] in
            await #expect(throws: CoordinatorError.startedFromWithin(name: "root")) { try await root.start() }
        }
        try await root.start()
        await root.stop()
        #expect(journal.lines == ["start root", "stop root"])
    }

    @Test func componentStartsChildrenConcurrently() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let children = (0..<8).map { coordinator("child\($0)", journal) }
        root.component.on("start") { [unowned root] in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for child in children { group.addTask { try await root.start(child) } }
                try await group.waitForAll()
            }
        }
        try await root.start()
        #expect(Set(root.children.map(\.name)) == Set(children.map(\.name)))
        await root.stop()
        #expect(children.allSatisfy { $0.state == .inactive })
    }

    /// The task is created during the transition, and outlives it.
    @Test func taskOfAComponentWaitsForTheTransitionAfterItsEnd() async throws {
        let journal = Journal()
        let root = coordinator("root", journal)
        let (release, releaseContinuation) = AsyncStream.makeStream(of: Void.self)
        let task = Mutex<Task<Void, Never>?>(nil)
        root.component.on("start") { [unowned root] in
            let created = Task {
                for await _ in release {}
                await root.stop()
                journal.write("returned")
            }
            task.withLock { $0 = created }
        }
        try await root.start()
        releaseContinuation.finish()
        await task.withLock { $0 }?.value
        #expect(journal.lines == ["start root", "stop root", "returned"])
    }

    @Test func observerMayStopTheTreeFromATask() async throws {
        let tree = try await Tree()
        let stopped = Waiter()
        tree.root.observe { [unowned root = tree.root] change in
            if change.to == .paused {
                Task {
                    await root.stop()
                    stopped.signal()
                }
            }
        }
        await tree.b.pause()
        await stopped.wait()
        #expect(tree.states == Array(repeating: .inactive, count: 5))
    }
}

/// Waits for a signal; the suite's time limit bounds the wait.
private final class Waiter: Sendable {
    private let stream = AsyncStream.makeStream(of: Void.self)

    func signal() { stream.continuation.finish() }
    func wait() async { for await _ in stream.stream {} }
}
