package import Coaty

/// The outcome of a publication.
package struct PublishOutcome: Sendable {
    package let delivery: Delivery
    /// False if the client has no room for another object that is advertised again after a reconnect.
    package let hasRoom: Bool

    package init(delivery: Delivery, hasRoom: Bool = true) {
        self.delivery = delivery
        self.hasRoom = hasRoom
    }

    /// The JSON members, without braces.
    package var members: String { #""deferred":\#(delivery == .deferred)"# + (hasRoom ? "" : #","kept":false"#) }
}
