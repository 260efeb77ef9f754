/// How much of a packet has arrived as long as it is not complete.
///
/// libmosquitto holds all of it, up to 256 MiB, and reports only complete packets.
struct PacketProgress {
    /// Number of bytes that had been read from the connection when the packet was first seen to be incomplete. Some of the packet may
    /// have come before, at most what the receive buffer holds: an unfinished packet is never taken to be longer than it is.
    private var start: Int?

    /// Notes that a packet was complete.
    mutating func complete() { start = nil }

    /// Returns how many bytes of the incomplete packet have come.
    ///
    /// - Parameter bytesRead: number of bytes that were read from the connection so far.
    mutating func bytes(_ bytesRead: Int) -> Int {
        let start = start ?? bytesRead
        self.start = start
        return bytesRead - start
    }
}
