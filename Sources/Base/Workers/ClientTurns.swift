import Coaty
import DequeModule

/// Jobs with low priority, whose clients take turns: however many jobs one client has, each other client with jobs gets
/// a turn before the first client's next one.
///
/// The jobs of an overdrawn client are held back until its debt is paid.
struct ClientTurns {
    /// The jobs of one client, or of no single one.
    private struct Line {
        var jobs: Deque<any Job> = []
        /// Returns the client to the order; nil until it is set, and while the client is not held back.
        var deadline: Deadline?
    }

    /// Nil for jobs that do not work for one client.
    private typealias Key = ObjectIdentifier?

    private var lines: [Key: Line] = [:]
    /// The clients with jobs, except those that are held back.
    private var order: Deque<(key: Key, client: WorkRate?)> = []

    var isEmpty: Bool { lines.isEmpty }

    mutating func append(_ job: any Job) {
        let client = job.ticket.client
        let key = client.map(ObjectIdentifier.init)
        if lines[key] == nil { order.append((key, client)) }
        lines[key, default: Line()].jobs.append(job)
    }

    /// Removes and returns the next job of the client whose turn it is.
    ///
    /// - Parameter held: receives the clients that are held back from now on. Call ``hold(_:until:)`` for each of them.
    mutating func popFirst(at now: Int64, holding held: inout [WorkRate]) -> (any Job)? {
        while let (key, client) = order.popFirst() {
            if let client, client.isOverdrawn(at: now) {
                held.append(client)
                continue
            }
            guard let job = lines[key]?.jobs.popFirst() else { continue }
            if lines[key]?.jobs.isEmpty ?? true { lines[key] = nil } else { order.append((key, client)) }
            return job
        }
        return nil
    }

    /// Stores the deadline at which a client that is held back may have turns again.
    mutating func hold(_ client: WorkRate, until deadline: Deadline) {
        lines[ObjectIdentifier(client)]?.deadline = deadline
    }

    /// Returns a client that was held back to the order.
    ///
    /// - Returns: the number of its jobs.
    mutating func release(_ client: WorkRate) -> Int {
        let key = ObjectIdentifier(client)
        guard let line = lines[key] else { return 0 }
        lines[key]?.deadline = nil
        order.append((key, client))
        return line.jobs.count
    }
}
