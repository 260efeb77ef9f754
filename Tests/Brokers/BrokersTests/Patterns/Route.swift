import Coaty
import CoatyMQTT

/// The brokers of two agents, and the namespace that they share.
struct Route: Sendable {
    /// The port of the sender's broker.
    let sender: UInt16
    /// The port of the receiver's broker.
    let receiver: UInt16
    /// The namespace of both.
    let namespace: String
    /// How the brokers deliver topics.
    let dialect: TopicDialect

    /// The options of an agent on the sender's broker.
    var senderOptions: CommunicationOptions { options(sender, namespace: namespace, dialect: dialect) }

    /// The options of an agent on the receiver's broker.
    var receiverOptions: CommunicationOptions { options(receiver, namespace: namespace, dialect: dialect) }
}
