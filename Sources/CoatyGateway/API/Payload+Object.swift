import Coaty

extension Payload {
    /// The payload of an event that carries an object alone: `{"object": …}`.
    ///
    /// - Parameter json: the JSON text of the object.
    init(object json: some Sequence<UInt8>) throws(PayloadError) {
        try self.init(Array(#"{"object":"#.utf8) + json + "}".utf8)
    }
}
