import Coordination
import Synchronization
import TestSupport
import Testing

/// The behavior described in the CoordinatorKit document, with its names.
@Suite(.exclusive, .timeLimit(.minutes(1)))
struct CoordinatorSeedTests {
    /// A component with a login child until a user has logged in, and then with the main experience.
    private final class AppCoordinator: Component {
        struct DidLoginSuccessfully: Sendable {}
        struct DidFailToLogin: Sendable { let error: Refusal }

        let journal = Journal()
        /// Whether a child that requests its dismissal is stopped.
        let dismisses: Bool
        private let onLogin = Mutex<(@Sendable (AnyCoordinator) -> Void)?>(nil)

        init(dismisses: Bool = true) { self.dismisses = dismisses }

        func whenLoggedIn(_ body: @escaping @Sendable (AnyCoordinator) -> Void) { onLogin.withLock { $0 = body } }

        func start() async {}
        func stop() async {}

        func received(_ message: any Sendable, from child: AnyCoordinator) {
            switch message {
            case is DidLoginSuccessfully:
                journal.write("coordinatorDidLoginSuccessfully \(child.name)")
                onLogin.withLock { $0 }?(child)
            case let failure as DidFailToLogin:
                journal.write("coordinatorDidFailToLogin \(failure.error.by)")
            default: journal.write("unknown")
            }
        }

        func childRequestedDismissal(_ child: AnyCoordinator) -> Bool {
            journal.write("coordinatorDidRequestDismissal \(child.name)")
            return dismisses
        }
    }

    private func until(_ condition: () -> Bool) async {
        while !condition() { await Task.yield() }
    }

    /// Creates an app that replaces its child after the login.
    private func app(startsAfterLogin main: AnyCoordinator) -> Coordinator<AppCoordinator> {
        let app = Coordinator(name: "app", component: AppCoordinator())
        app.component.whenLoggedIn { [weak app] child in
            Task {
                await app?.stop(child)
                try await app?.start(main)
            }
        }
        return app
    }

    @Test func hasChild() async throws {
        let tree = try await Tree()
        #expect(tree.root.hasChild(tree.a) && tree.a.hasChild(tree.a1))
        #expect(!tree.root.hasChild(tree.a1) && !tree.a.hasChild(tree.root) && !tree.root.hasChild(tree.root))
        await tree.root.stop(tree.a)
        #expect(!tree.root.hasChild(tree.a) && !tree.a.hasChild(tree.a1))
        await tree.root.stop()
        #expect(!tree.root.hasChild(tree.b))
    }

    @Test func isPaused() async throws {
        let tree = try await Tree()
        #expect(!tree.a.isPaused)
        await tree.root.pause(tree.a)
        #expect(tree.a.isPaused && tree.a1.isPaused && !tree.root.isPaused && !tree.b.isPaused)
        await tree.root.resume(tree.a)
        #expect(!tree.a.isPaused && !tree.a1.isPaused)
        await tree.root.stop()
        #expect(!tree.a.isPaused)
    }

    @Test func pauseCoordinatorAndResumeCoordinator() async throws {
        let tree = try await Tree()
        #expect(await tree.lines { await tree.root.pause(tree.a) } == ["pause a2", "pause a1", "pause a"])
        #expect(await tree.lines { await tree.root.pause(tree.a) } == [], "the child is already paused")
        #expect(await tree.lines { await tree.root.resume(tree.a) } == ["resume a", "resume a1", "resume a2"])
        #expect(await tree.lines { await tree.root.resume(tree.a) } == [], "the child is not paused")
        await tree.root.stop()
    }

    @Test func onlyTheParentPausesAndResumes() async throws {
        let tree = try await Tree()
        #expect(await tree.lines { await tree.root.pause(tree.a1) } == [])
        #expect(await tree.lines { await tree.b.pause(tree.a) } == [])
        await tree.a.pause(tree.a1)
        #expect(await tree.lines { await tree.root.resume(tree.a1) } == [])
        await tree.root.pause()
        #expect(await tree.lines { await tree.a.resume(tree.a1) } == [], "the parent is paused")
        await tree.root.resume()
        #expect(tree.a1.isPaused, "the child had been paused separately")
        await tree.root.stop()
    }

    @Test func aChildDoesNotResumeWhileItsParentPauses() async throws {
        let tree = try await Tree()
        tree.root.component.on("pause") { [tree] in await tree.root.resume(tree.a) }
        await tree.root.pause()
        #expect(tree.root.isPaused && tree.a.isPaused)
        tree.root.component.on("pause") {}
        await tree.root.stop()
    }

    @Test func coordinatorDidLoginSuccessfully() async throws {
        let journal = Journal()
        let (login, main) = (coordinator("login", journal), coordinator("main", journal))
        let app = app(startsAfterLogin: main)
        try await app.start()
        #expect(!login.send(AppCoordinator.DidLoginSuccessfully()), "the child has no parent")
        try await app.start(login)
        #expect(login.send(AppCoordinator.DidFailToLogin(error: Refusal(by: "password"))))
        #expect(login.send(AppCoordinator.DidLoginSuccessfully()))
        #expect(
            app.component.journal.lines == [
                "coordinatorDidFailToLogin password", "coordinatorDidLoginSuccessfully login",
            ]
        )
        await until { main.state == .active }
        #expect(journal.lines == ["start login", "stop login", "start main"])
        #expect(app.children.map(\.name) == ["main"])
        await app.stop()
    }

    /// A message sent during a transition does not wait for the transition; its effects follow later.
    @Test func aChildReportsFromWithinItsStart() async throws {
        let journal = Journal()
        let (login, main) = (coordinator("login", journal), coordinator("main", journal))
        let app = app(startsAfterLogin: main)
        login.component.on("start") { [unowned login] in login.send(AppCoordinator.DidLoginSuccessfully()) }
        try await app.start()
        try await app.start(login)
        await until { main.state == .active }
        #expect(journal.lines == ["start login", "stop login", "start main"])
        await app.stop()
    }

    @Test func coordinatorDidRequestDismissal() async throws {
        let app = Coordinator(name: "app", component: AppCoordinator())
        let journal = Journal()
        let login = coordinator("login", journal)
        try await app.start()
        #expect(!login.requestDismissal(), "the child has no parent")
        try await app.start(login)
        #expect(login.requestDismissal())
        await until { !app.hasChild(login) }
        #expect(app.component.journal.lines == ["coordinatorDidRequestDismissal login"])
        #expect(journal.lines == ["start login", "stop login"])
        await app.stop()
    }

    @Test func aParentDecidesOnADismissal() async throws {
        let app = Coordinator(name: "app", component: AppCoordinator(dismisses: false))
        let login = coordinator("login", Journal())
        try await app.start()
        try await app.start(login)
        login.requestDismissal()
        // If a stop had been requested, this pause would run after it.
        await app.pause()
        #expect(app.hasChild(login) && login.isPaused)
        await app.stop()
    }

    @Test func aChildIsDismissedFromWithinItsOwnTransition() async throws {
        let tree = try await Tree()
        tree.a.component.on("pause") { [unowned a = tree.a] in a.requestDismissal() }
        await tree.root.pause(tree.a)
        await until { !tree.root.hasChild(tree.a) }
        #expect(tree.states == [.active, .inactive, .inactive, .inactive, .active])
        await tree.root.stop()
    }
}
