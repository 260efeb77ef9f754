import Coaty

/// Lets changes of one context happen one after the other.
@ControllerActor
final class Turns {
    /// Why nobody may wait.
    struct Full: Error {}

    private let maximumWaiting: Int
    /// Who waits, for each context that has a change under way.
    private var waiting: [CoatyUUID: [CheckedContinuation<Void, Never>]] = [:]

    /// - Parameter maximumWaiting: how many changes of a context may wait for their turn.
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
