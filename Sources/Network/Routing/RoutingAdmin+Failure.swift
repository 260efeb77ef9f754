package import Base
package import Coaty

extension RoutingAdmin {
    /// The reason why an operation is not performed.
    package enum Failure: Error {
        case notFound(String)
        /// Nothing was changed.
        case conflict
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

    /// The requested change of a context.
    package enum ContextChange: Sendable {
        case put(JSONView)
        /// A merge patch (RFC 7396).
        case patch(JSONView)
    }
}
