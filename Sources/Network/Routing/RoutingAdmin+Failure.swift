package import Base
package import Coaty

extension RoutingAdmin {
    /// The reason why an operation is not performed.
    package enum Failure: Error {
        case notFound(String)
        case preconditionFailed(EntityTag?)
        /// No router has answered within the given number of milliseconds.
        case noAnswer(Int)
        case notKept
        /// No gateway of the cluster speaks for the context, because these agents route it, or for no known reason.
        case noSpeaker([CoatyUUID])
        /// The change is in effect, but these gateways of the cluster have not stored it.
        case notConfirmed([CoatyUUID])
        /// The change was made, but another gateway speaks now, which may not know of it.
        case superseded
        /// The context and its rules would have more than this number of bytes.
        case tooLargeForCluster(Int)
    }

    /// The reason why reloaded rules are not in effect: the gateway that speaks has not adopted them.
    package struct NotAdopted: Error {
        package let reason: any Error
    }

    /// An updated context.
    package struct UpdatedContext: Sendable {
        /// As its router has accepted it.
        package let context: JSONView
        /// The changed associations; nil if another agent routes the context.
        package let changes: IoAssociationChanges?
        /// Whether other agents learn of it only when the broker is back.
        package let isDeferred: Bool
    }

    /// Rules that were replaced.
    package struct ReplacedRules: Sendable {
        /// The JSON text of the rules.
        package let text: [UInt8]
        package let changes: IoAssociationChanges
        /// Whether the changes are published only when the broker is back.
        package let isDeferred: Bool
    }

    /// The requested change of a context.
    package enum ContextChange: Sendable {
        case put(JSONView)
        /// A merge patch (RFC 7396).
        case patch(JSONView)
    }
}
