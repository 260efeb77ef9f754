import Logging
import Synchronization

/// Answers Discover events for the context of an IO router.
final class IoContextAnswer: Sendable {
    private let current = Mutex<ResolveEvent?>(nil)
    private let logger: Logger

    init(logger: Logger) {
        self.logger = logger
    }

    /// The current context.
    var event: ResolveEvent? {
        get { current.withLock(\.self) }
        set { current.withLock { $0 = newValue } }
    }

    func resolve(_ discover: DiscoverEvent) {
        guard let event, let object = event.payload.json["object"] else { return }
        let asked = discover.data
        let isAsked =
            asked.isDiscoveringObjectId()
            ? asked.objectId?.string == object["objectId"]?.string
            : asked.isDiscoveringTypes()
                && (asked.isCoreTypeCompatible(.IoContext)
                    || asked.isObjectTypeCompatible(object["objectType"]?.string ?? ""))
        guard isAsked else { return }
        do {
            try discover.resolve(event)
        } catch {
            logger.warning("a Discover event could not be answered", metadata: ["error": "\(error)"])
        }
    }
}
