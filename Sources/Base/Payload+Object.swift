package import Coaty

extension Payload {
    /// Creates the payload of an event that contains only an object: `{"object": …}`.
    ///
    /// - Parameter json: the JSON text of the object.
    package init(object json: some Sequence<UInt8>) throws(PayloadError) {
        try self.init(Array(#"{"object":"#.utf8) + json + "}".utf8)
    }
}
