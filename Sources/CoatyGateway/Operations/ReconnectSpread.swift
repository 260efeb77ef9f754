/// The random delays after which clients of a stopping gateway should reconnect, so that they do not all connect to the
/// next gateway at the same time.
struct ReconnectSpread: Sendable {
    /// The longest delay, in seconds.
    let seconds: Int

    /// Returns the delay for one client, in milliseconds.
    func delay() -> Int { Int.random(in: 0...seconds * 1000) }

    /// Returns the reason in the close frame of a WebSocket; `docs/websocket.md` describes it.
    func closeReason() -> String { "retry-after=\(delay())" }
}
