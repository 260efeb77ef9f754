package import Base
package import Coaty
import Synchronization

/// The time after which the gateway deadvertises an object of a client.
package enum ObjectLifetime: Sendable {
    case duration(Duration)
    /// Until a WebSocket connection closes.
    case connection(ConnectionLifetime)

    /// Reads the member `lifetime` of a publication.
    ///
    /// - Parameter connection: the connection of the client; nil if it does not last longer than the publication.
    package init(_ view: JSONView, of connection: ConnectionLifetime?, _ limits: Limits) throws(PayloadError) {
        if view.string == "connection" {
            guard let connection else {
                throw view.invalid("must be a number over HTTP: only a WebSocket connection can end the object")
            }
            self = .connection(connection)
            return
        }
        guard let seconds = view.number.flatMap(Int.init(exactly:)), 1...limits.objectLifetime ~= seconds else {
            let range = "a whole number of seconds from 1 to \(limits.objectLifetime)"
            throw view.invalid("must be \(range)\(connection == nil ? "" : ", or \"connection\"")")
        }
        self = .duration(.seconds(seconds))
    }
}

/// The lifetime of a WebSocket connection, and the objects that exist as long as it.
package final class ConnectionLifetime: Sendable {
    private struct State {
        var ids: Set<CoatyUUID> = []
        /// Deadvertises objects.
        var onEnd: (@Sendable ([CoatyUUID]) -> Void)?
        var isOver = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds an object.
    ///
    /// - Parameter onEnd: deadvertises objects when the connection has closed; the same for all objects.
    /// - Returns: false if the connection has closed.
    func insert(_ id: CoatyUUID, onEnd: @escaping @Sendable ([CoatyUUID]) -> Void) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.ids.insert(id)
            state.onEnd = onEnd
            return true
        }
    }

    /// Removes an object that has another lifetime now, or is withdrawn.
    func remove(_ id: CoatyUUID) { state.withLock { _ = $0.ids.remove(id) } }

    /// Ends the objects. Call it when the connection has closed.
    package func end() {
        let ended = state.withLock { state in
            defer {
                state = State()
                state.isOver = true
            }
            return state
        }
        ended.onEnd?(Array(ended.ids))
    }
}
