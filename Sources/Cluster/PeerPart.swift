package import Coaty

/// State of a gateway that all gateways of its cluster have a copy of.
///
/// ``Peers`` sends the state as a whole to gateways that have no copy or have missed a message, and otherwise only
/// changes. It calls all functions one at a time, on its queue; they must not block.
package protocol PeerPart: AnyObject, Sendable {
    /// Identifies the part in messages.
    var name: String { get }

    /// Returns this gateway's state as at least one JSON text, and forgets the changes up to now.
    func takeWhole() -> [[UInt8]]

    /// Returns the changes since the last call of a function of the two, as JSON texts.
    func takeChanges() -> [[UInt8]]

    /// Applies a piece of another gateway's state.
    ///
    /// - Parameter replacesAll: whether all earlier pieces of that gateway are void.
    func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID)

    /// Answers a question of another gateway.
    ///
    /// - Parameter answer: call it once, on any thread.
    func receive(question: JSONView, from peer: CoatyUUID, answer: @escaping @Sendable ([UInt8]) -> Void)

    /// Handles that another gateway has joined, stops, is missing or has left.
    func handle(_ change: PeerTable.Change)
}

extension PeerPart {
    package func receive(question: JSONView, from peer: CoatyUUID, answer: @escaping @Sendable ([UInt8]) -> Void) {}
}
