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

    func reportProven(_ publication: PublicationSuspects.Proven) {
        let name =
            switch publication.kind {
            case .event(let type, let name): "\(type) \(name?.text ?? "")"
            case .topic(let topic): topic
            }
        logger.error(
            "given up: the broker closes the connection because of a publication",
            metadata: [
                "event": "\(DropLog.short(name))", "bytes": "\(publication.size)",
                "object": "\(publication.objectId?.string ?? "none")",
            ]
        )
    }

    func reportGivenUp(_ publication: Publication) {
        let name =
            switch publication.destination {
            case .event(let address): "\(address.eventType) \(address.name?.text ?? "")"
            case .ioRoute(let name), .raw(let name, _): name
            }
        logger.error(
            "not published: the connection was lost each time it was being sent",
            metadata: ["event": "\(DropLog.short(name))", "bytes": "\(publication.payload.count)"]
        )
    }
}
