import Access
import Base
import Coaty
import DequeModule
import HTTPServer
import ProblemDetails
import Synchronization

/// The requests with an `Idempotency-Key` that clients may repeat, and the first answers to them.
///
/// An answer is stored for ten minutes. Until then, each request counts as one of its client's
/// ``Resource/idempotencyKeys`` and as memory of the client. A client that has too many is refused, because removing an
/// older one would cause its repetition to be published again. The lock is a leaf: no other lock is taken while it is
/// held.
package final class IdempotencyTable: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The memory of a request without its key and the body of its answer, in bytes.
    static let cost = 1 << 10

    /// The result of starting a request with a key.
    enum Start {
        /// It is the first request with this key.
        case first(IdempotencyClaim)
        /// It gets the first request's answer.
        case repeated(HTTPResponse)
        /// The first request has no answer yet.
        case inProgress
        /// Another request uses the key.
        case different
    }

    fileprivate struct Key: Hashable, Sendable {
        let client: ClientKey
        let text: String
    }

    private struct Entry: Sendable {
        let fingerprint: RequestFingerprint
        /// Unique in the table.
        let number: UInt64
        let place: Place
        let charge: Charge
        /// Nil while the request is running.
        var answer: (response: HTTPResponse, charge: Charge?)?
    }

    private struct State: Sendable {
        var entries: [Key: Entry] = [:]
        /// The entries with answers, in the order in which they expire.
        var answered: Deque<(key: Key, expires: Instant)> = []
        /// The expiry times of each client's answers, in order.
        var expiries: [ClientKey: Deque<Instant>] = [:]
        var lastNumber: UInt64 = 0
        /// Removes expired entries if no request does; nil if there are no answers.
        var deadline: Deadline?

        mutating func removeExpired(at now: Instant) -> [Entry] {
            var expired: [Entry] = []
            while let (key, expires) = answered.first, expires <= now {
                answered.removeFirst()
                expiries[key.client]?.removeFirst()
                if expiries[key.client]?.isEmpty ?? false { expiries[key.client] = nil }
                if let entry = entries.removeValue(forKey: key) { expired.append(entry) }
            }
            return expired
        }
    }

    private let lifetime: Duration
    private let state = Mutex(State())
    private let replayed = Atomic(0)

    /// - Parameter lifetime: the time for which an answer is stored.
    package init(lifetime: Duration = .seconds(600)) { self.lifetime = lifetime }

    /// Number of requests that got the answer to an earlier one.
    package var replays: Int { replayed.load(ordering: .relaxed) }

    /// Begins a request.
    ///
    /// - Throws: `Problem` with status 429 or 503 if the client's limit of keys is reached.
    func begin(
        _ text: String,
        _ fingerprint: RequestFingerprint,
        for account: ClientAccount,
        at now: Instant = .now
    ) throws(Problem) -> Start {
        let key = Key(client: account.client, text: text)
        if let known = known(key, fingerprint, at: now) { return known }
        let place = try takeKey(for: account, at: now)
        let charge = try account.charge(Self.cost + text.utf8.count)
        let number = state.withLock { state -> UInt64? in
            // Another request may have added the entry first.
            guard state.entries[key] == nil else { return nil }
            state.lastNumber += 1
            state.entries[key] = Entry(
                fingerprint: fingerprint,
                number: state.lastNumber,
                place: place,
                charge: charge
            )
            return state.lastNumber
        }
        guard let number else { return known(key, fingerprint, at: now) ?? .inProgress }
        return .first(IdempotencyClaim(on: key, number, account, in: self))
    }

    /// - Throws: `Problem`, with the time until a key is released.
    private func takeKey(for account: ClientAccount, at now: Instant) throws(Problem) -> Place {
        do throws(Problem) {
            return try account.take(.idempotencyKeys)
        } catch {
            let isOwn = error.status == 429
            let expiry = state.withLock { state in
                isOwn ? state.expiries[account.client]?.first : state.answered.first?.expires
            }
            // If there are no answers yet, a key is released no earlier than this, unless a request publishes nothing.
            let wait = expiry.map { $0 - now } ?? lifetime
            throw Problems.tooManyKeys(error, lifetime: lifetime, wait: wait)
        }
    }

    /// Returns the result for a request whose key is already used; nil if it is not.
    private func known(_ key: Key, _ fingerprint: RequestFingerprint, at now: Instant) -> Start? {
        // Expired entries are released outside the lock.
        let (entry, _) = state.withLock { state in
            let expired = state.removeExpired(at: now)
            return (state.entries[key], expired)
        }
        guard let entry else { return nil }
        guard entry.fingerprint == fingerprint else { return .different }
        guard let answer = entry.answer else { return .inProgress }
        replayed.add(1, ordering: .relaxed)
        return .repeated(answer.response)
    }

    /// Stores the answer to a request, unless it has one.
    ///
    /// - Returns: the stored answer; nil if the key no longer belongs to the request.
    fileprivate func keep(
        _ response: HTTPResponse,
        _ charge: Charge?,
        for key: Key,
        _ number: UInt64,
        at now: Instant
    ) -> HTTPResponse? {
        state.withLock { state in
            guard let entry = state.entries[key], entry.number == number else { return nil }
            if let answer = entry.answer { return answer.response }
            state.entries[key]?.answer = (response, charge)
            state.answered.append((key, now + lifetime))
            state.expiries[key.client, default: []].append(now + lifetime)
            if state.deadline == nil { schedule(after: lifetime, &state) }
            return response
        }
    }

    /// Releases a key, unless its request has an answer.
    fileprivate func free(_ key: Key, _ number: UInt64) {
        let _ = state.withLock { state -> Entry? in
            guard let entry = state.entries[key], entry.number == number, entry.answer == nil else { return nil }
            return state.entries.removeValue(forKey: key)
        }
    }

    private func schedule(after delay: Duration, _ state: inout State) {
        state.deadline = Deadline(after: delay) { [weak self] in self?.removeExpired(at: .now) }
    }

    private func removeExpired(at now: Instant) {
        let _ = state.withLock { state in
            let expired = state.removeExpired(at: now)
            state.deadline = nil
            if let next = state.answered.first { schedule(after: next.expires - now, &state) }
            return expired
        }
    }
}

/// The right of the only request that runs with a key. If it is released without an answer, the key is released too.
final class IdempotencyClaim: Sendable {
    private let table: IdempotencyTable
    private let key: IdempotencyTable.Key
    private let number: UInt64
    private let account: ClientAccount

    fileprivate init(
        on key: IdempotencyTable.Key,
        _ number: UInt64,
        _ account: ClientAccount,
        in table: IdempotencyTable
    ) {
        (self.key, self.number, self.account, self.table) = (key, number, account, table)
    }

    deinit { table.free(key, number) }

    /// Stores the answer to the request, before it is sent to the client. Only the first answer is stored.
    ///
    /// - Parameter isCharged: whether the response contains the charge of its body.
    /// - Returns: the first answer, which must be sent to the client.
    @discardableResult
    func keep(
        _ response: HTTPResponse,
        isCharged: Bool = false,
        at now: IdempotencyTable.Instant = .now
    ) -> HTTPResponse {
        // It can't be refused, since something was published. A client above its limit gets no further key.
        let charge = isCharged ? nil : account.memory.chargeAnyway(response.bodySize)
        return table.keep(response, charge, for: key, number, at: now) ?? response
    }

    /// Releases the key, because nothing was published.
    func free() { table.free(key, number) }
}
