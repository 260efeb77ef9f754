import Coaty

extension NetworkLoop: MosquittoClientDelegate {
    func connackReceived(_ code: Int32, _ properties: ConnectionProperties) {
        guard code == 0 else {
            refusal = code
            return
        }
        former = current?.address
        noteVersion(.accepted)
        subscriptions.connected()
        session.connected(properties)
        logConnection(properties)
    }

    func publicationsWritten(_ count: Int) {
        unwritten -= count
        written += count
        unconfirmed += count
    }

    /// Reports the written publications to the session, with one lock for all of them.
    func reportWritten() {
        guard written > 0 else { return }
        session.publicationsWritten(written)
        written = 0
    }

    func received(topic: String, payload: [UInt8], isRetained: Bool) {
        subscriptions.receive(topic, payload, isRetained: isRetained, for: session)
    }

    func receivedTooLong(topic: String, size: Int) {
        subscriptions.dropTooLong(topic, for: session)
    }

    func subackReceived(_ packet: Int32, isGranted: [Bool]) {
        report(subscriptions.acknowledged(packet, isGranted: isGranted, now: .now))
    }

    /// Ends the connection. The broker has answered the last packet, so it has read all publications, and it sends
    /// nothing more. If any bytes from the broker were unread when the socket is closed, the kernel would reset the
    /// connection, and the broker would lose the bytes that it had not read.
    func unsubackReceived(_ packet: Int32) {
        if let barrier, barrier.packet == packet {
            self.barrier = nil
            reportWritten()
            session.publicationsRead(barrier.publications)
        }
        guard packet == lastUnsubscribe else { return }
        lastUnsubscribe = nil
        client?.disconnect()
    }
}
