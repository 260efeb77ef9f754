import Foundation

/// A load of events with the numbers 0, 1, …, published on a separate thread as fast as the test allows.
///
/// It uses MQTT 3.1.1 with QoS 0 over a plain socket, so that no event is sent twice. Events published without a broker
/// are lost, with their numbers; publishing continues when there is a broker again.
///
/// `@unchecked Sendable`: the state is accessed only while `condition` is locked.
public final class NumberedLoad: @unchecked Sendable {
    private static let limit: TimeInterval = 30
    /// Time in seconds until the next attempt to connect to the broker.
    private static let pause: TimeInterval = 0.01

    private let condition = NSCondition()
    private var next = 0
    private var allowed = 0
    private var isFinishing = false
    private var isStopped = false
    private var hasEnded = false

    /// Starts the thread. Nothing is published before ``allow(upTo:)``.
    ///
    /// - Parameter event: returns the topic and the payload for a number, which may be the last one.
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

    /// The number of events that were published or lost.
    public var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return next
    }

    /// Allows events with numbers below this one to be published.
    public func allow(upTo number: Int) {
        condition.lock()
        defer { condition.unlock() }
        guard number > allowed else { return }
        allowed = number
        condition.broadcast()
    }

    /// Allows this many further events, and returns when they were published.
    ///
    /// - Throws: ``TestSupportError`` if that takes too long.
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

    /// Publishes one more event, the last, and ends the thread.
    ///
    /// - Returns: the number of events that were published or lost.
    @discardableResult
    public func finish() -> Int { end { isFinishing = true } }

    /// Ends the thread. Every test calls it last, also after a failure.
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
