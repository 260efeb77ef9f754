/// The number of received bytes of an incomplete packet.
///
/// libmosquitto buffers the whole packet, up to 256 MiB, and reports only complete packets.
struct PacketProgress {
    /// Number of bytes that had been read from the connection when the packet was first seen as incomplete. Some bytes
    /// of the packet may have arrived earlier, at most the content of the receive buffer: the length of an incomplete
    /// packet is never overestimated.
    private var start: Int?

    /// Records that a packet was complete.
    mutating func complete() { start = nil }

    /// Returns the number of received bytes of the incomplete packet.
    ///
    /// - Parameter bytesRead: number of bytes that were read from the connection so far.
    mutating func bytes(_ bytesRead: Int) -> Int {
        let start = start ?? bytesRead
        self.start = start
        return bytesRead - start
    }
}
