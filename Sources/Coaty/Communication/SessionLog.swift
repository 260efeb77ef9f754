import Logging

/// The log messages of a session.
struct SessionLog: Sendable {
    let logger: Logger

    /// - Parameter unanswered: number of subscriptions that the broker has not answered in time.
    func reportOnline(unanswered: Int) {
        if unanswered > 0 {
            logger.warning("the broker leaves subscriptions unanswered", metadata: ["subscriptions": "\(unanswered)"])
        }
        logger.info("online")
    }

    /// - Parameter count: number of advertisements that were not kept; logged at 1, 2, 4, 8…
    func reportNotShared(count: Int) {
        guard count & (count - 1) == 0 else { return }
        logger.warning(
            "too many shared objects: some are not advertised again after a reconnect",
            metadata: ["so far": "\(count)"]
        )
    }

    /// - Parameter count: number of publications that the broker may have closed the connection because of.
    func reportSuspects(count: Int) {
        logger.info(
            "the broker has closed the connection; publications before may be lost, and others like them have their own connection for some time",
            metadata: ["publications": "\(count)"]
        )
    }

    func reportNoQuarantine(_ error: ConnectionError) {
        logger.warning(
            "the broker refuses a second connection: publications because of which it may close the connection are sent over the agent's",
            metadata: ["reason": "\(error.reason.rawValue)", "error": "\(error)"]
        )
    }

    /// - Parameter client: nil for the agent itself.
    func reportProven(_ publication: RefusedPublication, of client: (any PublicationClient)?) {
        logger.error(
            "given up: the broker closes the connection because of a publication",
            metadata: [
                "event": "\(DropLog.short("\(publication.kind)"))", "bytes": "\(publication.size)",
                "object": "\(publication.objectId?.string ?? "none")", "client": "\(client?.label ?? "none")",
            ]
        )
    }

    func reportLost(_ publication: Publication) {
        let kind = RefusedPublication.Kind(publication)
        logger.error(
            "may be lost: the connection ended while a publication was being sent",
            metadata: [
                "event": "\(DropLog.short("\(kind)"))", "bytes": "\(publication.size)",
                "client": "\(publication.client?.label ?? "none")",
            ]
        )
    }
}
