import CMosquitto
import Foundation

/// Reads the PUBLISH packets of QoS 0 of a connection without TLS (MQTT 3.1.1 and 5, section 3.3).
///
/// libmosquitto reads each packet with four system calls; here, two calls read all the packets that have arrived. Bytes
/// are first only peeked at: a packet of another type stays in the socket, for libmosquitto. A publication that has not
/// arrived completely is collected here, unless it is too long: then its bytes are discarded when they arrive.
///
/// Used on one thread.
final class PublicationReader {
    /// What follows the publications that were read.
    enum Next {
        /// Nothing, or the beginning of a packet.
        case nothing
        /// A complete packet of another type, or the end of the connection.
        case other
        /// More bytes than one read takes.
        case more
        /// A packet that the broker sends only if it does not keep to QoS 0. libmosquitto must read from now on.
        case qualityOfService
    }

    private struct Head {
        let first: UInt8
        /// Number of bytes of the head, and of the whole packet.
        let size: Int
        let packetSize: Int

        var isPublication: Bool { first & 0xF6 == 0x30 }

        var isRetained: Bool { first & 0x01 != 0 }

        /// Whether libmosquitto may answer at once: PUBLISH with another QoS, PUBREC, PUBREL, PINGREQ. A broker sends
        /// the first three if it raises the QoS of subscriptions. libmosquitto then reads several packets at a time.
        var isAnswered: Bool { !isPublication && [0x30, 0x50, 0x60, 0xC0].contains(first & 0xF0) }
    }

    /// Maximum number of bytes of one read, and of a packet that libmosquitto reads.
    static let bufferSize = 64 * 1024
    /// Number of bytes of the longest head.
    private static let maximumHeadSize = 5
    /// Number of bytes of the longest topic and of its length. With the head, these are more than ``bufferSize``.
    private static let maximumTopicSize = 2 + 65_535
    /// Lets the kernel discard bytes instead of copying them again.
    #if os(Linux)
        private static let discard = Int32(MSG_TRUNC)
        /// POLLRDHUP, which Glibc does not export to Swift.
        private static let peerEnd: Int16 = 0x2000
    #else
        private static let discard: Int32 = 0
    #endif

    /// Number of bytes of publications that were read.
    private(set) var receivedBytes = 0
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 1)
    private let hasProperties: Bool
    private let maximumPacketSize: Int
    private let maximumMessageSize: Int
    /// The beginning of a publication, and the number of its bytes.
    private var partial: [UInt8] = []
    private var partialHead: Head?
    /// Number of bytes of a too long publication that will be discarded.
    private var unwanted = 0
    /// Number of bytes for which poll(2) waits.
    private var lowWater = 1

    init(version: MQTTVersion, maximumPacketSize: Int, maximumMessageSize: Int) {
        hasProperties = version == .v5
        self.maximumPacketSize = maximumPacketSize
        self.maximumMessageSize = maximumMessageSize
    }

    deinit { buffer.deallocate() }

    /// Reads at most ``bufferSize`` bytes, and passes the publications to the delegate.
    ///
    /// - Throws: `MOSQ_ERR_OVERSIZE_PACKET` for another packet that is longer than the buffer, as soon as its head has
    ///   arrived.
    func read(_ socket: Int32, for delegate: any MosquittoClientDelegate) throws(MosquittoError) -> Next {
        if unwanted > 0 { return try discard(socket) }
        if let head = partialHead { return try readRest(of: head, socket, delegate) }
        guard let count = try receive(socket, Int32(MSG_PEEK), buffer.count) else { return .nothing }
        guard count > 0 else { return .other }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        var offset = 0
        var next = count == buffer.count ? Next.more : .nothing
        var missing = 1
        while offset < count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            guard let head = try head(of: rest) else {
                // The first byte shows whether the rest of the head is read here.
                missing = rest.count + 1
                break
            }
            guard !head.isAnswered else {
                next = .qualityOfService
                break
            }
            guard head.isPublication else {
                guard head.packetSize <= buffer.count else { throw Self.oversize }
                if head.packetSize <= rest.count { next = .other } else { missing = head.packetSize }
                break
            }
            guard head.packetSize <= rest.count else {
                partial = Array(rest)
                partialHead = head
                offset = count
                break
            }
            let packet = UnsafeRawBufferPointer(rebasing: rest[..<head.packetSize])
            guard deliver(packet, head, delegate) else { throw Self.malformed }
            offset += head.packetSize
        }
        if offset > 0 { receivedBytes += try receive(socket, Self.discard, offset) ?? 0 }
        // poll(2) reports fewer bytes than it waits for at the end of the connection, which libmosquitto detects.
        if offset == 0, next == .nothing, count < lowWater, hasEnded(socket) { next = .other }
        setLowWater(missing, socket)
        return next
    }

    private func readRest(
        of head: Head,
        _ socket: Int32,
        _ delegate: any MosquittoClientDelegate
    ) throws(MosquittoError) -> Next {
        let isTooLong = head.packetSize > maximumPacketSize
        let wanted = isTooLong ? min(head.packetSize, head.size + Self.maximumTopicSize) : head.packetSize
        guard let count = try receive(socket, 0, min(buffer.count, wanted - partial.count)) else { return .nothing }
        // libmosquitto reports the end.
        guard count > 0 else { return .other }
        receivedBytes += count
        partial.append(contentsOf: buffer[..<count])
        guard partial.count == wanted else { return .more }
        let packet = partial
        (partial, partialHead, unwanted) = ([], nil, head.packetSize - wanted)
        guard packet.withUnsafeBytes({ deliver($0, head, delegate) }) else { throw Self.malformed }
        return .more
    }

    private func discard(_ socket: Int32) throws(MosquittoError) -> Next {
        guard let count = try receive(socket, Self.discard, min(buffer.count, unwanted)) else { return .nothing }
        guard count > 0 else { return .other }
        receivedBytes += count
        unwanted -= count
        return .more
    }

    /// Returns whether the broker sends nothing more.
    private func hasEnded(_ socket: Int32) -> Bool {
        #if os(Linux)
            var descriptor = pollfd(fd: socket, events: Self.peerEnd, revents: 0)
            return poll(&descriptor, 1, 0) > 0
        #else
            return false
        #endif
    }

    /// - Returns: the number of received bytes; nil if there are none, and 0 at the end of the connection.
    private func receive(_ socket: Int32, _ flags: Int32, _ size: Int) throws(MosquittoError) -> Int? {
        while true {
            let count = recv(socket, buffer.baseAddress, size, flags | Int32(MSG_DONTWAIT))
            if count >= 0 { return count }
            if errno == EAGAIN || errno == EWOULDBLOCK { return nil }
            if errno != EINTR { throw MosquittoError(connection: errno) }
        }
    }

    /// - Returns: nil if the head is incomplete.
    private func head(of bytes: UnsafeRawBufferPointer) throws(MosquittoError) -> Head? {
        var length = 0
        for index in 1..<Self.maximumHeadSize {
            guard index < bytes.count else { return nil }
            length |= Int(bytes[index] & 0x7F) << (7 * (index - 1))
            guard bytes[index] & 0x80 != 0 else {
                return Head(first: bytes[0], size: index + 1, packetSize: index + 1 + length)
            }
        }
        throw Self.malformed
    }

    /// - Parameter packet: a publication; if it is too long, at least its head and its topic.
    /// - Returns: whether the packet is well-formed.
    private func deliver(
        _ packet: UnsafeRawBufferPointer,
        _ head: Head,
        _ delegate: any MosquittoClientDelegate
    ) -> Bool {
        let topicStart = head.size + 2
        guard topicStart <= packet.count else { return false }
        let topicEnd = topicStart + (Int(packet[head.size]) << 8 | Int(packet[head.size + 1]))
        guard topicEnd > topicStart, topicEnd <= packet.count else { return false }
        let topic = String(decoding: packet[topicStart..<topicEnd], as: UTF8.self)
        guard packet.count == head.packetSize else {
            delegate.receivedTooLong(topic: topic, size: head.packetSize - topicEnd)
            return true
        }
        guard let start = hasProperties ? endOfProperties(packet, topicEnd) : topicEnd else { return false }
        if packet.count - start > maximumMessageSize {
            delegate.receivedTooLong(topic: topic, size: packet.count - start)
        } else {
            delegate.received(topic: topic, payload: Array(packet[start...]), isRetained: head.isRetained)
        }
        return true
    }

    /// Returns where the properties end that begin at a place; nil if they are longer than the packet. Coaty has no use for
    /// them.
    private func endOfProperties(_ packet: UnsafeRawBufferPointer, _ start: Int) -> Int? {
        var length = 0
        for index in 0..<4 {
            guard start + index < packet.count else { return nil }
            length |= Int(packet[start + index] & 0x7F) << (7 * index)
            guard packet[start + index] & 0x80 != 0 else {
                let end = start + index + 1 + length
                return end <= packet.count ? end : nil
            }
        }
        return nil
    }

    /// Lets poll(2) wait for the rest of a packet that libmosquitto reads: it would otherwise report the beginning of
    /// the packet, which stays in the socket, again and again.
    private func setLowWater(_ count: Int, _ socket: Int32) {
        guard count != lowWater else { return }
        lowWater = count
        var value = Int32(count)
        setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    private static var malformed: MosquittoError {
        MosquittoError(code: Int32(MOSQ_ERR_PROTOCOL.rawValue), errno: 0)
    }

    private static var oversize: MosquittoError {
        MosquittoError(code: Int32(MOSQ_ERR_OVERSIZE_PACKET.rawValue), errno: 0)
    }
}
