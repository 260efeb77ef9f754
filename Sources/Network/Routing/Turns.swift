package import Coaty

/// Serializes the changes of each context.
@ControllerActor
package final class Turns {
    /// The error if too many changes are queued.
    package struct Full: Error {}

    private let maximumWaiting: Int
    /// The queued changes, for each context with a running change.
    private var waiting: [CoatyUUID: [CheckedContinuation<Void, Never>]] = [:]

    /// - Parameter maximumWaiting: maximum number of queued changes of a context.
    init(maximumWaiting: Int) { self.maximumWaiting = maximumWaiting }

    func take<Result>(_ id: CoatyUUID, _ body: @ControllerActor () async throws -> Result) async throws -> Result {
        if let others = waiting[id] {
            guard others.count < maximumWaiting else { throw Full() }
            await withCheckedContinuation { waiting[id]?.append($0) }
        } else {
            waiting[id] = []
        }
        defer {
            if waiting[id]?.isEmpty ?? true {
                waiting[id] = nil
            } else {
                waiting[id]?.removeFirst().resume()
            }
        }
        return try await body()
    }
}
