import CMosquitto
import Foundation

/// Writes the PUBLISH packets of QoS 0 of a connection without TLS (MQTT 3.1.1 and 5, section 3.3).
///
/// libmosquitto writes each packet with two system calls; here, all publications that are queued leave in one. With 64
/// clients that advertise, this halves the processor time for writing. All other packets are libmosquitto's: it must
/// not write while bytes are queued here, and this writer must not write while libmosquitto has queued bytes.
///
/// Used on one thread.
struct PublicationWriter {
    /// The number of queued bytes from which they are sent before more are added.
    static let batchSize = 64 * 1024
    /// The longest payload of a packet with the longest topic (MQTT 3.1.1, section 2.2.3).
    static let maximumPayloadSize = 268_435_455 - 3 - MQTTTopic.maximumLength

    /// Maximum size of a packet that the broker accepts.
    var maximumPacketSize = Int.max
    /// Whether the broker keeps retained messages.
    var isRetainAvailable = true
    /// Number of bytes between topic and payload: with MQTT 5, the length of the properties, of which there are none.
    private let propertyBytes: Int

    /// Number of bytes that sockets have accepted since the start.
    private(set) var sentBytes = 0
    private var bytes: [UInt8] = []
    /// Number of bytes of `bytes` that the socket has accepted.
    private var sent = 0
    /// The ends of the queued packets in `bytes`.
    private var ends: [Int] = []
    /// The first packet that is not sent entirely.
    private var first = 0
    /// When the socket last accepted bytes.
    private var progress = ContinuousClock.now

    init(version: MQTTVersion) {
        propertyBytes = version == .v5 ? 1 : 0
    }

    /// Returns the size of a packet.
    static func packetSize(topicLength: Int, payload: Int, version: MQTTVersion) -> Int {
        var left = 2 + topicLength + payload + (version == .v5 ? 1 : 0)
        var size = left + 1
        repeat {
            size += 1
            left >>= 7
        } while left > 0
        return size
    }

    /// Whether bytes are queued.
    var hasBytes: Bool { sent < bytes.count }

    /// Whether the socket has not accepted all bytes of the last ``send(to:)``.
    private(set) var isBlocked = false

    /// Whether so many bytes are queued that they should be sent.
    var isFull: Bool { bytes.count - sent >= Self.batchSize }

    /// The time for which the socket has not accepted the queued bytes; zero if none are blocked.
    var stalled: Duration { isBlocked ? .now - progress : .zero }

    /// Queues a packet.
    ///
    /// - Throws: the error of libmosquitto for a topic or payload that can't be published.
    mutating func append(_ topic: String, _ payload: [UInt8], isRetained: Bool) throws(MosquittoError) {
        var topic = topic
        let (length, code) = topic.withUTF8 { name in
            name.withMemoryRebound(to: CChar.self) { name -> (Int, Int32) in
                // A topic without bytes may have no address.
                guard let start = name.baseAddress, !name.isEmpty else { return (0, Int32(MOSQ_ERR_INVAL.rawValue)) }
                let isName = mosquitto_pub_topic_check2(start, name.count)
                guard isName == Int32(MOSQ_ERR_SUCCESS.rawValue) else { return (name.count, isName) }
                return (name.count, mosquitto_validate_utf8(start, Int32(name.count)))
            }
        }
        guard code == Int32(MOSQ_ERR_SUCCESS.rawValue) else { throw MosquittoError(code: code, errno: 0) }
        guard payload.count <= Self.maximumPayloadSize else {
            throw MosquittoError(code: Int32(MOSQ_ERR_PAYLOAD_SIZE.rawValue), errno: 0)
        }
        guard isRetainAvailable || !isRetained else {
            throw MosquittoError(code: Int32(MOSQ_ERR_RETAIN_NOT_SUPPORTED.rawValue), errno: 0)
        }
        var left = 2 + length + payload.count + propertyBytes
        // The longest head has five bytes.
        guard
            left + 5 <= maximumPacketSize
                || Self.packetSize(
                    topicLength: length,
                    payload: payload.count,
                    version: propertyBytes > 0 ? .v5 : .v311
                )
                    <= maximumPacketSize
        else { throw MosquittoError(code: Int32(MOSQ_ERR_OVERSIZE_PACKET.rawValue), errno: 0) }
        bytes.append(isRetained ? 0x31 : 0x30)
        repeat {
            bytes.append(UInt8(truncatingIfNeeded: left & 0x7F) | (left > 0x7F ? 0x80 : 0))
            left >>= 7
        } while left > 0
        bytes.append(UInt8(truncatingIfNeeded: length >> 8))
        bytes.append(UInt8(truncatingIfNeeded: length))
        bytes.append(contentsOf: topic.utf8)
        if propertyBytes > 0 { bytes.append(0) }
        bytes.append(contentsOf: payload)
        ends.append(bytes.count)
    }

    /// Sends as many of the queued bytes as the socket accepts.
    ///
    /// - Returns: the number of publications that were sent entirely. If it is not 0, an error is thrown by the next
    ///   call.
    mutating func send(to socket: Int32) throws(MosquittoError) -> Int {
        var failure: Int32?
        let start = sent
        while hasBytes {
            let count = bytes.withUnsafeBytes { all in
                let queued = UnsafeRawBufferPointer(rebasing: all[sent...])
                return Foundation.send(socket, queued.baseAddress, queued.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            guard count < 0 else {
                sent += count
                sentBytes += count
                continue
            }
            if errno == EINTR { continue }
            if errno != EAGAIN, errno != EWOULDBLOCK { failure = errno }
            break
        }
        let before = first
        while first < ends.count, ends[first] <= sent { first += 1 }
        if let failure, first == before { throw MosquittoError(connection: failure) }
        // Read only if bytes remain: this is the hot path.
        if hasBytes, sent > start || !isBlocked { progress = .now }
        isBlocked = hasBytes
        let count = first - before
        if !hasBytes { reset() }
        return count
    }

    private mutating func reset() {
        // The memory of a long message is not kept.
        let isSmall = bytes.capacity <= 4 * Self.batchSize
        bytes.removeAll(keepingCapacity: isSmall)
        ends.removeAll(keepingCapacity: isSmall)
        (sent, first) = (0, 0)
    }
}
