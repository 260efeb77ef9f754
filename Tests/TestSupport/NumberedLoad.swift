import Foundation

/// Publishes events with the numbers 0, 1, … all the time, as far as it is let, on a thread of its own.
///
/// It speaks MQTT 3.1.1 with QoS 0 over a plain socket, so that nothing is sent twice. What it publishes while there is no
/// broker is lost, and its number with it; it goes on as soon as there is one again.
///
/// `@unchecked Sendable`: the state is touched only with `condition` locked.
public final class NumberedLoad: @unchecked Sendable {
    private static let limit: TimeInterval = 30
    /// Until the next attempt where there is no broker.
    private static let pause: TimeInterval = 0.01

    private let condition = NSCondition()
    private var next = 0
    private var allowed = 0
    private var isFinishing = false
    private var isStopped = false
    private var hasEnded = false

    /// Begins; nothing is published before ``allow(upTo:)``.
    ///
    /// - Parameter event: the topic and the payload of a number, which may be the last one.
    public init(
        brokerPort: UInt16,
        event: @escaping @Sendable (_ number: Int, _ isLast: Bool) -> (topic: String, payload: String)
    ) {
        Thread.detachNewThread { [self] in
            var connection: RawConnection?
            while let (number, isLast) = take() {
                let event = event(number, isLast)
                do {
                    let open = try connection ?? Self.connect(brokerPort)
                    connection = open
                    try open.send(Self.packet(event.topic, event.payload))
                } catch {
                    connection = nil
                    rest()
                }
                note(number, isLast)
            }
            condition.lock()
            hasEnded = true
            condition.broadcast()
            condition.unlock()
        }
    }

    /// How many numbers were published, or lost.
    public var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return next
    }

    /// Lets numbers below this one be published.
    public func allow(upTo number: Int) {
        condition.lock()
        defer { condition.unlock() }
        guard number > allowed else { return }
        allowed = number
        condition.broadcast()
    }

    /// Lets so many more numbers be published than there are now, and returns when they were.
    ///
    /// - Throws: ``TestSupportError`` where that takes too long.
    public func publish(_ more: Int) throws {
        let goal = count + more
        allow(upTo: goal)
        condition.lock()
        defer { condition.unlock() }
        let deadline = Date(timeIntervalSinceNow: Self.limit)
        while next < goal {
            guard condition.wait(until: deadline) else { throw TestSupportError("\(next) of \(goal) are published") }
        }
    }

    /// Publishes one more number, the last, and ends.
    ///
    /// - Returns: how many numbers were published, or lost.
    @discardableResult
    public func finish() -> Int { end { isFinishing = true } }

    /// Ends; to be called at last, also after a failure.
    public func stop() { end { isStopped = true } }

    @discardableResult
    private func end(_ body: () -> Void) -> Int {
        condition.lock()
        defer { condition.unlock() }
        body()
        condition.broadcast()
        while !hasEnded { condition.wait() }
        return next
    }

    private func take() -> (number: Int, isLast: Bool)? {
        condition.lock()
        defer { condition.unlock() }
        while next >= allowed, !isFinishing, !isStopped { condition.wait() }
        return isStopped ? nil : (next, isFinishing)
    }

    private func note(_ number: Int, _ isLast: Bool) {
        condition.lock()
        defer { condition.unlock() }
        next = number + 1
        if isLast { isStopped = true }
        condition.broadcast()
    }

    private func rest() {
        condition.lock()
        defer { condition.unlock() }
        let deadline = Date(timeIntervalSinceNow: Self.pause)
        while !isStopped, !isFinishing, condition.wait(until: deadline) {}
    }

    private static func connect(_ port: UInt16) throws -> RawConnection {
        let connection = try RawConnection(port: port)
        // CONNECT, 12 bytes; "MQTT" level 4, clean session, no keepalive, empty client identifier.
        try connection.send([0x10, 12, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 0, 0, 0])
        guard try connection.read(count: 4).last == 0 else { throw TestSupportError("the broker refuses") }
        return connection
    }

    private static func packet(_ topic: String, _ payload: String) -> [UInt8] {
        var rest = 2 + topic.utf8.count + payload.utf8.count
        var packet: [UInt8] = [0x30]
        repeat {
            packet.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        packet += [UInt8(topic.utf8.count >> 8), UInt8(topic.utf8.count & 0xFF)]
        return packet + topic.utf8 + payload.utf8
    }
}
