package import Access
package import Base
import Coaty
package import ProblemDetails
import Synchronization

/// A client at the gate: its principal, and its activities, which are decided again when the access policy changes, when
/// the principal changes, and when it expires.
///
/// There is one for each connection, stream, and request whose responses are collected. The lock of its state is a leaf.
package final class GateClient: Sendable {
    private struct Entry {
        weak var activity: (any Activity)?
    }

    private struct State {
        var principal: Principal?
        /// When the principal expires; nil if it does not.
        var expiry: Deadline?
        /// Ends the observation of the access policy.
        var ignorePolicy: (@Sendable () -> Void)?
        /// An activity is dropped if its transport gives it up before it has started.
        var activities: [ObjectIdentifier: Entry] = [:]
        /// Increases whenever the activities are decided again.
        var decisions: UInt64 = 0
        var applyRate: (@Sendable (Rate?) -> Void)?
        var expel: (@Sendable (Problem) -> Void)?
        var hasLeft = false
    }

    private let gate: Gate
    private let state: Mutex<State>
    /// Held while a decision is applied, so that the last one is that on the newest policy and principal. Taken before
    /// the locks of activities and outbound queues.
    private let deciding = Mutex(())

    /// - Parameter principal: nil if the client must authenticate first.
    package init(_ gate: Gate, _ principal: Principal?) {
        self.gate = gate
        state = Mutex(State())
        if let principal { use(principal) }
    }

    deinit {
        let (ignore, expiry) = state.withLock { ($0.ignorePolicy, $0.expiry) }
        ignore?()
        expiry?.cancel()
    }

    /// Nil until the client has authenticated.
    package var principal: Principal? { state.withLock(\.principal) }

    /// Uses a principal for all operations from now on, and decides on all activities again.
    package func use(_ principal: Principal) {
        let expiry = AccessControl.expiry(of: principal) { [weak self] in self?.decide() }
        let (isFirst, former) = state.withLock { state -> (Bool, Deadline?) in
            guard !state.hasLeft else { return (false, expiry) }
            defer { (state.principal, state.expiry) = (principal, expiry) }
            return (state.principal == nil, state.expiry)
        }
        former?.cancel()
        if isFirst {
            let ignore = gate.access.observe { [weak self] in self?.decide() }
            let hasLeft = state.withLock { state in
                if !state.hasLeft { state.ignorePolicy = ignore }
                return state.hasLeft
            }
            if hasLeft { return ignore() }
        }
        // The policy may have changed before it was observed.
        decide()
    }

    /// Connects the client's connection.
    ///
    /// - Parameters:
    ///   - applyRate: called now and after each change with the rate of bytes that may be sent; nil if it is not limited.
    ///   - expel: called when the principal has no permissions any more. Without it, each activity ends with the problem.
    package func attach(applyRate: @escaping @Sendable (Rate?) -> Void, expel: (@Sendable (Problem) -> Void)? = nil) {
        state.withLock { ($0.applyRate, $0.expel) = (applyRate, expel) }
        decide()
    }

    /// Ends all activities, because the client has left. Those whose end was not sent are abandoned.
    package func leave() {
        let left = state.withLock { state in
            let left = state
            state = State()
            (state.principal, state.hasLeft) = (left.principal, true)
            return left
        }
        left.ignorePolicy?()
        left.expiry?.cancel()
        for activity in left.activities.values.compactMap(\.activity) {
            activity.outcome.set(.abandoned)
            activity.end()
        }
    }

    // MARK: - Activities

    /// The number of times that the activities were decided again.
    var decisions: UInt64 { state.withLock(\.decisions) }

    /// Adds an activity.
    ///
    /// - Parameter decisions: the value of ``decisions`` before the gate decided on the activity. If they have increased
    ///   since, it decides again.
    func add(_ activity: some Activity, decidedAt decisions: UInt64) {
        let (isCurrent, hasLeft) = state.withLock { state in
            if !state.hasLeft { state.activities[ObjectIdentifier(activity)] = Entry(activity: activity) }
            return (state.decisions == decisions, state.hasLeft)
        }
        if hasLeft { return activity.end() }
        guard !isCurrent else { return }
        deciding.withLock { _ in
            if let principal { gate.decide(activity, by: principal) }
        }
    }

    /// Removes an activity that has ended.
    func remove(_ activity: some Activity) {
        let key = ObjectIdentifier(activity)
        _ = state.withLock { $0.activities.removeValue(forKey: key) }
    }

    /// Decides on all activities under the current policy. Called without locks.
    private func decide() {
        deciding.withLock { _ in
            let current = state.withLock { state in
                state.decisions += 1
                return state
            }
            guard let principal = current.principal else { return }
            if let expel = current.expel {
                do throws(Problem) {
                    _ = try gate.access.permissions(of: principal)
                } catch {
                    return expel(error)
                }
            }
            for activity in current.activities.values.compactMap(\.activity) { gate.decide(activity, by: principal) }
            // Last, because more may be written at once.
            current.applyRate?(principal.rates(under: gate.access.policy)?[.bytesOut])
        }
    }
}
