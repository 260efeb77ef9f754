package import Base
package import Coaty
import Coordination
import Foundation
package import ProblemDetails
import Synchronization

/// A search that is performed step by step, so that it can be stopped and other searches get turns.
package protocol Query: Sendable {
    associatedtype Output: Sendable

    /// Performs a small part of the work, such as one object.
    ///
    /// - Returns: the result; nil if there is more work.
    /// - Throws: `WorkExceeded`; a `Problem`.
    mutating func step(_ budget: inout WorkBudget) throws -> Output?
}

/// Performs queries on separate workers, so that they delay neither events nor other requests. Clients take turns and
/// are charged for the work: the queries of an overdrawn client are held back.
package final class Queries: Component {
    private let pool: WorkerPool
    private let maximumSteps: Int
    private let timeout: Duration

    /// - Parameters:
    ///   - threads: the number of threads.
    ///   - maximumSteps: the maximum number of steps of a query.
    ///   - timeout: the maximum time from the request to the result.
    package init(
        threads: Int = Limits().queryWorkers,
        maximumSteps: Int = Limits().querySteps,
        timeout: Duration = .milliseconds(Limits().queryTimeout)
    ) {
        pool = WorkerPool(name: "queries", threads: threads)
        self.maximumSteps = maximumSteps
        self.timeout = timeout
    }

    func start() { pool.start() }

    func stop() async { await pool.stop() }

    /// Performs a query.
    ///
    /// - Parameters:
    ///   - client: the client that is charged for the query.
    ///   - isWanted: returns whether the client still waits; called at intervals.
    /// - Throws: `Problem` with status 422 if the query takes too much work, 503 if it takes too long;
    ///   `CancellationError` if it is no longer wanted.
    package func perform<Performed: Query>(
        _ query: Performed,
        for client: WorkRate,
        while isWanted: @escaping @Sendable () -> Bool
    ) async throws -> Performed.Output {
        try await withCheckedThrowingContinuation { continuation in
            pool.schedule(
                QueryJob(
                    query,
                    for: client,
                    budget: WorkBudget(steps: maximumSteps),
                    end: .now + timeout,
                    isWanted: isWanted
                ) { continuation.resume(with: $0) }
            )
        }
    }
}

/// A query in the queue of its workers.
private final class QueryJob<Performed: Query>: Job {
    private struct State: Sendable {
        var query: Performed
        var budget: WorkBudget
        /// Called once.
        var complete: (@Sendable (Result<Performed.Output, any Error>) -> Void)?
    }

    let ticket: JobTicket
    private let client: WorkRate
    private let end: ContinuousClock.Instant
    private let isWanted: @Sendable () -> Bool
    /// Used only in turns, of which one runs at a time.
    private let state: Mutex<State>

    init(
        _ query: Performed,
        for client: WorkRate,
        budget: WorkBudget,
        end: ContinuousClock.Instant,
        isWanted: @escaping @Sendable () -> Bool,
        complete: @escaping @Sendable (Result<Performed.Output, any Error>) -> Void
    ) {
        ticket = JobTicket(isUrgent: false, client: client)
        self.client = client
        self.end = end
        self.isWanted = isWanted
        state = Mutex(State(query: query, budget: budget, complete: complete))
    }

    deinit {
        // The workers have stopped.
        state.withLock { $0.complete?(.failure(Problems.shuttingDown)) }
    }

    func turn() -> TurnEnd {
        let limit = TurnLimit()
        return state.withLock { state in
            guard isWanted() else { return Self.complete(&state, .failure(CancellationError())) }
            let before = state.budget.left
            defer { client.spend(before - state.budget.left) }
            repeat {
                guard .now < end else { return Self.complete(&state, .failure(Problems.queryTimeout)) }
                do {
                    if let output = try state.query.step(&state.budget) {
                        return Self.complete(&state, .success(output))
                    }
                } catch is WorkExceeded {
                    return Self.complete(&state, .failure(Problems.queryTooExpensive))
                } catch {
                    return Self.complete(&state, .failure(error))
                }
            } while !limit.isOver
            return .again
        }
    }

    private static func complete(_ state: inout State, _ result: Result<Performed.Output, any Error>) -> TurnEnd {
        state.complete.take()?(result)
        return .idle
    }
}

extension Problems {
    static let queryTooExpensive = Problem(
        type: typePrefix + "query-too-expensive",
        title: "Query too expensive",
        status: 422,
        detail: """
            Filtering and ordering the objects takes too much work. Use fewer conditions and sort properties, or select fewer objects with \
            coreType, objectType, or an Equals on objectId or parentObjectId.
            """
    )

    static let queryTimeout = Problem(
        type: typePrefix + "query-timeout",
        title: "Query timeout",
        status: 503,
        detail: "The query took too long, because many queries are active.",
        headers: retry
    )

    package static let shuttingDown = Problem(
        type: typePrefix + "shutting-down",
        title: "Shutting down",
        status: 503,
        detail: "The gateway is stopping.",
        headers: retry
    )
}
