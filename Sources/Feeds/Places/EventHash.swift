import COpenSSL
import Coaty
import Synchronization

/// The hash of an event, the same at all gateways of a cluster: SipHash under their key.
final class EventHash: Sendable {
    static let keyLength = 16

    private let key: [UInt8]
    /// Invariant: used only under the lock.
    nonisolated(unsafe) private let context: OpaquePointer
    /// Contended only if several broker sessions deliver events.
    private let lock = Mutex(())

    /// - Parameter key: at least 16 bytes.
    init(key: [UInt8]) {
        precondition(key.count >= Self.keyLength)
        self.key = key
        guard let context = cssl_siphash_context() else { preconditionFailure("OpenSSL does not provide SipHash") }
        self.context = context
    }

    deinit { EVP_MAC_CTX_free(context) }

    /// Returns the hash of an event's type, sender, name and payload.
    func hash<Event: CommunicationEvent>(_ event: Event, name: String? = nil) -> UInt64 {
        var (type, source, name) = (Event.eventType.name, event.sourceId?.string ?? "", name ?? "")
        return type.withUTF8 { type in
            source.withUTF8 { source in
                name.withUTF8 { name in
                    event.payload.bytes.withUnsafeBufferPointer { hash(type, source, name, $0) }
                }
            }
        }
    }

    private func hash(_ texts: UnsafeBufferPointer<UInt8>...) -> UInt64 {
        var (value, length): (UInt64, Int) = (0, 0)
        // Names come from topics, which can't contain it.
        var end: UInt8 = 0
        let isComputed = lock.withLock { _ in
            guard EVP_MAC_init(context, key, Self.keyLength, nil) == 1 else { return false }
            for text in texts {
                guard EVP_MAC_update(context, text.baseAddress, text.count) == 1, EVP_MAC_update(context, &end, 1) == 1
                else { return false }
            }
            return withUnsafeMutableBytes(of: &value) { bytes in
                EVP_MAC_final(context, bytes.baseAddress, &length, bytes.count) == 1
            }
        }
        precondition(isComputed && length == MemoryLayout<UInt64>.size, "OpenSSL does not provide SipHash")
        return UInt64(littleEndian: value)
    }
}
